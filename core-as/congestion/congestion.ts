/**
 * The interface between recovery and a congestion controller: NewReno, CUBIC with HyStart++, or BBR, chosen by
 * `Connection.congestion`.
 *
 *   onCongestionSent          a packet went out
 *   onCongestionAcked         one packet was acknowledged; afterwards, when losses are known too, onAckDone
 *   onCongestionPacketLost    one packet was lost; afterwards onCongestionLost for all of them together
 *   onLossEpisode, onSpuriousLoss, onLossUndone   spurious losses (recovery/reordering.ts)
 *   onPersistentCongestion    RFC 9002 §7.6
 *   onWindowFull, onAppLimited, onOutOfCredit   why transmit stopped
 *
 * A controller sets `congestionWindow` (bytes) and supplies `pacingRate`. CUBIC and BBR keep their state in a chunk
 * (model.ts). Without one (none is left, or nothing was sent for long) NewReno's rules apply.
 */
import {
  CONGESTION_BBR,
  CONGESTION_CUBIC,
  CONGESTION_NEWRENO,
  STATE_AVOIDANCE,
  STATE_CONSERVATIVE_SLOW_START,
  STATE_SLOW_START,
  STATE_STARTUP,
} from '../codes.generated';
import { Connection } from '../records/connection';
import { flightOf, SentPacket } from '../records/flight';
import {
  bbrAckDone,
  bbrAcked,
  bbrAllLost,
  bbrInit,
  bbrLossEpisode,
  bbrLost,
  bbrPacingRate,
  bbrPersistent,
  bbrSent,
  bbrSpurious,
  bbrUndo,
  bbrWorthKeeping,
} from './bbr/bbr';
import { markAppLimited } from './bbr/rate-sample';
import { bbrOf } from './bbr/record';
import {
  BETA_CUBIC,
  cubicAckDone,
  cubicAcked,
  cubicInit,
  cubicLossEpisode,
  cubicLost,
  cubicPersistent,
  cubicUndo,
  cubicWorthKeeping,
  isConservative,
} from './cubic';
import { initialWindow, releaseModel, takeModel, usedModel } from './model';
import { newRenoAcked, newRenoLost, newRenoPersistent, newRenoUndo } from './new-reno';

/** RFC 9002 §7.7: N of the pacing rate of window-based controllers. */
const PACING_GAIN: f32 = 1.25;

export function congestionInit(c: Connection, kind: u8): void {
  c.congestion = kind;
  c.congestionWindow = initialWindow(c);
  c.slowStartThreshold = u32.MAX_VALUE;
}

/** The packet of `record` went out; `bytesInFlight` includes it. */
export function onCongestionSent(c: Connection, record: SentPacket, now: f64): void {
  if (c.congestion == CONGESTION_NEWRENO) return;
  if (!c.model && takeModel(c, now)) {
    if (c.congestion == CONGESTION_BBR) bbrInit(c, now);
    else cubicInit(c);
  }
  if (controller(c) == CONGESTION_BBR) bbrSent(c, record, now);
}

/** Packet `number`, the one of `record`, was acknowledged; before its ACK frame `inFlight` bytes were in flight. */
export function onCongestionAcked(c: Connection, record: SentPacket, inFlight: u32, number: u64, now: f64): void {
  const kind = controller(c);
  if (kind == CONGESTION_BBR) bbrAcked(c, record, number, inFlight, now);
  else if (kind == CONGESTION_CUBIC) cubicAcked(c, record.size, record.time, inFlight, now);
  else newRenoAcked(c, record.size, record.time, inFlight);
}

/**
 * The ACK frame is processed, losses included. `rtt`: its sample, negative = none; `queued`: the same without the
 * peer's delay.
 */
export function onAckDone(c: Connection, rtt: f64, queued: f64, acked: u32, now: f64): void {
  const kind = controller(c);
  if (kind == CONGESTION_NEWRENO) return;
  if (kind == CONGESTION_BBR) bbrAckDone(c, rtt, queued, acked, now);
  else cubicAckDone(c, rtt);
  usedModel(c, now);
  if (!c.flight && !(kind == CONGESTION_BBR ? bbrWorthKeeping(c) : cubicWorthKeeping(c))) forget(c);
}

