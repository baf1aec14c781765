/**
 * One CoAP message in the form of RFC 8323 §4.2 (over WebSockets): the channel keeps message borders and is reliable,
 * so there is no type, no message id and no length.
 *
 *     | 0 (4 bits) | TKL (4 bits) | Code (8) | Token (TKL bytes) | Options … | 0xFF | Payload … |
 *
 * Options are encoded as in RFC 7252 §3.1: delta and length in a nibble each, extended by one byte for 13 and two bytes
 * for 14. `encodeMessage` and `decodeMessage` are symmetric; the meaning of codes and options is elsewhere.
 */
import { MESSAGE_LIMIT } from '../../bindings/options.ts';
import { LocalError, RemoteError } from '../errors/index.ts';
import type { CoapOption } from './options.ts';

/** A decoded message. */
export interface CoapMessage {
  /** Raw code byte, e.g. 0x45 for 2.05. */
  readonly code: number;
  /** At most 8 bytes. */
  readonly token: Uint8Array;
  /** In any order for `encodeMessage`; ascending from `decodeMessage`. */
  readonly options: readonly CoapOption[];
  /** Empty for none. */
  readonly payload: Uint8Array;
}

/** Size of the largest message that the channel carries: R of PROTOCOL.md §5. */
export const MAX_MESSAGE = MESSAGE_LIMIT;

/** Most options of one message; a path of 256 bytes has at most 128. */
export const MAX_OPTIONS = 160;

/** Maximum length of any option (Proxy-Uri, RFC 7252 §5.10). */
const MAX_OPTION_LENGTH = 1034;
const MAX_TOKEN = 8;
const PAYLOAD_MARKER = 0xff;
/** First values encoded with one and with two extra bytes. */
const EXTEND_BY_ONE = 13;
const EXTEND_BY_TWO = 269;

/**
 * Encodes a message.
 * @throws LocalError INVALID_ARGUMENT for a code, token or option outside its range or more than `MAX_MESSAGE` bytes
 */
export function encodeMessage(message: CoapMessage): Uint8Array {
  const options = ascending(message);
  const size = messageSize(message);
  if (size > MAX_MESSAGE) invalid(`a message of ${size} bytes, ${MAX_MESSAGE} is the most`);
  const bytes = new Uint8Array(size);
  bytes[0] = message.token.length;
  bytes[1] = message.code;
  bytes.set(message.token, 2);
  let offset = 2 + message.token.length;
  let previous = 0;
  for (const option of options) {
    offset = writeOption(bytes, offset, option.number - previous, option.value);
    previous = option.number;
  }
  if (message.payload.length > 0) {
    bytes[offset] = PAYLOAD_MARKER;
    bytes.set(message.payload, offset + 1);
  }
  return bytes;
}

/** Returns the size of the encoded message in bytes, even if it is too large. */
export function messageSize(message: CoapMessage): number {
  let size = 2 + message.token.length;
  let previous = 0;
  for (const { number, value } of ascending(message)) {
    size += 1 + extensionLength(number - previous) + extensionLength(value.length) + value.length;
    previous = number;
  }
  return message.payload.length > 0 ? size + 1 + message.payload.length : size;
}

/**
 * Decodes the message in `bytes`; its token, option values and payload are views of them.
 * @throws RemoteError PARSE for a format error (RFC 7252 §3, RFC 8323 §4.2)
 */
export function decodeMessage(bytes: Uint8Array): CoapMessage {
  if (bytes.length < 2 || bytes.length > MAX_MESSAGE) malformed('its length');
  const tokenLength = bytes[0]!;
  if (tokenLength > MAX_TOKEN) malformed('its first byte');
  if (bytes.length < 2 + tokenLength) malformed('its token');
  const options: CoapOption[] = [];
  let offset = 2 + tokenLength;
  let number = 0;
  while (offset < bytes.length && bytes[offset] !== PAYLOAD_MARKER) {
    const head = readOptionHead(bytes, offset);
    number += head.delta;
    offset = head.start + head.length;
    if (offset > bytes.length || number > 0xffff) malformed('an option');
    if (options.length === MAX_OPTIONS) malformed('its number of options');
    options.push({ number, value: bytes.subarray(head.start, offset) });
  }
  if (offset === bytes.length - 1) malformed('a payload marker without payload');
  return { code: bytes[1]!, token: bytes.subarray(2, 2 + tokenLength), options, payload: bytes.subarray(offset + 1) };
}

