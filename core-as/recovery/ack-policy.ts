/**
 * Decides when we acknowledge, and writes our ACK frames (RFC 9000 §13.2, §19.3).
 *
 * - Every second ack-eliciting packet; after the first 100 every tenth; at most `maxAckDelay` late, and a quarter of
 *   the round trip once a second packet waits: otherwise a window of a few packets would stand still for that long.
 * - At once on a gap: a number out of order, or one that leaves a hole below it.
 * - Ranges are read from the replay window, newest first, at most 32, down to `ackFloor`, which rises when the peer
 *   acknowledges a packet with one of our ACKs.
 */
import { ACK } from '../frames/types';
import { varintSize, writeVarint } from '../frames/varint';
import { scanDown, windowFloor } from '../packet/replay-window';
import { ACK_NOW, ACK_OWED, Connection, PHASE_REPORTED } from '../records/connection';
import { GRANULARITY } from '../records/rtt';

/** PROTOCOL.md §5 */
const MAX_RANGES: u32 = 32;
const EARLY_PACKETS: u32 = 100;
const EARLY_EVERY: u32 = 2;
const LATER_EVERY: u32 = 10;

/** Our constant: ACK-only packets until one carries a PING, so that `ackFloor` can rise. */
export const ACKS_UNTIL_PING: u32 = 32;

/** Units of the ACK Delay field per millisecond (exponent 3). */
const DELAY_UNITS: f64 = 125;

/** Packet `number` was processed; `before` is the largest number received before it. */
export function onReceived(c: Connection, number: u64, before: i64, eliciting: bool, now: f64): void {
  if (number < c.ackFloor) c.ackFloor = number;
  if (<i64>number == c.largestReceived) c.largestTime = now;
  if (!eliciting) return;
  const inOrder = <i64>number == before + 1;
  c.flags |= ACK_OWED;
  if (c.elicitingReceived < 255) c.elicitingReceived++;
  if (c.unacked < 255) c.unacked++;
  const every = c.elicitingReceived <= EARLY_PACKETS ? EARLY_EVERY : LATER_EVERY;
  if (c.unacked >= every || !inOrder) c.flags |= ACK_NOW;
  if (c.ackTime == Infinity) c.ackTime = now + <f64>c.maxAckDelay;
  if (c.unacked > 1 && c.hasRtt) c.ackTime = min(c.ackTime, now + <f64>max<f32>(c.smoothedRtt / 4, GRANULARITY));
}

/**
 * Writes an ACK frame at `to`, not beyond `limit`; returns the address after it, or `to` when there is nothing to
 * report. `now` and the arrival time of the largest number give the delay field.
 */
export function writeAck(c: Connection, to: usize, limit: usize, now: f64): usize {
  if (c.largestReceived < 0 || to + 40 > limit) return to;
  const floor = <i64>max(c.ackFloor, windowFloor(c));
  const largest = scanDown(c, c.largestReceived, floor, true);
  if (largest < floor) return to;

  let at = writeVarint(to, ACK);
  at = writeVarint(at, <u64>largest);
  at = writeVarint(at, <u64>(max(now - c.largestTime, 0) * DELAY_UNITS));
  const countAt = at++;
  let low = scanDown(c, largest, floor, false) + 1;
  at = writeVarint(at, <u64>(largest - low));
  let more: u32 = 0;
  while (more < MAX_RANGES - 1) {
    const high = scanDown(c, low - 1, floor, true);
    if (high < floor) break;
    const start = scanDown(c, high, floor, false) + 1;
    const gap = <u64>(low - high - 2);
    const length = <u64>(high - start);
    if (at + varintSize(gap) + varintSize(length) > limit) break;
    at = writeVarint(writeVarint(at, gap), length);
    low = start;
    more++;
  }
  store<u8>(countAt, <u8>more);
  return at;
}

/** The ACK went out. */
export function onAckSent(c: Connection): void {
  c.flags = (c.flags & ~(ACK_NOW | ACK_OWED)) | PHASE_REPORTED;
  c.unacked = 0;
  c.ackTime = Infinity;
}
