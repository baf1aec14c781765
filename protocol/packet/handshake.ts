/**
 * The other packets of the handshake. Decoded fields are views into the packet.
 *
 *   Retry     0x81, destination id (8), token (1 to 128)
 *   Respond   0x82, destination id (8), source id (8), Noise message 2
 *   Complete  0x83, destination id (8), Noise message 3
 *   Versions  0x85, source id of the Initiate (8), count u8, versions, count u8, suites
 */
import { ID_LENGTH, joined, MAX_RETRY_TOKEN, PacketType } from './layout.ts';

const DESTINATION_AT = 1;
const AFTER_DESTINATION = DESTINATION_AT + ID_LENGTH;

/** A request to repeat the Initiate with a token. */
export interface Retry {
  readonly destination: Uint8Array;
  readonly token: Uint8Array;
}

/** The responder's answer. */
export interface Respond {
  readonly destination: Uint8Array;
  readonly source: Uint8Array;
  readonly message: Uint8Array;
}

/** The end of the handshake. */
export interface Complete {
  readonly destination: Uint8Array;
  readonly message: Uint8Array;
}

/** The versions and suites that the responder supports, when they do not include those offered. */
export interface Versions {
  /** Source id of the Initiate it answers. */
  readonly destination: Uint8Array;
  readonly versions: Uint8Array;
  readonly suites: Uint8Array;
}

/** Encodes a Retry; the token has 1 to 128 bytes. */
export function encodeRetry(fields: Retry): Uint8Array {
  return joined(PacketType.RETRY, fields.destination, fields.token);
}

/** Returns the fields of a Retry, or null. */
export function decodeRetry(packet: Uint8Array): Retry | null {
  const tokenLength = packet.length - AFTER_DESTINATION;
  if (packet[0] !== PacketType.RETRY || tokenLength < 1 || tokenLength > MAX_RETRY_TOKEN) return null;
  return { destination: destination(packet), token: packet.subarray(AFTER_DESTINATION) };
}

/** Encodes a Respond; `message` is Noise message 2. */
export function encodeRespond(fields: Respond): Uint8Array {
  return joined(PacketType.RESPOND, fields.destination, fields.source, fields.message);
}

/** Returns the fields of a Respond, or null. */
export function decodeRespond(packet: Uint8Array): Respond | null {
  const messageAt = AFTER_DESTINATION + ID_LENGTH;
  if (packet[0] !== PacketType.RESPOND || packet.length <= messageAt) return null;
  return {
    destination: destination(packet),
    source: packet.subarray(AFTER_DESTINATION, messageAt),
    message: packet.subarray(messageAt),
  };
}

/** Encodes a Complete; `message` is Noise message 3. */
export function encodeComplete(fields: Complete): Uint8Array {
  return joined(PacketType.COMPLETE, fields.destination, fields.message);
}

/** Returns the fields of a Complete, or null. */
export function decodeComplete(packet: Uint8Array): Complete | null {
  if (packet[0] !== PacketType.COMPLETE || packet.length <= AFTER_DESTINATION) return null;
  return { destination: destination(packet), message: packet.subarray(AFTER_DESTINATION) };
}

/** Encodes a Versions; at most 255 of each. */
export function encodeVersions(fields: Versions): Uint8Array {
  const counts = [Uint8Array.of(fields.versions.length), Uint8Array.of(fields.suites.length)] as const;
  return joined(PacketType.VERSIONS, fields.destination, counts[0], fields.versions, counts[1], fields.suites);
}

/** Returns the fields of a Versions, or null. Ignores bytes after the suites: a later version may add fields. */
export function decodeVersions(packet: Uint8Array): Versions | null {
  if (packet[0] !== PacketType.VERSIONS || packet.length <= AFTER_DESTINATION) return null;
  const versionsAt = AFTER_DESTINATION + 1;
  const suiteCountAt = versionsAt + packet[AFTER_DESTINATION]!;
  if (packet.length <= suiteCountAt) return null;
  const suitesAt = suiteCountAt + 1;
  const end = suitesAt + packet[suiteCountAt]!;
  if (packet.length < end) return null;
  return {
    destination: destination(packet),
    versions: packet.subarray(versionsAt, suiteCountAt),
    suites: packet.subarray(suitesAt, end),
  };
}

function destination(packet: Uint8Array): Uint8Array {
  return packet.subarray(DESTINATION_AT, AFTER_DESTINATION);
}
