/**
 * Reset: "the state of this id is lost". Sent only in answer to Data or Route, and smaller than either.
 *
 *   0  0x84
 *   1  the id of the packet it answers (8): a connection id or a route id
 *   9  token (16) = HMAC-SHA-256(reset secret, id), first 16 bytes
 */
import { ID_LENGTH, joined, PacketType, TOKEN_LENGTH } from './layout.ts';

const ID_AT = 1;
const TOKEN_AT = ID_AT + ID_LENGTH;
export const RESET_LENGTH = TOKEN_AT + TOKEN_LENGTH;

/** The state of `id` is lost; `token` authenticates the statement. */
export interface Reset {
  readonly id: Uint8Array;
  readonly token: Uint8Array;
}

/** Encodes a Reset. */
export function encodeReset(fields: Reset): Uint8Array {
  return joined(PacketType.RESET, fields.id, fields.token);
}

/** Returns the fields of a Reset, or null. */
export function decodeReset(packet: Uint8Array): Reset | null {
  if (packet[0] !== PacketType.RESET || packet.length !== RESET_LENGTH) return null;
  return { id: packet.subarray(ID_AT, TOKEN_AT), token: packet.subarray(TOKEN_AT) };
}
