/**
 * Data and Route, the packets of the hot path: inspected in place, without creating an object.
 *
 *   Data   0xC0 | key phase 0x20, destination id (8), packet number u32, AEAD(frames), tag (16)
 *   Route  0x88, route id (8), one packet that is not a Route
 */
import { DATA_OVERHEAD, ID_LENGTH, joined, PacketType, ROUTE_HEADER, u32 } from './layout.ts';

const ID_AT = 1;

/** Returns whether a Data packet begins at `start`: checks the first byte and the minimum length. */
export function isData(datagram: Uint8Array, start: number): boolean {
  const type = datagram[start]!;
  return (type === PacketType.DATA || type === PacketType.DATA_PHASE) && datagram.length - start >= DATA_OVERHEAD;
}

/** Returns whether it is a Route packet that contains a packet other than Route. */
export function isRoute(datagram: Uint8Array): boolean {
  return datagram.length > ROUTE_HEADER && datagram[0] === PacketType.ROUTE && datagram[ROUTE_HEADER] !== PacketType.ROUTE;
}

/** Returns the upper half of the id of a Data or Route packet. */
export function idHigh(datagram: Uint8Array, start: number): number {
  return u32(datagram, start + ID_AT);
}

/** Returns the lower half of that id. */
export function idLow(datagram: Uint8Array, start: number): number {
  return u32(datagram, start + ID_AT + 4);
}

/** Returns the id itself, a view. */
export function packetId(datagram: Uint8Array, start: number): Uint8Array {
  return datagram.subarray(start + ID_AT, start + ID_AT + ID_LENGTH);
}

/** Returns `packet` after a Route header. */
export function routed(route: Uint8Array, packet: Uint8Array): Uint8Array {
  return joined(PacketType.ROUTE, route, packet);
}
