/**
 * Path MTU discovery (DPLPMTUD, RFC 8899): the largest packet that the path carries, and the fallback when it carries
 * less.
 *
 *   bulk demand ─▶ probe of the next size ─┬ acknowledged ─▶ packets have that size; next size at once
 *                                          └ lost ─▶ again, later; lost MAX_PROBES times ─▶ rest for PMTU_RAISE_TIMER
 *   three large packets lost in a row ─▶ base size; probe of the size before ─┬ acknowledged ─▶ that size again
 *                                                                             └ lost twice ─▶ rest for BLACK_HOLE_REST
 *
 * - The sizes are a fixed table up to the caller's ceiling, then the ceiling itself. Node cannot forbid IP
 *   fragmentation, so a probe larger than the link's MTU may arrive in fragments: the ceiling prevents such probes
 *   (docs/transport.md §5).
 * - A probe is a packet of its own, PING and PADDING: its loss costs no data, is no sign of congestion (§3, item 7) and
 *   is not counted as a lost packet. It is in flight like any other packet.
 * - Only a connection in bulk transfer probes: occasional requests gain nothing. And only on a validated path:
 *   otherwise the anti-amplification limit leaves no room for probes (RFC 9000 §8).
 * - Black hole: lost packets larger than the base size are counted until one is acknowledged that was sent later. At
 *   three, the loss of everything in flight at that size is attributed to the path and not to congestion, unless a
 *   packet of base size was lost among them: then the path lost packets of every size, and all of it counts. Losses
 *   found in earlier calls than the third have already counted as congestion; that is not undone.
 * - Confirmation: the end of a burst that was lost by chance looks the same. So the size before is probed at once and,
 *   when that probe is lost, once more a PTO later. The first acknowledged probe undoes the fall, and the excused
 *   losses count as one. When both are lost discovery rests, or resumes immediately if losses were of every size. Such
 *   a probe needs no bulk transfer, only something to send. A path that passes probes and swallows data gets
 *   MAX_UNDONE falls undone, each within 30 s of the one before; the next counts without a probe.
 * - A packet sent on a timeout has base size (size.ts), so that a black hole is found after one timeout.
 */
import { onCongestionLost } from '../congestion/congestion';
import { maxPacketSize } from '../memory/layout';
import { BASE_PLPMTU } from '../packet/size';
import { Connection, flagged, LIMITED, PROBE } from '../records/connection';
import { flightOf, OUTSTANDING, recordOf, SentPacket } from '../records/flight';
import { probeTimeout } from '../records/rtt';
import { hasStreamData } from '../streams/scheduler';
import { isLost } from './reordering';

// RFC 8899 §5.1
const MAX_PROBES: u8 = 3;
const PMTU_RAISE_TIMER: f64 = 600_000;

/** Our constant: RFC 8899 §4.3 leaves the pause open; a path that has just changed may change back. ms. */
const BLACK_HOLE_REST: f64 = 30_000;
const BLACK_HOLE_PACKETS: u8 = 3;
/** Our constants: probes that confirm a fall by their loss; falls undone in a row. */
const CONFIRMING_PROBES: u8 = 2;
const MAX_UNDONE: u8 = 4;

/** Our constant: with this many packets in flight, and more to send, a transfer is worth a probe. */
const BULK_PACKETS: u32 = 8;
/**
 * Our constant: a size is tried only while the window holds this many packets of it, the least that BBR keeps
 * (MinPipeCwndPackets). With 8, one bulk transfer in five on loopback stayed at 32,768: twice its rate times a round
 * trip of 0.3 ms is less than 520,000 bytes.
 */
const WINDOW_PACKETS: u32 = 4;
/** The same for a size that was in use: only the minimum window (RFC 9002 §7.2). */
const WINDOW_PACKETS_BEFORE: u32 = 2;

