/**
 * One CoAP message as UDP carries it (RFC 7252 §3):
 *
 *     | Ver = 1 (2 bits) | Type (2) | TKL (4) | Code (8) | Message ID (16) | Token | Options … | 0xFF | Payload … |
 *
 * From the token on it is encoded as in our own channels, so `coap/message.ts` does that part.
 */
import { type CoapMessage, decodeMessage, encodeMessage } from '../coap/message.ts';
import { orElse } from '../or-else.ts';

/** Types of messages (RFC 7252 §3). */
export const MessageType = { CONFIRMABLE: 0, NON_CONFIRMABLE: 1, ACKNOWLEDGEMENT: 2, RESET: 3 } as const;

/** Type, id and content of a message; the content is undefined when it is malformed. */
export interface Datagram {
  readonly type: number;
  readonly id: number;
  readonly message: CoapMessage | undefined;
}

const VERSION = 1;
const EMPTY = new Uint8Array(0);

/**
 * Decodes the message in `bytes`, which it changes and keeps. Returns undefined for bytes that must be silently
 * ignored: they are too short, or of another version.
 */
export function decodeDatagram(bytes: Uint8Array): Datagram | undefined {
  if (bytes.length < 4 || bytes[0]! >> 6 !== VERSION) return undefined;
  const type = (bytes[0]! >> 4) & 3;
  const id = (bytes[2]! << 8) | bytes[3]!;
  // The same bytes without message id: a zero length nibble, token length, code, and the rest.
  const rest = bytes.subarray(2);
  rest[0] = bytes[0]! & 15;
  rest[1] = bytes[1]!;
  return { type, id, message: decoded(rest) };
}

/** @throws LocalError INVALID_ARGUMENT as `encodeMessage` */
export function encodeDatagram(type: number, id: number, message: CoapMessage): Uint8Array {
  const rest = encodeMessage(message);
  const bytes = new Uint8Array(rest.length + 2);
  bytes.set(rest, 2);
  bytes[0] = (VERSION << 6) | (type << 4) | rest[0]!;
  bytes[1] = rest[1]!;
  bytes[2] = id >> 8;
  bytes[3] = id & 255;
  return bytes;
}

/** Returns an acknowledgement or a reset without content. */
export function encodeEmpty(type: number, id: number): Uint8Array {
  return encodeDatagram(type, id, { code: 0, token: EMPTY, options: [], payload: EMPTY });
}

function decoded(bytes: Uint8Array): CoapMessage | undefined {
  const message = orElse(() => decodeMessage(bytes), undefined);
  // An empty message has nothing after its id (RFC 7252 §4.1).
  return message?.code === 0 && bytes.length > 2 ? undefined : message;
}
