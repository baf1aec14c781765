/**
 * BBRv3 (draft-ietf-ccwg-bbr), as congestion.ts calls it. Sections are those of -06; ProbeRTT is that of the text which
 * follows it: one filter of 10 s, and probe_rtt_cwnd from the round trip before it expired. record.ts holds the model.
 * The parts:
 *
 *   rate-sample.ts   delivery-rate samples (§4.1)
 *   path.ts          rounds, maximum bandwidth, minimum RTT, aggregation (§5.5.1 to §5.5.9)
 *   signals.ts       loss signals, and the short-term model (§5.5.10)
 *   loss.ts          the response to losses (§5.5.10), with our departures
 *   states.ts        Startup, Drain, ProbeBW (§5.3.1 to §5.3.3)
 *   probe-rtt.ts     ProbeRTT, restart from idle (§5.3.4, §5.4)
 *   probe-up.ts      when UP ends because of its own queue: ours
 *   compete.ts       beside a flow that fills the queue: ours
 *   control.ts       pacing rate and window (§5.6)
 *   constants.ts     the draft's constants, and ours with their reasons
 *
 * Departures from the draft other than constants: a round that waits for the peer's credit counts as full for the
 * full-pipe estimator only. Its samples do not lower max_bw, as those of a bottleneck would (§4.1.1): otherwise a
 * reader that pauses would make us forget what the path carries. prior_cwnd (§5.6.4.4) is the window at ProbeRTT only:
 * loss bounds the window by the model and never sets it.
 */
import { Connection } from '../../records/connection';
import { flightOf, SentPacket } from '../../records/flight';
import { cubicAcked, cubicLossEpisode, cubicLost, cubicPersistent, cubicUndo } from '../cubic';
import { initialWindow } from '../model';
import { minimumWindow } from '../new-reno';
import { reduction } from './compete';
import { initPacingRate, updateControlParameters } from './control';
import { countLossRange, handleLostPacket, saveStateUponLoss, updateCongestionSignals } from './loss';
import { updateAckAggregation, updateMinRtt } from './path';
import { checkProbeRtt, restartFromIdle } from './probe-rtt';
import { noteUpQueue } from './probe-up';
import { generateRateSample, rateAcked, rateSent } from './rate-sample';
import { bbrOf, isCompeting, minPipeCwnd, NO_STATE, smss } from './record';
import { advanceLatestDeliverySignals, beginLossRound, resetShortTermModel, updateLatestDeliverySignals } from './signals';
import {
  checkDrainDone,
  checkFullBwReached,
  checkStartupDone,
  enterStartup,
  handleSpuriousLossDetection,
  resetFullBw,
  updateProbeBwCyclePhase,
} from './states';

/** OnInit (§5.2.1), on a zeroed model. */
export function bbrInit(c: Connection, now: f64): void {
  const b = bbrOf(c);
  b.minRtt = c.hasRtt ? <f64>c.smoothedRtt : Infinity;
  b.hasRtt = c.hasRtt != 0;
  b.quietRtt = b.hasRtt ? <f64>c.minimumRtt : Infinity;
  b.quietRttPrevious = Infinity;
  b.quietStamp = now;
  b.minRttStamp = now;
  b.probeRttCwnd = <f64>initialWindow(c);
  b.extraAckedIntervalStart = now;
  b.inflightLongterm = Infinity;
  b.probeUpAckedPerInc = Infinity;
  b.sendQuantum = 2 * smss(c);
  b.firstSendTime = now;
  b.deliveredTime = now;
  resetShortTermModel(b);
  beginLossRound(b);
  initPacingRate(c, b, b.hasRtt ? <f64>c.smoothedRtt : 1);
  b.undoState = NO_STATE;
  enterStartup(b);
}

/** OnTransmit (§5.2.2). */
export function bbrSent(c: Connection, record: SentPacket, now: f64): void {
  const b = bbrOf(c);
  if (c.bytesInFlight == record.size) restartFromIdle(c, b, now);
  rateSent(c, b, record, now);
}

