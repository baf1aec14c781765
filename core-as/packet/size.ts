/**
 * Size of our packets, as UDP payload including a Route header: `packetSize` of the connection, the PLPMTU of RFC 8899.
 *
 * It starts small and grows by probes (recovery/mtu.ts), never beyond `maxPlpmtu`: what the path, both ends and the
 * slots allow.
 */
import { maxPacketSize } from '../memory/layout';
import { Connection, flagged, PROBE, ROUTED } from '../records/connection';
import { OVERHEAD, ROUTE_HEADER } from './header';

/** RFC 8899 §5.1.2; every path of the Internet carries it (RFC 9000 §14). */
export const BASE_PLPMTU: u32 = 1_200;

/** Our constant: a lower bound, so that no peer can ask for packets without room for frames. */
const MIN_SIZE: u32 = 256;

/**
 * Sets the initial and the largest packet size of a new connection, bounded by our slots and by what the peer receives.
 */
export function initSize(c: Connection, size: u32, ceiling: u32, peerMaxUdpPayload: u32): void {
  const most = min(maxPacketSize, max(peerMaxUdpPayload, MIN_SIZE));
  c.packetSize = <u16>min(size, most);
  c.maxPlpmtu = <u16>max<u32>(c.packetSize, min(ceiling, most));
}

/** Bytes of frames that fit into one packet. */
export function frameSpace(c: Connection): u32 {
  return spaceIn(c, c.packetSize);
}

/**
 * The same for the packet under construction: a packet sent on a timeout never exceeds the base size, so that it gets
 * through where larger packets no longer do (RFC 8899 §4.3, black holes).
 */
export function frameSpaceNow(c: Connection): u32 {
  return spaceIn(c, flagged(c, PROBE) ? min<u32>(c.packetSize, BASE_PLPMTU) : c.packetSize);
}

/** Bytes of frames in a packet of `size`. */
export function spaceIn(c: Connection, size: u32): u32 {
  return size - OVERHEAD - (flagged(c, ROUTED) ? ROUTE_HEADER : 0);
}
