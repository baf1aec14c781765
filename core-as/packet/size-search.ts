/**
 * Search for the largest packet that the path carries (RFC 8899), and the way back when it carries less than it did.
 *
 *   bulk demand ─▶ probe of the next size ─┬ acknowledged ─▶ packets have that size; next size at once
 *                                          └ lost ─▶ again, later; lost MAX_PROBES times ─▶ rest for PMTU_RAISE_TIMER
 *   three large packets lost in a row ─▶ base size, rest for BLACK_HOLE_REST (or none, see below)
 *
 * - The sizes are a fixed table up to the ceiling the host gives, and then the ceiling itself. Node cannot forbid IP fragmentation, so a
 *   probe beyond what the link carries may arrive in fragments: the ceiling is what keeps us from trying (PROTOCOL.md §5).
 * - A probe is a packet of its own, PING and PADDING: its loss costs no data, is no sign of congestion (§3, item 7) and is not counted
 *   as a lost packet. It is in flight like any other packet.
 * - Only a connection in bulk transfer searches: whoever has a request now and then gains nothing. And only on a validated path: there
 *   is no room for more than is asked for below the 3 × limit (RFC 9000 §8).
 * - Black hole: lost packets larger than the base size are counted until one is acknowledged that was sent later than they. At three, all
 *   that are still out at that size are taken for the path's doing and not for congestion, unless a packet of base size was lost among
 *   them: then the path lost packets of every size, all of it counts, and the search begins again at once. Losses that were found in
 *   earlier calls than the third have been counted as congestion by then; that is not undone.
 * - What a timeout sends has base size (size.ts), so that a black hole is found after one timeout.
 */
import { Connection, LIMITED, PROBE, flagged } from "../connection/record";
import { maxPacketSize } from "../memory/layout";
import { OUTSTANDING, SentPacket, flightOf, recordOf } from "../recovery/flight";
import { isLost } from "../recovery/reordering";
import { probeTimeout } from "../recovery/rtt";
import { hasStreamData } from "../streams/scheduler";
import { BASE_PLPMTU } from "./size";

// RFC 8899 §5.1
const MAX_PROBES: u8 = 3;
const PMTU_RAISE_TIMER: f64 = 600_000;

/** Our constant: RFC 8899 §4.3 leaves the pause open; a path that has just changed may change back. ms. */
const BLACK_HOLE_REST: f64 = 30_000;
const BLACK_HOLE_PACKETS: u8 = 3;

/** Our constant: with so many packets under way, and more to send, a transfer is worth a search. */
const BULK_PACKETS: u32 = 8;
/** Our constant: a size is tried only while the window holds so many packets of it, so that no step makes the window a few packets. */
const WINDOW_PACKETS: u32 = 8;

/** In `largeLost`: a packet of base size was lost as well. */
const SMALL_LOST: u8 = 0x80;

/** PROTOCOL.md §5: IPv6's least, common tunnels, Ethernet; then loopback and links with a stated MTU. */
const SIZES: usize = memory.data<u16>([1_200, 1_232, 1_392, 1_452, 4_096, 8_192, 16_384, 32_768, 65_000]);
const SIZE_COUNT: usize = 9;

/** The connection is on another path, which may carry up to `ceiling` bytes: begin anew. What is in flight tells nothing of it. */
export function resetSize(c: Connection, ceiling: u32): void {
  c.packetSize = <u16>min<u32>(c.packetSize, BASE_PLPMTU);
  c.maxPlpmtu = <u16>max<u32>(c.packetSize, min(ceiling, maxPacketSize));
  rest(c, 0);
  if (!c.flight) return;
  const flight = flightOf(c);
  flight.sizeProbe = 0;
  flight.largeAcked = c.nextNumber;
}

/** Packets may have up to `ceiling` bytes on this path, if that is more than was known: what was found out stays. */
export function allowSize(c: Connection, ceiling: u32): void {
  c.maxPlpmtu = <u16>max<u32>(c.maxPlpmtu, min(ceiling, maxPacketSize));
}