export function bbrAcked(c: Connection, record: SentPacket, number: u64, inFlight: u32, now: f64): void {
  const b = bbrOf(c);
  rateAcked(b, record, number, now);
  if (isCompeting(b)) cubicAcked(c, record.size, record.time, inFlight, now);
}

/** Packets were lost, the newest of them sent at `sentTime`. */
export function bbrAllLost(c: Connection, sentTime: f64, now: f64): void {
  const b = bbrOf(c);
  if (isCompeting(b)) cubicLost(c, sentTime, now, reduction(c, b));
}

/** UpdateOnACK (§5.2.3); `rtt` and `queued` as in `onAckDone`, negative = none. */
export function bbrAckDone(c: Connection, rtt: f64, queued: f64, newlyAcked: u32, now: f64): void {
  const b = bbrOf(c);
  const acked = <f64>newlyAcked;
  if (rtt >= 0 && !b.hasRtt) {
    b.hasRtt = true;
    initPacingRate(c, b, rtt);
  }
  generateRateSample(c, b);
  updateLatestDeliverySignals(b, acked, queued, now);
  updateCongestionSignals(c, b);
  updateAckAggregation(c, b, acked, now);
  checkFullBwReached(b);
  checkStartupDone(c, b);
  checkDrainDone(c, b, now);
  noteUpQueue(c, b, queued, now);
  updateProbeBwCyclePhase(c, b, acked, now);
  updateMinRtt(c, b, rtt, now);
  checkProbeRtt(c, b, now);
  advanceLatestDeliverySignals(b);
  b.bw = min(b.maxBw, b.bwShortterm);
  updateControlParameters(c, b, acked);
}

/** HandleLostPacket (§5.2.4). */
export function bbrLost(c: Connection, record: SentPacket, number: u64, now: f64): void {
  const b = bbrOf(c);
  countLossRange(b, number);
  handleLostPacket(c, b, record, now);
}

/** SaveStateUponLoss (§5.5.11). */
export function bbrLossEpisode(c: Connection): void {
  const b = bbrOf(c);
  saveStateUponLoss(b);
  if (isCompeting(b)) cubicLossEpisode(c);
}

export function bbrSpurious(c: Connection, size: u32): void {
  const b = bbrOf(c);
  b.delivered += size;
  b.roundLost = max(b.roundLost - <f64>size, 0);
}

/** HandleSpuriousLossDetection (§5.5.11), with RestoreCwnd; the next acknowledgement bounds the window by the model. */
export function bbrUndo(c: Connection): void {
  const b = bbrOf(c);
  if (!isCompeting(b)) c.congestionWindow = max(c.congestionWindow, flightOf(c).undoWindow);
  else if (b.undoState == b.state) cubicUndo(c);
  handleSpuriousLossDetection(b);
}

/**
 * RFC 9002 §7.6.2; the window grows back with what is acknowledged (§5.6.4.4). It shrinks to four packets, not to the
 * two that RFC 9002 recommends: SetCwnd never goes lower (§5.6.4.6). As in Linux, the full-pipe search starts again:
 * rounds that begin with so few packets are slower than those before the outage, and would end Startup as a plateau.
 */
export function bbrPersistent(c: Connection): void {
  const b = bbrOf(c);
  resetFullBw(b);
  if (isCompeting(b)) cubicPersistent(c);
  else c.congestionWindow = <u32>minPipeCwnd(c);
}

/**
 * Returns whether the model knows more than at the start: a whole window was delivered, of which less than a packet
 * stays unused where packets are not full, as those of datagrams are.
 */
export function bbrWorthKeeping(c: Connection): bool {
  return bbrOf(c).delivered + c.packetSize > <u64>initialWindow(c);
}

/**
 * Pacing rate in bytes per millisecond. Our departure: never slower than the minimum window of RFC 9002 per round trip.
 * While a peer has no room, timeouts alone deliver a few bytes a second; at that pace not even probes would find out
 * when that ends.
 */
export function bbrPacingRate(c: Connection): f32 {
  return max(<f32>bbrOf(c).pacingRate, <f32>minimumWindow(c) / max(c.smoothedRtt, 0.01));
}
