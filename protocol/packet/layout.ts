/**
 * Byte layout of every packet (PROTOCOL.md §2) and the accessors that all codecs share. Integers are in network byte
 * order.
 *
 * A codec checks the length once, then its accessors cannot fail. A datagram that is too short or too long yields null,
 * never an error: its sender is not known yet, so it is dropped and counted.
 */

/** First byte of a packet. 0–3 stay free for STUN (RFC 7983). */
export const PacketType = {
  INITIATE: 0x80,
  RETRY: 0x81,
  RESPOND: 0x82,
  COMPLETE: 0x83,
  RESET: 0x84,
  VERSIONS: 0x85,
  ROUTE: 0x88,
  DATA: 0xc0,
  /** Data of the other key phase. */
  DATA_PHASE: 0xe0,
} as const;

/** The only version and suite: Noise_XX_25519_ChaChaPoly_SHA256. */
export const VERSION = 1;
export const SUITE = 1;

/** Bytes of a connection id and of a route id. */
export const ID_LENGTH = 8;
/** Bytes of mac1 and of a reset token. */
export const MAC_LENGTH = 16;
export const TOKEN_LENGTH = 16;
/** Size to which an Initiate in a bare datagram is padded. */
export const INITIATE_PADDED = 1200;
/** Longest token of a Retry. */
export const MAX_RETRY_TOKEN = 128;
/** First byte and route id. */
export const ROUTE_HEADER = 1 + ID_LENGTH;
/** First byte, id, packet number and tag of a Data packet. */
export const DATA_OVERHEAD = 29;

/** Returns the u16 at offset `at`. */
export function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Returns the u32 at offset `at`. */
export function u32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/** Writes the low 16 bits of `value` at offset `at`. */
export function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

/** Writes the low 32 bits of `value` at offset `at`. */
export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Concatenates parts after a packet type. */
export function joined(type: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const packet = new Uint8Array(1 + parts.reduce((length, part) => length + part.length, 0));
  packet[0] = type;
  let at = 1;
  for (const part of parts) {
    packet.set(part, at);
    at += part.length;
  }
  return packet;
}
