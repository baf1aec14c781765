/**
 * Checks between two ends that search for a direct path: a Binding request and its answer, authenticated and of the
 * same size, so that an answer amplifies nothing. Offsets are fixed; anything else is not a check and gets no answer.
 *
 *         request                                      answer to IPv4            answer to IPv6
 *   0     header                                       header, same transaction id
 *   20    USERNAME: the receiver's tag, 16 hex digits  XOR-MAPPED-ADDRESS (8)    XOR-MAPPED-ADDRESS (20)
 *   32                                                 PADDING (20)
 *   40    PADDING (12)
 *   44                                                                           PADDING (8)
 *   56    MESSAGE-INTEGRITY-SHA256 (16)                the same, under the same key
 *
 * The key is that of the request's receiver, for the request and for its answer. Integrity covers everything before its
 * attribute, and the length in the header includes it (RFC 8489 §14.6). There is no FINGERPRINT: the integrity is
 * stronger, and nothing else on the socket looks like STUN.
 */
import type { SocketAddress } from '../address.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { LocalError } from '../errors/index.ts';
import {
  ATTRIBUTE_HEADER,
  Attribute,
  BINDING_REQUEST,
  BINDING_SUCCESS,
  digits,
  HEADER,
  ipOf,
  isAttribute,
  isStun,
  mappedLength,
  message,
  readMapped,
  transactionOf,
  typeOf,
  writeAttribute,
  writeMapped,
} from './message.ts';

type Hmac = Pick<CryptoProvider, 'hmacSha256'>;

/** Length of a check, and of its answer, bytes. */
export const CHECK_LENGTH = 76;
/** Length of the tag, which names the receiver of a check, bytes. */
export const CHECK_TAG_LENGTH = 8;
/** Length of the key of checks, bytes. */
export const CHECK_KEY_LENGTH = 16;

/** RFC 8489 §14.6: at least 16 of the 32 bytes. */
const INTEGRITY = 16;
const INTEGRITY_AT = CHECK_LENGTH - INTEGRITY - ATTRIBUTE_HEADER;
const USERNAME = 2 * CHECK_TAG_LENGTH;
const PADDING_AT = HEADER + ATTRIBUTE_HEADER + USERNAME;

/**
 * Encodes a check for the end with this tag and key.
 * @param transaction 12 random bytes
 * @throws LocalError INVALID_ARGUMENT for another length of tag, key or transaction
 */
export function encodeCheck(tag: Uint8Array, key: Uint8Array, transaction: Uint8Array, crypto: Hmac): Uint8Array {
  if (tag.length !== CHECK_TAG_LENGTH) throw new LocalError('INVALID_ARGUMENT', `a tag has ${CHECK_TAG_LENGTH} bytes`);
  const check = message(BINDING_REQUEST, CHECK_LENGTH, transaction);
  const username = writeAttribute(check, HEADER, Attribute.USERNAME, USERNAME);
  const name = digits(tag);
  for (let i = 0; i < USERNAME; i++) check[username + i] = name.charCodeAt(i);
  writePadding(check, PADDING_AT);
  return sealed(check, key, crypto);
}

/** Returns the tag that a check names, as 16 hex digits; null for anything but a check. Verifies nothing. */
export function tagOfCheck(datagram: Uint8Array): string | null {
  if (!isCheck(datagram)) return null;
  let tag = '';
  for (let i = HEADER + ATTRIBUTE_HEADER; i < PADDING_AT; i++) {
    const letter = datagram[i]!;
    if (!isHexDigit(letter)) return null;
    tag += String.fromCharCode(letter);
  }
  return tag;
}

/** Returns whether a datagram is a check under the receiver's key. Constant time in the key. */
export function verifyCheck(datagram: Uint8Array, key: Uint8Array, crypto: Hmac): boolean {
  return isCheck(datagram) && isIntact(datagram, key, crypto);
}

/**
 * Encodes the answer to a verified check.
 * @param source address that the check came from
 * @param key that of the check
 * @throws LocalError INVALID_ARGUMENT for a source that is not numeric, or another length of the key
 */
