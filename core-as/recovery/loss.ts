/**
 * Loss detection (RFC 9002 §6) and the probe timeout (§6.2).
 *
 *   detectLost  after each ACK and when the loss timer fires: packets that are later than reordering.ts allows
 *   onProbe     when the PTO fires: one or two probes carry the oldest unacknowledged content again
 *
 * Lost MTU probes, and packets lost in a black hole (recovery/mtu.ts), are not congestion. A run of other losses longer
 * than 3 PTO between two acknowledgements is persistent congestion (§7.6).
 */
import { onCongestionLost, onCongestionPacketLost, onLossEpisode, onPersistentCongestion } from '../congestion/congestion';
import { Connection, PROBE, SEND_COMPLETE, SEND_IDS, SEND_PING } from '../records/connection';
import { idFramesSettled } from '../records/connection-ids';
import { flightOf, OUTSTANDING, RESOLVED, recordOf, SentPacket, settleFlight } from '../records/flight';
import { probeTimeout } from '../records/rtt';
import { findBlackHole, isExcused, onMtuProbeLost } from './mtu';
import { notePathLoss } from './path-loss';
import { elsewhereLostAt } from './path-state';
import { beginEpisode, isLost, lossDelay, rememberLost } from './reordering';
import { sendAgain, settleLost } from './settle';

// RFC 9002
const PERSISTENT_CONGESTION_THRESHOLD: f64 = 3;

/**
 * Our constants: probes per timeout; most doublings of the timeout; its largest value; the share by which some are
 * shorter than that. RFC 9002 §6.2.1 doubles without end, up to the idle timeout; ours may be disabled, and a path that
 * recovers should be noticed. Equal timeouts could all fall into the outages of a link that fails at that interval.
 */
const PROBES: u32 = 2;
const MAX_DOUBLINGS: u32 = 10;
const LONGEST_TIMEOUT: f64 = 3_000;
const SPREAD: f64 = 1.0 / 3;
/** Fractional parts of the multiples of the golden ratio fill an interval evenly, however many there are. */
const GOLDEN_RATIO: f64 = 0.618033988749895;
/** Until the Complete packet is acknowledged: the responder waits at most 10 s from packet to packet. */
const LONGEST_COMPLETE_TIMEOUT: f64 = 2_000;

export function detectLost(c: Connection, now: f64): void {
  if (!c.flight) return;
  const flight = flightOf(c);
  const delay = lossDelay(c);
  flight.lossTime = Infinity;
  findBlackHole(c, delay, now);
  let settled = false;
  let lastLostTime: f64 = -1;
  let runStart: f64 = -1;
  let persistent = false;

  for (let number = flight.base; <i64>number <= c.largestAcked; number++) {
    const record = recordOf(c, number);
    if (!changetype<usize>(record) || record.state != OUTSTANDING) {
      // An acknowledged packet ends a run of losses. A packet lost in an earlier call looks the same, which only
      // shortens runs.
      if (changetype<usize>(record) && record.state == RESOLVED) runStart = -1;
      continue;
    }
    // The Complete packet keeps its number and record: only the PTO repeats it.
    if (record.complete) continue;
    if (record.path != c.activePath) {
      const lostAt = elsewhereLostAt(c, record.path, record.time);
      if (now < lostAt - 0.001) flight.lossTime = min(flight.lossTime, lostAt);
      else {
        giveUp(c, record, number);
        settled = true;
      }
      continue;
    }
    if (!isLost(c, record, number, delay, now)) {
      flight.lossTime = min(flight.lossTime, record.time + delay);
      continue;
    }
    settled = true;
    if (record.mtuProbe || isExcused(c, record, number)) {
      settleLost(c, record);
      if (record.mtuProbe) onMtuProbeLost(c, number, now);
      continue;
    }
    lastLostTime = max(lastLostTime, record.time);
    if (runStart < 0 && c.hasRtt && record.time > flight.firstSample) runStart = record.time;
    if (runStart >= 0 && record.time - runStart > PERSISTENT_CONGESTION_THRESHOLD * probeTimeout(c)) persistent = true;
    if (record.time > flight.episodeStart) {
      beginEpisode(c, now);
      onLossEpisode(c);
    }
    rememberLost(c, number, record.time, record.size);
    notePathLoss(c);
    giveUp(c, record, number);
    onCongestionPacketLost(c, record, number, now);
  }
  if (!settled) return;
  if (lastLostTime >= 0) onCongestionLost(c, lastLostTime, now);
  if (persistent) {
    onPersistentCongestion(c);
    // §5.2: the path may have changed.
    c.minimumRtt = flight.latestRtt;
  }
  settleFlight(c);
}

/** Queues the content of packet `number` again. */
export function giveUp(c: Connection, record: SentPacket, number: u64): void {
  settleLost(c, record);
  if (record.control & SEND_IDS) idFramesSettled(c, number, false);
}

/** Returns when the PTO fires, Infinity when nothing is in flight. */
export function probeTime(c: Connection): f64 {
  if (!c.flight) return Infinity;
  const flight = flightOf(c);
  if (flight.outstanding == 0 || flight.lossTime != Infinity) return Infinity;
  const timeout = probeTimeout(c) * <f64>(1 << min(flight.ptoCount, MAX_DOUBLINGS));
  const turn = <f64>flight.ptoCount * GOLDEN_RATIO;
  const share = 1 - SPREAD * (turn - Math.floor(turn));
  const longest = c.complete ? LONGEST_COMPLETE_TIMEOUT * share : max(LONGEST_TIMEOUT * share, probeTimeout(c));
  return flight.lastEliciting + min(timeout, longest);
}

/**
 * The PTO fired: the oldest packets go out again, or a PING when they carried nothing that is repeated. A further
 * timeout without an answer takes the packets after those, and so on in turn: the peer may lack room for the oldest
 * until it gets another one.
 *
 * Probes need no room in the window. Once two windows are in flight, in a long silence, the packets that they repeat
 * make room for them; else the flight, which is memory, would grow with each.
 */
export function onProbe(c: Connection): void {
  const flight = flightOf(c);
  flight.ptoCount++;
  flight.probes = PROBES;
  c.flags |= PROBE;
  c.pending |= SEND_PING;
  if (c.complete) c.flags |= SEND_COMPLETE;
  let skip = ((flight.ptoCount - 1) * PROBES) % max<u32>(flight.outstanding, 1);
  let left = PROBES;
  const makeRoom = c.bytesInFlight > 2 * c.congestionWindow;
  for (let number = flight.base; number < c.nextNumber && left > 0; number++) {
    const record: SentPacket = recordOf(c, number);
    if (!changetype<usize>(record) || record.state != OUTSTANDING) continue;
    if (skip > 0) {
      skip--;
      continue;
    }
    if (makeRoom && !record.complete && !record.mtuProbe) giveUp(c, record, number);
    else sendAgain(c, record);
    left--;
  }
  if (makeRoom) settleFlight(c);
}

/** Nothing in flight on a dead path will arrive: it goes out again immediately. */
export function loseInFlight(c: Connection, index: u8): void {
  if (!c.flight) return;
  for (let number = flightOf(c).base; number < c.nextNumber; number++) {
    const record = recordOf(c, number);
    if (changetype<usize>(record) && record.path == index && record.state == OUTSTANDING && !record.complete) giveUp(c, record, number);
  }
  settleFlight(c);
}