// In `largeLost`: packets lost in a row; the size before the fall, as its index in SIZES plus one, or CEILING, 0 =
// there was no fall; whether a packet of base size was lost as well.
const COUNT: u8 = 0x03;
const FORMER: u8 = 0x3c;
const FORMER_ONE: u8 = 0x04;
const SMALL_LOST: u8 = 0x80;
/** In FORMER: the size was `maxPlpmtu`. */
const CEILING: u8 = 15 * FORMER_ONE;

// In `probeCount`: probes lost; falls undone.
const PROBES_LOST: u8 = 0x0f;
const UNDONE_ONE: u8 = 0x10;

/** docs/transport.md §5: IPv6's minimum, common tunnels, Ethernet; then loopback and links with a stated MTU. */
const SIZES: usize = memory.data<u16>([1_200, 1_232, 1_392, 1_452, 4_096, 8_192, 16_384, 32_768, 65_000]);
const SIZE_COUNT: usize = 9;

/**
 * The connection is on another path, which may carry up to `ceiling` bytes: starts again. Packets in flight say nothing
 * about it.
 */
export function resetSize(c: Connection, ceiling: u32): void {
  c.packetSize = <u16>min<u32>(c.packetSize, BASE_PLPMTU);
  c.maxPlpmtu = <u16>max<u32>(c.packetSize, min(ceiling, maxPacketSize));
  rest(c, 0);
  if (!c.flight) return;
  const flight = flightOf(c);
  flight.mtuProbe = 0;
  flight.largeAcked = c.nextNumber;
}

/** Allows up to `ceiling` bytes on this path, if that is more than before; earlier findings stay. */
export function allowSize(c: Connection, ceiling: u32): void {
  const most = min(ceiling, maxPacketSize);
  if (most <= <u32>c.maxPlpmtu) return;
  // The size to return to may be stored as the previous ceiling.
  if (isConfirming(c)) rest(c, 0);
  c.maxPlpmtu = <u16>most;
}

/** Size of the probe that may go out now, 0 = none. Called when window and pacer allow a packet. */
export function mtuProbeDue(c: Connection, now: f64): u32 {
  if (c.packetSize >= c.maxPlpmtu || now < <f64>c.nextMtuProbe) return 0;
  const flight = flightOf(c);
  if (flight.mtuProbe || flagged(c, PROBE | LIMITED)) return 0;
  if (isConfirming(c)) {
    const former = sizeBefore(c);
    return c.congestionWindow >= WINDOW_PACKETS_BEFORE * former ? former : 0;
  }
  if (flight.outstanding < BULK_PACKETS || !hasStreamData(c)) return 0;
  const size = nextSize(c);
  return c.congestionWindow >= WINDOW_PACKETS * size ? size : 0;
}

/** Packet `number` was acknowledged. */
export function onSizeAcked(c: Connection, record: SentPacket, number: u64, now: f64): void {
  if (record.size <= <u16>BASE_PLPMTU) return;
  const flight = flightOf(c);
  if (record.mtuProbe) {
    if (number != flight.mtuProbe) return;
    flight.mtuProbe = 0;
    c.packetSize = record.size;
    if (isConfirming(c)) undoFall(c, record.time, now);
    else rest(c, 0);
  }
  if (number < flight.largeAcked) return;
  flight.largeAcked = number;
  c.largeLost &= ~(COUNT | (isConfirming(c) ? 0 : SMALL_LOST));
}

/** Probe `number` was lost. */
export function onMtuProbeLost(c: Connection, number: u64, now: f64): void {
  const flight = flightOf(c);
  if (number != flight.mtuProbe) return;
  flight.mtuProbe = 0;
  const lost = c.probeCount & PROBES_LOST;
  c.nextMtuProbe = <f32>(now + probeTimeout(c) * <f64>(1 << lost));
  c.probeCount++;
  if (isConfirming(c)) {
    if (lost + 1 >= CONFIRMING_PROBES) confirmFall(c, now);
  } else if (lost + 1 >= MAX_PROBES) rest(c, now + PMTU_RAISE_TIMER);
}