export function encodeCheckAnswer(check: Uint8Array, source: SocketAddress, key: Uint8Array, crypto: Hmac): Uint8Array {
  const answer = message(BINDING_SUCCESS, CHECK_LENGTH, transactionOf(check));
  writePadding(answer, writeMapped(answer, HEADER, ipOf(source.address), source.port));
  return sealed(answer, key, crypto);
}

/** Returns the transaction id of a success response as 24 hex digits, null for anything else. Verifies nothing. */
export function transactionOfAnswer(datagram: Uint8Array): string | null {
  return isStun(datagram) && typeOf(datagram) === BINDING_SUCCESS ? digits(transactionOf(datagram)) : null;
}

/** Returns the mapped address of an answer to a check, null for anything but an answer under the key of that check. */
export function readCheckAnswer(datagram: Uint8Array, key: Uint8Array, crypto: Hmac): SocketAddress | null {
  if (datagram.length !== CHECK_LENGTH || !isStun(datagram) || typeOf(datagram) !== BINDING_SUCCESS) return null;
  const length = isAttribute(datagram, HEADER, Attribute.XOR_MAPPED_ADDRESS, mappedLength(4)) ? mappedLength(4) : mappedLength(16);
  const value = HEADER + ATTRIBUTE_HEADER;
  if (!isAttribute(datagram, HEADER, Attribute.XOR_MAPPED_ADDRESS, length) || !hasPadding(datagram, value + length)) return null;
  return isIntact(datagram, key, crypto) ? readMapped(datagram, value, length) : null;
}

/** Returns whether the datagram has the one form of a check. */
function isCheck(datagram: Uint8Array): boolean {
  return (
    datagram.length === CHECK_LENGTH &&
    isStun(datagram) &&
    typeOf(datagram) === BINDING_REQUEST &&
    isAttribute(datagram, HEADER, Attribute.USERNAME, USERNAME) &&
    hasPadding(datagram, PADDING_AT)
  );
}

/** Fills the space before the integrity with PADDING. Its value does not matter (RFC 5780 §7.6). */
function writePadding(bytes: Uint8Array, at: number): void {
  writeAttribute(bytes, at, Attribute.PADDING, INTEGRITY_AT - at - ATTRIBUTE_HEADER);
}

function hasPadding(datagram: Uint8Array, at: number): boolean {
  return (
    isAttribute(datagram, at, Attribute.PADDING, INTEGRITY_AT - at - ATTRIBUTE_HEADER) &&
    isAttribute(datagram, INTEGRITY_AT, Attribute.MESSAGE_INTEGRITY_SHA256, INTEGRITY)
  );
}

function sealed(bytes: Uint8Array, key: Uint8Array, crypto: Hmac): Uint8Array {
  if (key.length !== CHECK_KEY_LENGTH) throw new LocalError('INVALID_ARGUMENT', `a key of checks has ${CHECK_KEY_LENGTH} bytes`);
  const code = crypto.hmacSha256(key, bytes.subarray(0, INTEGRITY_AT));
  const value = writeAttribute(bytes, INTEGRITY_AT, Attribute.MESSAGE_INTEGRITY_SHA256, INTEGRITY);
  for (let i = 0; i < INTEGRITY; i++) bytes[value + i] = code[i]!;
  return bytes;
}

/** Compares in one loop of fixed length, without creating a view of the code. */
function isIntact(datagram: Uint8Array, key: Uint8Array, crypto: Hmac): boolean {
  const code = crypto.hmacSha256(key, datagram.subarray(0, INTEGRITY_AT));
  let difference = 0;
  for (let i = 0; i < INTEGRITY; i++) difference |= code[i]! ^ datagram[INTEGRITY_AT + ATTRIBUTE_HEADER + i]!;
  return difference === 0;
}

function isHexDigit(letter: number): boolean {
  return (letter >= 0x30 && letter <= 0x39) || (letter >= 0x61 && letter <= 0x66);
}
