/**
 * Messages of STUN (RFC 8489 §5), as far as Binding needs them: the header, and the attribute with the mapped address.
 *
 *   0   type u16: two zero bits, then method and class
 *   2   length u16 of what follows the header, a multiple of 4
 *   4   magic cookie
 *   8   transaction id (12)
 *   20  attributes: type u16, length u16, value, zero to three bytes of padding
 *
 * Nothing here verifies anything. Attributes we do not use, errors, indications and other methods are not here.
 */
import { formatAddress, parseAddress, type SocketAddress } from '../address.ts';
import { LocalError } from '../errors/index.ts';

/** Class and method in one (RFC 8489 §5 and §18.2). */
export const BINDING_REQUEST = 0x0001;
export const BINDING_SUCCESS = 0x0101;
/** Attribute types (RFC 8489 §18.3). */
export const Attribute = {
  MAPPED_ADDRESS: 0x0001,
  USERNAME: 0x0006,
  MESSAGE_INTEGRITY: 0x0008,
  MESSAGE_INTEGRITY_SHA256: 0x001c,
  XOR_MAPPED_ADDRESS: 0x0020,
  /** RFC 5780 §7.6. */
  PADDING: 0x0026,
  /** RFC 5780 §7.5. */
  RESPONSE_PORT: 0x0027,
} as const;
/** A receiver may skip unknown attributes from this number on (RFC 8489 §14). */
export const COMPREHENSION_OPTIONAL = 0x8000;
/** Length of the header (RFC 8489 §5). */
export const HEADER = 20;
export const TRANSACTION_LENGTH = 12;
/** Type and length of an attribute (RFC 8489 §14). */
export const ATTRIBUTE_HEADER = 4;

const MAGIC_COOKIE = 0x2112_a442;
const TYPE_AT = 0;
const LENGTH_AT = 2;
const COOKIE_AT = 4;
const TRANSACTION_AT = 8;
/** A reserved byte, then the family (RFC 8489 §14.1). */
const FAMILY_AT = 1;
const PORT_AT = 2;
const IP_AT = 4;
const IPV4 = 0x01;
const IPV6 = 0x02;
const HEX = '0123456789abcdef';

/**
 * Returns whether a datagram on a socket with other packets is STUN: two zero bits, the cookie, and a matching length.
 * No packet of this protocol has these.
 */
export function isStun(datagram: Uint8Array): boolean {
  return (
    datagram.length >= HEADER &&
    datagram[TYPE_AT]! < 4 &&
    u32(datagram, COOKIE_AT) === MAGIC_COOKIE &&
    u16(datagram, LENGTH_AT) === datagram.length - HEADER &&
    datagram.length % 4 === 0
  );
}

/** Returns the method and class of a STUN datagram. */
export function typeOf(datagram: Uint8Array): number {
  return u16(datagram, TYPE_AT);
}

/** Returns the transaction id of a STUN datagram, a view. */
export function transactionOf(datagram: Uint8Array): Uint8Array {
  return datagram.subarray(TRANSACTION_AT, HEADER);
}

/**
 * Returns a message with its header and zeros in place of its attributes.
 * @param length of the whole, a multiple of 4
 * @throws LocalError INVALID_ARGUMENT for a transaction id that does not have 12 bytes
 */
export function message(type: number, length: number, transaction: Uint8Array): Uint8Array {
  if (transaction.length !== TRANSACTION_LENGTH) throw new LocalError('INVALID_ARGUMENT', 'a transaction id has 12 bytes');
  const bytes = new Uint8Array(length);
  writeU16(bytes, TYPE_AT, type);
  writeU16(bytes, LENGTH_AT, length - HEADER);
  writeU16(bytes, COOKIE_AT, MAGIC_COOKIE >>> 16);
  writeU16(bytes, COOKIE_AT + 2, MAGIC_COOKIE & 0xffff);
  bytes.set(transaction, TRANSACTION_AT);
  return bytes;
}

/** Writes the head of an attribute and returns the offset of its value. */
export function writeAttribute(bytes: Uint8Array, at: number, type: number, length: number): number {
  writeU16(bytes, at, type);
  writeU16(bytes, at + 2, length);
  return at + ATTRIBUTE_HEADER;
}

/** Returns whether there is an attribute of this type and length at `at`, which must be inside the datagram. */
export function isAttribute(datagram: Uint8Array, at: number, type: number, length: number): boolean {
  return u16(datagram, at) === type && u16(datagram, at + 2) === length;
}

/** Returns the 4 or 16 bytes of an address. @throws LocalError INVALID_ARGUMENT for a name */
export function ipOf(address: string): Uint8Array {
  const ip = parseAddress(address);
  if (ip === null) throw new LocalError('INVALID_ARGUMENT', `${address} is not a numeric address`);
  return ip;
}

/** Returns the length of XOR-MAPPED-ADDRESS for an IP of that many bytes, without its head. */
export function mappedLength(ipLength: number): number {
  return IP_AT + ipLength;
}

/**
 * Writes XOR-MAPPED-ADDRESS (RFC 8489 §14.2) into a message with a header and returns the offset of the next attribute.
 */
export function writeMapped(bytes: Uint8Array, at: number, ip: Uint8Array, port: number): number {
  const length = mappedLength(ip.length);
  const value = writeAttribute(bytes, at, Attribute.XOR_MAPPED_ADDRESS, length);
  bytes[value + FAMILY_AT] = ip.length === 4 ? IPV4 : IPV6;
  writeU16(bytes, value + PORT_AT, port ^ (MAGIC_COOKIE >>> 16));
  for (let i = 0; i < ip.length; i++) bytes[value + IP_AT + i] = ip[i]! ^ bytes[COOKIE_AT + i]!;
  return value + length;
}

/**
 * Returns the address in a value of XOR-MAPPED-ADDRESS; null for another family or length, and for port 0.
 * @param at offset of the value, which has `length` bytes
 */
export function readMapped(datagram: Uint8Array, at: number, length: number): SocketAddress | null {
  const family = length === mappedLength(4) ? IPV4 : length === mappedLength(16) ? IPV6 : 0;
  if (family === 0 || datagram[at + FAMILY_AT] !== family) return null;
  const port = u16(datagram, at + PORT_AT) ^ (MAGIC_COOKIE >>> 16);
  if (port === 0) return null;
  const ip = datagram.slice(at + IP_AT, at + length);
  for (let i = 0; i < ip.length; i++) ip[i]! ^= datagram[COOKIE_AT + i]!;
  return { address: formatAddress(ip), port };
}

/** Returns bytes as lower-case hex digits, for use as a map key. */
export function digits(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]! >> 4]! + HEX[bytes[i]! & 0xf]!;
  return text;
}

export function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function u32(bytes: Uint8Array, at: number): number {
  return ((u16(bytes, at) << 16) | u16(bytes, at + 2)) >>> 0;
}

export function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value;
}
