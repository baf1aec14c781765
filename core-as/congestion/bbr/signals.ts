/**
 * Signals for judging losses, and the short-term model that they bound (draft-ietf-ccwg-bbr §5.5.10.2, §5.5.10.3). The
 * consequences are in loss.ts and states.ts.
 */
import { Connection } from '../../records/connection';
import { LeastLostPackets, LossThresh, QuietInterval, RandomLossMargin } from './constants';
import { rsDelivered, rsDeliveryRate, rsHasData, rsLost, rsPriorDelivered, rsTxInFlight } from './rate-sample';
import { Bbr, smss } from './record';

/** IsInflightTooHigh (§5.5.10.2) for the sample of this ACK. */
export function isInflightTooHigh(c: Connection, b: Bbr): bool {
  return rsHasData && isTooHigh(c, b, rsLost, rsTxInFlight);
}

/** UpdateLatestDeliverySignals (§5.5.10.3). */
export function updateLatestDeliverySignals(b: Bbr, acked: f64, queued: f64, now: f64): void {
  b.lossRoundStart = false;
  b.bwLatest = max(b.bwLatest, rsDeliveryRate);
  b.inflightLatest = max(b.inflightLatest, rsDelivered);
  b.roundDelivered += acked;
  if (queued >= 0) {
    b.roundMinRtt = min(b.roundMinRtt, queued);
    b.roundMaxRtt = max(b.roundMaxRtt, queued);
    noteQuietRtt(b, queued, now);
  }
  if (!rsHasData || rsPriorDelivered < b.lossRoundDelivered) return;
  b.lossRoundDelivered = b.delivered;
  b.lossRoundStart = true;
}

/** AdvanceLatestDeliverySignals (§5.5.10.3). */
export function advanceLatestDeliverySignals(b: Bbr): void {
  if (!b.lossRoundStart) return;
  b.bwLatest = rsDeliveryRate;
  b.inflightLatest = rsDelivered;
  beginLossRound(b);
}

/** ResetCongestionSignals (§5.5.10.3). */
export function resetCongestionSignals(b: Bbr): void {
  b.lossInRound = false;
  b.bwLatest = 0;
  b.inflightLatest = 0;
}

/** ResetShortTermModel (§5.5.10.3). */
export function resetShortTermModel(b: Bbr): void {
  b.bwShortterm = Infinity;
  b.inflightShortterm = Infinity;
}

/** Begins another round of observing whether packets wait: ours. */
export function beginLossRound(b: Bbr): void {
  b.roundLost = 0;
  b.roundDelivered = 0;
  b.roundMinRtt = Infinity;
  b.roundMaxRtt = 0;
  b.lossRanges = 0;
}

function noteQuietRtt(b: Bbr, rtt: f64, now: f64): void {
  if (now > b.quietStamp + QuietInterval) {
    b.quietRttPrevious = b.quietRtt;
    b.quietRtt = rtt;
    b.quietStamp = now;
  }
  b.quietRtt = min(b.quietRtt, rtt);
}

/** Returns whether the loss in `inFlight` shows that the path held too much. */
export function isTooHigh(c: Connection, b: Bbr, lost: f64, inFlight: f64): bool {
  return lost > inFlight * threshold(b) && lost > LeastLostPackets * smss(c);
}

/** The share of packets that may be lost without consequence. */
export function threshold(b: Bbr): f64 {
  return LossThresh + RandomLossMargin * b.randomLoss;
}