/** Packet `number`, the one of `record`, was lost. */
export function onCongestionPacketLost(c: Connection, record: SentPacket, number: u64, now: f64): void {
  if (controller(c) == CONGESTION_BBR) bbrLost(c, record, number, now);
}

/** Packets were lost, the newest of them sent at `sentTime`. */
export function onCongestionLost(c: Connection, sentTime: f64, now: f64): void {
  const kind = controller(c);
  if (kind == CONGESTION_BBR) bbrAllLost(c, sentTime, now);
  else if (kind == CONGESTION_CUBIC) cubicLost(c, sentTime, now, BETA_CUBIC);
  else if (kind == CONGESTION_NEWRENO) newRenoLost(c, sentTime, now);
}

/**
 * Packets are about to be declared lost for the first time in a round trip: saves what to restore if all losses are
 * spurious.
 */
export function onLossEpisode(c: Connection): void {
  const kind = controller(c);
  if (kind == CONGESTION_BBR) bbrLossEpisode(c);
  if (kind == CONGESTION_CUBIC) cubicLossEpisode(c);
  const flight = flightOf(c);
  flight.undoWindow = c.congestionWindow;
  flight.undoThreshold = c.slowStartThreshold;
}

/** A packet of `size` bytes that was declared lost has arrived. */
export function onSpuriousLoss(c: Connection, size: u32): void {
  if (controller(c) == CONGESTION_BBR) bbrSpurious(c, size);
}

/** All packets declared lost since `onLossEpisode` have arrived. */
export function onLossUndone(c: Connection): void {
  const kind = controller(c);
  if (kind == CONGESTION_BBR) bbrUndo(c);
  else if (kind == CONGESTION_CUBIC) cubicUndo(c);
  else newRenoUndo(c);
}

export function onPersistentCongestion(c: Connection): void {
  const kind = controller(c);
  if (kind == CONGESTION_BBR) bbrPersistent(c);
  else if (kind == CONGESTION_CUBIC) cubicPersistent(c);
  else newRenoPersistent(c);
}

/** There is more to send than the window allows. */
export function onWindowFull(c: Connection): void {
  if (controller(c) == CONGESTION_BBR) bbrOf(c).windowFull = true;
}

/** Window and pacer allow more than there is to send. */
export function onAppLimited(c: Connection): void {
  if (controller(c) == CONGESTION_BBR) markAppLimited(c);
}

/** There is more to send than the peer's credit allows. */
export function onOutOfCredit(c: Connection): void {
  if (controller(c) == CONGESTION_BBR) bbrOf(c).outOfCredit = true;
}

/** Nothing was sent for so long that the path may have changed: the next packet starts afresh. */
export function forget(c: Connection): void {
  releaseModel(c);
  c.congestionWindow = initialWindow(c);
  c.slowStartThreshold = u32.MAX_VALUE;
  c.bytesAcked = 0;
}

/** Bytes that may go out now. */
export function windowLeft(c: Connection): u32 {
  return c.congestionWindow > c.bytesInFlight ? c.congestionWindow - c.bytesInFlight : 0;
}

/** Bytes per millisecond. */
export function pacingRate(c: Connection): f32 {
  if (controller(c) == CONGESTION_BBR) return bbrPacingRate(c);
  return (PACING_GAIN * <f32>c.congestionWindow) / max(c.smoothedRtt, 0.01);
}

/** Returns whether the controller observed that our packets waited at the bottleneck for a whole round. */
export function queueStands(c: Connection): bool {
  return controller(c) == CONGESTION_BBR && bbrOf(c).waitedRound;
}

/** For statistics: one of STATE_… of codes.json. */
export function congestionState(c: Connection): u32 {
  if (c.congestion == CONGESTION_BBR) return c.model ? <u32>bbrOf(c).state : STATE_STARTUP;
  if (controller(c) == CONGESTION_CUBIC && isConservative(c)) return STATE_CONSERVATIVE_SLOW_START;
  return c.congestionWindow < c.slowStartThreshold ? STATE_SLOW_START : STATE_AVOIDANCE;
}

/** For statistics: bytes per millisecond of BBR's model, 0 = none. */
export function bandwidth(c: Connection): f64 {
  return controller(c) == CONGESTION_BBR ? bbrOf(c).bw : 0;
}

/** The controller whose rules apply now. */
function controller(c: Connection): u32 {
  return c.model ? <u32>c.congestion : CONGESTION_NEWRENO;
}
