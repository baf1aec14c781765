/**
 * How large our packets are, as UDP payload including a Route header.
 *
 * One constant size per connection for now: what both ends, the slots and the operator's `mtu` allow. Probing for more (RFC 8899, the
 * table in PROTOCOL.md §5) changes `packetSize` here and nowhere else.
 */
import { Connection, ROUTED, flagged } from "../connection/record";
import { maxPacketSize } from "../memory/layout";
import { OVERHEAD, ROUTE_HEADER } from "./header";

/** Our constant: no peer may ask for packets that leave no room for frames. */
const LEAST_SIZE: u32 = 256;

/** UDP payload of a new connection: `mtu` as asked for, bounded by our slots and what the peer receives. */
export function initialSize(mtu: u32, peerMaxUdpPayload: u32): u32 {
  return min(min(mtu, maxPacketSize), max(peerMaxUdpPayload, LEAST_SIZE));
}

/** Bytes of frames that fit into one packet. */
export function frameSpace(c: Connection): u32 {
  return <u32>c.packetSize - OVERHEAD - (flagged(c, ROUTED) ? ROUTE_HEADER : 0);
}
