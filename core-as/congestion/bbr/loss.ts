/**
 * The response to losses (draft-ietf-ccwg-bbr §5.5.10), and where it departs from the draft.
 *
 * The draft takes every loss for a sign of a full queue: while it probes, a loss rate above 2 % ends the probe and
 * lowers inflight_longterm; while it cruises, any loss lets bw_shortterm and inflight_shortterm follow the delivery
 * rate. On a link that loses 5 % at random, the rate would fall by 5 % a round trip. So, once a round, we check whether
 * packets waited:
 *
 *   no packet waited     its losses are random: they enter the average `randomLoss`, and nothing slows down
 *   every packet waited  losses above LossThresh + 2 × randomLoss are the queue's: the draft's response
 *   in between           neither
 *
 * `ExcessiveLoss` covers a path that loses without a queue because a policer drops. `randomLoss` stays 0 on a path that
 * loses only when its queue is full; then the response to a probe is the draft's.
 */
import { STATE_PROBE_BW_REFILL, STATE_PROBE_BW_UP, STATE_STARTUP } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { SentPacket } from '../../records/flight';
import { countWaitedRound } from './compete';
import {
  Beta,
  EthernetPayload,
  ExcessiveLoss,
  HostDelay,
  LeastRoundPackets,
  MostRandomLoss,
  PacketsPerAck,
  QuietRtt,
  QuietSlack,
  RandomLossGain,
  WaitedRtt,
  WaitedSlack,
} from './constants';
import { targetInflight, updateMaxBw } from './path';
import { lostSince } from './rate-sample';
import { Bbr, isCompeting, isProbingBw, NO_STATE, smss } from './record';
import { isTooHigh, threshold } from './signals';
import { startProbeBwDown } from './states';

/** HandleLostPacket (§5.5.10.2). */
export function handleLostPacket(c: Connection, b: Bbr, record: SentPacket, now: f64): void {
  b.lost += record.size;
  if (!b.lossInRound) {
    b.lossRoundDelivered = b.delivered;
    // The rate that ends Startup is that of one full round trip (§5.3.1.3); this one begins with its first loss.
    if (b.state == <u8>STATE_STARTUP) b.roundDelivered = 0;
  }
  b.roundLost += <f64>record.size;
  b.lossInRound = true;
  if (!b.isBwProbeSample) return;
  const lost = lostSince(b, record);
  const inFlight = <f64>record.txInFlight;
  if (!isTooHigh(c, b, lost, inFlight)) return;
  handleInflightTooHigh(c, b, inflightAtLoss(b, lost, inFlight, <f64>record.size), record.appLimited != 0, now);
}

/** SaveStateUponLoss (§5.5.11). */
export function saveStateUponLoss(b: Bbr): void {
  b.undoState = isCompeting(b) ? b.state : NO_STATE;
  b.undoBwShortterm = b.bwShortterm;
  b.undoInflightShortterm = b.inflightShortterm;
  b.undoInflightLongterm = b.inflightLongterm;
}

/** Discontiguous runs of lost packets in this round (§5.3.1.3). */
export function countLossRange(b: Bbr, number: u64): void {
  if (b.lossRanges == 0 || number != b.lastLost + 1) b.lossRanges++;
  b.lastLost = number;
}

/** UpdateCongestionSignals (§5.5.10.3). */
export function updateCongestionSignals(c: Connection, b: Bbr): void {
  updateMaxBw(b);
  if (!b.lossRoundStart) return;
  judgeRound(c, b);
  if (b.congestedRound && !isProbingBw(b)) adaptLowerBounds(c, b);
  b.lossInRound = false;
}

/** At the end of a round, attributes its loss to the queue or to the link. */
function judgeRound(c: Connection, b: Bbr): void {
  const total = b.roundLost + b.roundDelivered;
  const rate = total > 0 ? b.roundLost / total : 0;
  const least = min(b.quietRtt, b.quietRttPrevious);
  const quiet = least * QuietRtt + QuietSlack;
  const burst = b.maxBw > 0 ? (PacketsPerAck * smss(c)) / b.maxBw : 0;
  const waited = b.roundMinRtt != Infinity && b.roundMinRtt > least * WaitedRtt + max(WaitedSlack, burst / 2);
  const isProbe = b.state == <u8>STATE_PROBE_BW_REFILL || b.state == <u8>STATE_PROBE_BW_UP;
  if (b.roundMaxRtt <= quiet && !isProbe && total >= LeastRoundPackets * smss(c)) {
    b.randomLoss += max(RandomLossGain, 1 / (<f64>b.randomLossRounds + 2)) * (min(rate, MostRandomLoss) - b.randomLoss);
    if (b.randomLossRounds < 255) b.randomLossRounds++;
  }
  b.congestedRound = isTooHigh(c, b, b.roundLost, total) && (waited || rate > ExcessiveLoss);
  b.waitedRound = waited;
  const held = waited && b.roundMinRtt > least + HostDelay * max(1, smss(c) / EthernetPayload);
  countWaitedRound(b, held, b.roundMaxRtt <= max(quiet, least * QuietRtt + burst));
}

/** InitLowerBounds and LossLowerBounds (§5.5.10.3). */
function adaptLowerBounds(c: Connection, b: Bbr): void {
  if (b.bwShortterm == Infinity) b.bwShortterm = b.maxBw;
  if (b.inflightShortterm == Infinity) b.inflightShortterm = <f64>c.congestionWindow;
  b.bwShortterm = max(b.bwLatest, Beta * b.bwShortterm);
  b.inflightShortterm = max(b.inflightLatest, Beta * b.inflightShortterm);
}

/** HandleInflightTooHigh (§5.5.10.2). */
function handleInflightTooHigh(c: Connection, b: Bbr, inFlight: f64, appLimited: bool, now: f64): void {
  b.prevProbeTooHigh = true;
  b.isBwProbeSample = false;
  if (!appLimited) b.inflightLongterm = max(inFlight, targetInflight(c, b) * Beta);
  if (b.state != <u8>STATE_PROBE_BW_UP) return;
  b.undoState = b.state;
  startProbeBwDown(c, b, now);
}

/** InflightAtLoss (§5.5.10.2); as in Linux the prefix is never negative. */
function inflightAtLoss(b: Bbr, lost: f64, inFlight: f64, size: f64): f64 {
  const before = inFlight - size;
  const share = threshold(b);
  const prefix = (share * before - (lost - size)) / (1 - share);
  return before + max(prefix, 0);
}
