/**
 * Processes an ACK frame (RFC 9000 §19.3, RFC 9002 §6 and A.7).
 *
 *   1. Read the ranges; refuse numbers that were never sent or were skipped on purpose.
 *   2. Find named packets that had been given up as lost (reordering.ts); settle every newly acknowledged packet,
 *      lowest number first, so that send windows move without gaps.
 *   3. Take an RTT sample from the largest, if it is new.
 *   4. Losses, congestion window, timers.
 */
import { ERROR_FRAME_ENCODING_ERROR, ERROR_NO_ERROR, ERROR_PROTOCOL_VIOLATION } from '../codes.generated';
import { initRateSample } from '../congestion/bbr/rate-sample';
import { onAckDone, onCongestionAcked } from '../congestion/congestion';
import { failed, readVarint } from '../frames/varint';
import { onNumberAcknowledged } from '../packet/key-update';
import { Connection, PROBE, SEND_IDS } from '../records/connection';
import { idFramesSettled } from '../records/connection-ids';
import { flightOf, OUTSTANDING, recordOf, SKIPPED, settleFlight } from '../records/flight';
import { onRttSample } from '../records/rtt';
import { detectLost } from './loss';
import { onSizeAcked } from './mtu';
import { notePathArrival } from './path-loss';
import { findSpurious } from './reordering';
import { settleAcked } from './settle';

/** Ranges of one frame that are processed; our own peers send 32, older ones come again. */
const MAX_RANGES: u32 = 64;
const lows = memory.data(64 * 8, 8);
const highs = memory.data(64 * 8, 8);

/** ack_delay_exponent: the default of RFC 9000 §18.2, in units of µs. */
const DELAY_UNIT: f64 = 8.0 / 1_000.0;

/** Reads the frame at the cursor (type consumed) and processes it. Returns a transport error code, 0 = fine. */
export function receiveAck(c: Connection, ecn: bool, now: f64): u32 {
  const largest = readVarint();
  const delay = <f64>readVarint() * DELAY_UNIT;
  const ranges = readRanges(largest);
  if (ecn) for (let i = 0; i < 3; i++) readVarint();
  if (failed || ranges == 0) return ERROR_FRAME_ENCODING_ERROR;
  if (largest >= c.nextNumber) return ERROR_PROTOCOL_VIOLATION;
  if (!c.flight) {
    c.largestAcked = max(c.largestAcked, <i64>largest);
    return ERROR_NO_ERROR;
  }
  return settle(c, largest, <f32>delay, ranges, now);
}

/** Fills the tables; returns the number of ranges kept, 0 for an invalid frame. */
function readRanges(largest: u64): u32 {
  const more = readVarint();
  let high = largest;
  let kept: u32 = 0;
  for (let i: u64 = 0; i <= more && !failed; i++) {
    if (i > 0) {
      const gap = readVarint();
      if (gap + 2 > high) return 0;
      high -= gap + 2;
    }
    const length = readVarint();
    if (length > high) return 0;
    const low = high - length;
    if (kept < MAX_RANGES) {
      store<u64>(lows + (kept << 3), low);
      store<u64>(highs + (kept << 3), high);
      kept++;
    }
    high = low;
  }
  return kept;
}

function settle(c: Connection, largest: u64, delay: f32, ranges: u32, now: f64): u32 {
  const flight = flightOf(c);
  let sampleTime: f64 = -1;
  let latestSent: f64 = -1;
  let waited = false;
  let acked: u32 = 0;
  const inFlight = c.bytesInFlight;
  initRateSample();

  for (let i = ranges; i-- > 0; ) {
    const high = load<u64>(highs + (i << 3));
    if (flight.lostNext > 0) findSpurious(c, load<u64>(lows + (i << 3)), high, now);
    for (let number = max(load<u64>(lows + (i << 3)), flight.base); number <= high; number++) {
      const record = recordOf(c, number);
      if (!changetype<usize>(record)) continue;
      if (record.state == SKIPPED) return ERROR_PROTOCOL_VIOLATION;
      if (record.state != OUTSTANDING) continue;
      // The peer processed nothing before Complete arrived: if that took several attempts, no packet of this frame
      // shows the round trip.
      if (record.complete > 1) waited = true;
      latestSent = max(latestSent, record.time);
      if (record.path == c.activePath) {
        if (number == largest) sampleTime = record.time;
        acked += record.size;
        notePathArrival(c);
        onCongestionAcked(c, record, inFlight, number, now);
      }
      settleAcked(c, record);
      if (record.control & SEND_IDS) idFramesSettled(c, number, true);
      onNumberAcknowledged(c, number, now);
      onSizeAcked(c, record, number, now);
    }
  }
  c.largestAcked = max(c.largestAcked, c.paths ? largestOnActive(c, ranges) : <i64>largest);
  if (latestSent < 0) return ERROR_NO_ERROR;
  c.keepAliveSince = max(c.keepAliveSince, latestSent);
  c.keepAliveCount = 0;
  if (acked == 0) {
    // Only packets of another path: nothing is learnt about this one.
    detectLost(c, now);
    settleFlight(c);
    return ERROR_NO_ERROR;
  }

  if (waited) sampleTime = -1;
  if (sampleTime >= 0) {
    if (!c.hasRtt) flight.firstSample = now;
    onRttSample(c, <f32>max(now - sampleTime, 0), delay);
  }
  flight.ptoCount = 0;
  flight.probes = 0;
  c.flags &= ~PROBE;
  detectLost(c, now);
  settleFlight(c);
  const rtt = sampleTime >= 0 ? max(now - sampleTime, 0) : -1;
  const undelayed = rtt >= 0 ? max(rtt - <f64>min(delay, <f32>c.peerMaxAckDelay), min(rtt, <f64>c.minimumRtt)) : -1;
  onAckDone(c, rtt, undelayed, acked, now);
  return ERROR_NO_ERROR;
}

/**
 * The largest number of these that went out on the active path: those of a faster one say nothing about packets still
 * under way here.
 */
function largestOnActive(c: Connection, ranges: u32): i64 {
  const base = flightOf(c).base;
  for (let i: u32 = 0; i < ranges; i++) {
    const low = max(load<u64>(lows + (i << 3)), base);
    for (let number = load<u64>(highs + (i << 3)); number >= low && number != u64.MAX_VALUE; number--) {
      const record = recordOf(c, number);
      if (!changetype<usize>(record) || record.state == 0 || record.path == c.activePath) return <i64>number;
    }
  }
  return -1;
}