/** Size of the probe that may go out now, 0 = none. Asked when window and pacer let a packet go. */
export function sizeProbeDue(c: Connection, now: f64): u32 {
  if (c.packetSize >= c.maxPlpmtu || now < <f64>c.searchTime) return 0;
  const flight = flightOf(c);
  if (flight.sizeProbe || flight.outstanding < BULK_PACKETS || flagged(c, PROBE | LIMITED) || !hasStreamData(c)) return 0;
  const size = nextSize(c);
  return c.congestionWindow >= WINDOW_PACKETS * size ? size : 0;
}

/** The probe went out as packet `number`. */
export function onSizeProbeSent(c: Connection, number: u64): void {
  flightOf(c).sizeProbe = number;
}

/** Packet `number` was acknowledged. */
export function onSizeAcked(c: Connection, record: SentPacket, number: u64): void {
  if (record.size <= <u16>BASE_PLPMTU) return;
  const flight = flightOf(c);
  if (record.sizeProbe) {
    if (number != flight.sizeProbe) return;
    flight.sizeProbe = 0;
    c.packetSize = record.size;
    rest(c, 0);
  }
  if (number < flight.largeAcked) return;
  flight.largeAcked = number;
  c.largeLost = 0;
}

/** Probe `number` was lost. */
export function onSizeProbeLost(c: Connection, number: u64, now: f64): void {
  const flight = flightOf(c);
  if (number != flight.sizeProbe) return;
  flight.sizeProbe = 0;
  c.searchTime = <f32>(now + probeTimeout(c) * <f64>(1 << c.probeCount));
  c.probeCount++;
  if (c.probeCount >= MAX_PROBES) rest(c, now + PMTU_RAISE_TIMER);
}

/**
 * Counts the large packets that are lost now (`isLost` of recovery/reordering.ts) and falls back at the third; asked before they are settled,
 * since what they mean depends on it. `isExcused` tells afterwards which of them are no congestion.
 */
export function findBlackHole(c: Connection, delay: f64, now: f64): void {
  if (c.packetSize <= <u16>BASE_PLPMTU) return;
  const flight = flightOf(c);
  for (let number = max(flight.base, flight.largeAcked + 1); <i64>number <= c.largestAcked; number++) {
    const record = recordOf(c, number);
    if (!changetype<usize>(record) || record.state != OUTSTANDING || record.complete || record.sizeProbe) continue;
    if (!isLost(c, record, number, delay, now)) continue;
    if (record.size <= <u16>BASE_PLPMTU) {
      if (c.largeLost) c.largeLost |= SMALL_LOST;
    } else if ((c.largeLost & ~SMALL_LOST) < BLACK_HOLE_PACKETS) c.largeLost++;
  }
  if ((c.largeLost & ~SMALL_LOST) < BLACK_HOLE_PACKETS) return;
  const outage = (c.largeLost & SMALL_LOST) != 0;
  if (!outage) flight.excusedBelow = c.nextNumber;
  c.packetSize = <u16>BASE_PLPMTU;
  flight.sizeProbe = 0;
  rest(c, outage ? now : now + BLACK_HOLE_REST);
}

/** Whether the loss of packet `number` is the black hole's. */
export function isExcused(c: Connection, record: SentPacket, number: u64): bool {
  return number < flightOf(c).excusedBelow && record.size > <u16>BASE_PLPMTU;
}

/** No probe before `time`, and then as if none had been lost. */
function rest(c: Connection, time: f64): void {
  c.searchTime = <f32>time;
  c.probeCount = 0;
  c.largeLost = 0;
}

/** The size after `packetSize`. */
function nextSize(c: Connection): u32 {
  for (let i: usize = 0; i < SIZE_COUNT; i++) {
    const size = load<u16>(SIZES + (i << 1));
    if (size > c.packetSize) return min(size, c.maxPlpmtu);
  }
  return c.maxPlpmtu;
}