/**
 * Counts the large packets that are lost now (`isLost` of recovery/reordering.ts) and falls back at the third. Call it
 * before they are settled, since their meaning depends on it; afterwards `isExcused` returns which of them are not
 * congestion.
 */
export function findBlackHole(c: Connection, delay: f64, now: f64): void {
  if (c.packetSize <= <u16>BASE_PLPMTU) return;
  const flight = flightOf(c);
  for (let number = max(flight.base, flight.largeAcked + 1); <i64>number <= c.largestAcked; number++) {
    const record = recordOf(c, number);
    if (!changetype<usize>(record) || record.state != OUTSTANDING || record.complete || record.mtuProbe) continue;
    if (!isLost(c, record, number, delay, now)) continue;
    if (record.size <= <u16>BASE_PLPMTU) {
      if (c.largeLost & COUNT) c.largeLost |= SMALL_LOST;
    } else if ((c.largeLost & COUNT) < BLACK_HOLE_PACKETS) c.largeLost++;
  }
  if ((c.largeLost & COUNT) >= BLACK_HOLE_PACKETS) fall(c, now);
}

/** Returns whether the black hole caused the loss of packet `number`. */
export function isExcused(c: Connection, record: SentPacket, number: u64): bool {
  return number < flightOf(c).excusedBelow && record.size > <u16>BASE_PLPMTU;
}

/** Falls back to the base size, for good or until a probe of the size before gets through. */
function fall(c: Connection, now: f64): void {
  const flight = flightOf(c);
  const outage = (c.largeLost & SMALL_LOST) != 0;
  const undone = now < <f64>c.nextMtuProbe ? c.probeCount & ~PROBES_LOST : 0;
  if (!outage) flight.excusedBelow = c.nextNumber;
  flight.mtuProbe = 0;
  c.largeLost = (c.largeLost & SMALL_LOST) | placeOf(c);
  c.packetSize = <u16>BASE_PLPMTU;
  c.probeCount = undone;
  if (undone >= MAX_UNDONE * UNDONE_ONE) confirmFall(c, now);
  else c.nextMtuProbe = <f32>now;
}

/** Confirms the fall: its probes were lost, too. */
function confirmFall(c: Connection, now: f64): void {
  rest(c, c.largeLost & SMALL_LOST ? now : now + BLACK_HOLE_REST);
}

/**
 * A probe of the size before, sent at `sent`, got through: restores that size. Excused packets were sent before the PTO
 * whose answer led to the fall.
 */
function undoFall(c: Connection, sent: f64, now: f64): void {
  if (!(c.largeLost & SMALL_LOST)) onCongestionLost(c, sent - probeTimeout(c) - <f64>c.smoothedRtt, now);
  flightOf(c).excusedBelow = 0;
  const undone = (c.probeCount & ~PROBES_LOST) + UNDONE_ONE;
  rest(c, now + BLACK_HOLE_REST);
  c.probeCount = undone;
}

/** Returns whether there was a fall that is neither confirmed nor undone. */
function isConfirming(c: Connection): bool {
  return (c.largeLost & FORMER) != 0;
}

/**
 * `packetSize` as stored in FORMER: a size between two steps, with which a caller may begin, counts as the lower one.
 */
function placeOf(c: Connection): u8 {
  if (c.packetSize == c.maxPlpmtu) return CEILING;
  let place: u8 = 0;
  while (<usize>place < SIZE_COUNT && load<u16>(SIZES + ((<usize>place) << 1)) <= c.packetSize) place++;
  return place * FORMER_ONE;
}

/** The size stored in FORMER. */
function sizeBefore(c: Connection): u32 {
  const place = c.largeLost & FORMER;
  return place == CEILING ? <u32>c.maxPlpmtu : <u32>load<u16>(SIZES + ((<usize>(place / FORMER_ONE - 1)) << 1));
}

/** Allows no probe before `time`, and clears the count of lost ones. */
function rest(c: Connection, time: f64): void {
  c.nextMtuProbe = <f32>time;
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