/** Returns the token of a message that may not decode; undefined when it has no complete token. */
export function leadingToken(bytes: Uint8Array): Uint8Array | undefined {
  const length = bytes[0];
  return length === undefined || length > MAX_TOKEN || bytes.length < 2 + length ? undefined : bytes.subarray(2, 2 + length);
}

function ascending(message: CoapMessage): readonly CoapOption[] {
  const { code, token, options } = message;
  if (!Number.isInteger(code) || code < 0 || code > 255) invalid(`the code ${code}`);
  if (token.length > MAX_TOKEN) invalid(`a token of ${token.length} bytes`);
  if (options.length > MAX_OPTIONS) invalid(`${options.length} options`);
  for (const { number, value } of options) {
    if (!Number.isInteger(number) || number < 0 || number > 0xffff) invalid(`the option number ${number}`);
    if (value.length > MAX_OPTION_LENGTH) invalid(`an option of ${value.length} bytes`);
  }
  // Array sorting is stable: options of one number keep their order.
  return options.toSorted((a, b) => a.number - b.number);
}

function writeOption(bytes: Uint8Array, offset: number, delta: number, value: Uint8Array): number {
  bytes[offset] = (nibble(delta) << 4) | nibble(value.length);
  let next = writeExtension(bytes, offset + 1, delta);
  next = writeExtension(bytes, next, value.length);
  bytes.set(value, next);
  return next + value.length;
}

function nibble(value: number): number {
  if (value < EXTEND_BY_ONE) return value;
  return value < EXTEND_BY_TWO ? 13 : 14;
}

function extensionLength(value: number): number {
  if (value < EXTEND_BY_ONE) return 0;
  return value < EXTEND_BY_TWO ? 1 : 2;
}

function writeExtension(bytes: Uint8Array, offset: number, value: number): number {
  if (value < EXTEND_BY_ONE) return offset;
  if (value < EXTEND_BY_TWO) {
    bytes[offset] = value - EXTEND_BY_ONE;
    return offset + 1;
  }
  bytes[offset] = (value - EXTEND_BY_TWO) >> 8;
  bytes[offset + 1] = (value - EXTEND_BY_TWO) & 255;
  return offset + 2;
}

interface OptionHead {
  readonly delta: number;
  readonly length: number;
  /** Offset of the value. */
  readonly start: number;
}

function readOptionHead(bytes: Uint8Array, offset: number): OptionHead {
  const deltaNibble = bytes[offset]! >> 4;
  const lengthNibble = bytes[offset]! & 15;
  const afterDelta = offset + 1 + nibbleExtension(deltaNibble);
  const start = afterDelta + nibbleExtension(lengthNibble);
  if (start > bytes.length) malformed('an option');
  const delta = readExtended(bytes, offset + 1, deltaNibble);
  return { delta, length: readExtended(bytes, afterDelta, lengthNibble), start };
}

function nibbleExtension(value: number): number {
  if (value === 15) malformed('an option nibble of 15');
  return value < 13 ? 0 : value - 12;
}

function readExtended(bytes: Uint8Array, offset: number, value: number): number {
  if (value < 13) return value;
  if (value === 13) return bytes[offset]! + EXTEND_BY_ONE;
  return (bytes[offset]! << 8) + bytes[offset + 1]! + EXTEND_BY_TWO;
}

/** @throws LocalError INVALID_ARGUMENT */
export function invalid(what: string): never {
  throw new LocalError('INVALID_ARGUMENT', `CoAP: ${what} cannot be sent`);
}

function malformed(where: string): never {
  throw new RemoteError('PARSE', `CoAP: a message is malformed in ${where}`);
}

const WHOLE = 8;

/**
 * Returns a string that is equal exactly for equal bytes. It is called several times per exchange, so tokens of our own
 * length take a path without an iterator.
 */
export function tokenKey(token: Uint8Array): string {
  if (token.length !== WHOLE) return String.fromCharCode(...token);
  return String.fromCharCode(token[0]!, token[1]!, token[2]!, token[3]!, token[4]!, token[5]!, token[6]!, token[7]!);
}
