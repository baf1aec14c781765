/**
 * Initiate: the first packet of a handshake.
 *
 *   0   0x80
 *   1   version u8
 *   2   suite u8
 *   3   source id (8), chosen by the initiator
 *   11  length u16 of what follows mac1
 *   13  mac1 (16)
 *   29  token length u8, token (≤ 128), Noise message 1
 *   …   zero padding to 1,200 in a bare datagram, ignored
 *
 * mac1 = HMAC-SHA-256, first 16 bytes, under SHA-256("svc mac1" ‖ responder name), over everything from the first byte
 * to the end of the `length` bytes, with mac1 itself as zeros.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from '../identity/index.ts';
import { ID_LENGTH, INITIATE_PADDED, MAC_LENGTH, MAX_RETRY_TOKEN, PacketType, u16, writeU16 } from './layout.ts';

const VERSION_AT = 1;
const SUITE_AT = 2;
const SOURCE_AT = 3;
const LENGTH_AT = SOURCE_AT + ID_LENGTH;
const MAC_AT = LENGTH_AT + 2;
const BODY_AT = MAC_AT + MAC_LENGTH;
const MAC1_LABEL = new TextEncoder().encode('svc mac1');
const NO_MAC = new Uint8Array(MAC_LENGTH);

/** The fields of an Initiate, as views into the datagram. */
export interface Initiate {
  readonly version: number;
  readonly suite: number;
  readonly source: Uint8Array;
  /** Empty when the initiator has none. */
  readonly token: Uint8Array;
  readonly message: Uint8Array;
}

/** Returns the key of mac1 for a responder name. */
export function mac1Key(crypto: Pick<CryptoProvider, 'sha256'>, responderName: string): Uint8Array {
  return crypto.sha256(MAC1_LABEL, new TextEncoder().encode(responderName));
}

/** Encodes an Initiate with its mac1, without padding. */
export function encodeInitiate(crypto: Pick<CryptoProvider, 'hmacSha256'>, key: Uint8Array, fields: Initiate): Uint8Array {
  const length = 1 + fields.token.length + fields.message.length;
  const packet = new Uint8Array(BODY_AT + length);
  packet[0] = PacketType.INITIATE;
  packet[VERSION_AT] = fields.version;
  packet[SUITE_AT] = fields.suite;
  packet.set(fields.source, SOURCE_AT);
  writeU16(packet, LENGTH_AT, length);
  packet[BODY_AT] = fields.token.length;
  packet.set(fields.token, BODY_AT + 1);
  packet.set(fields.message, BODY_AT + 1 + fields.token.length);
  packet.set(mac1(crypto, key, packet), MAC_AT);
  return packet;
}

/** Returns the fields of an Initiate, or null. Does not check mac1. */
export function decodeInitiate(packet: Uint8Array): Initiate | null {
  if (packet.length <= BODY_AT || packet[0] !== PacketType.INITIATE) return null;
  const end = BODY_AT + u16(packet, LENGTH_AT);
  const tokenLength = packet[BODY_AT]!;
  const messageAt = BODY_AT + 1 + tokenLength;
  if (end > packet.length || messageAt > end || tokenLength > MAX_RETRY_TOKEN) return null;
  return {
    version: packet[VERSION_AT]!,
    suite: packet[SUITE_AT]!,
    source: packet.subarray(SOURCE_AT, SOURCE_AT + ID_LENGTH),
    token: packet.subarray(BODY_AT + 1, messageAt),
    message: packet.subarray(messageAt, end),
  };
}

/** Returns whether mac1 of a decoded Initiate is valid under `key`. */
export function mac1Holds(crypto: Pick<CryptoProvider, 'hmacSha256'>, key: Uint8Array, packet: Uint8Array): boolean {
  const covered = packet.subarray(0, BODY_AT + u16(packet, LENGTH_AT));
  return equalBytes(mac1(crypto, key, covered), packet.subarray(MAC_AT, BODY_AT));
}

/** Returns the packet as sent in a bare datagram: filled with zeros to 1,200 bytes. */
export function padded(packet: Uint8Array): Uint8Array {
  if (packet.length >= INITIATE_PADDED) return packet;
  const datagram = new Uint8Array(INITIATE_PADDED);
  datagram.set(packet);
  return datagram;
}

function mac1(crypto: Pick<CryptoProvider, 'hmacSha256'>, key: Uint8Array, covered: Uint8Array): Uint8Array {
  const code = crypto.hmacSha256(key, covered.subarray(0, MAC_AT), NO_MAC, covered.subarray(BODY_AT));
  return code.subarray(0, MAC_LENGTH);
}
