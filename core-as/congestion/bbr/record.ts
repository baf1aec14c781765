/**
 * The state of BBR: fields of the model chunk (congestion/model.ts), named as in draft-ietf-ccwg-bbr §2 and §4.1.2.1.
 * Rates are bytes per millisecond, volumes bytes, times ms; Infinity = not set.
 */
import { STATE_COMPETE, STATE_PROBE_BW_DOWN, STATE_PROBE_BW_REFILL, STATE_PROBE_BW_UP, STATE_STARTUP } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { Model } from '../model';
import { MinPipeCwndPackets } from './constants';

// ack_phase (§2.14)
export const ACKS_INIT: u8 = 0;
export const ACKS_REFILLING: u8 = 1;
export const ACKS_PROBE_STARTING: u8 = 2;
export const ACKS_PROBE_FEEDBACK: u8 = 3;
export const ACKS_PROBE_STOPPING: u8 = 4;

/** undo_state "None" (§5.5.11): no state to restore. */
export const NO_STATE: u8 = 255;

@unmanaged
export class Bbr extends Model {
  // Delivery-rate sampling: of the connection.
  delivered: u64;
  lost: u64;
  /** `delivered` that ends the application-limited phase, 0 = not limited. */
  appLimited: u64;
  deliveredTime: f64;
  firstSendTime: f64;
  // Control parameters.
  pacingRate: f64;
  sendQuantum: f64;
  priorCwnd: f64;
  // Rounds.
  nextRoundDelivered: u64;
  lossRoundDelivered: u64;
  roundCount: u32;
  drainStartRound: u32;
  roundsSinceProbeUp: u32;
  // Data rate.
  maxBw: f64;
  maxBwCurrent: f64;
  maxBwPrevious: f64;
  /** Ours (compete.ts): known capacity of the line. */
  lineBw: f64;
  bwShortterm: f64;
  bw: f64;
  bwLatest: f64;
  // Data volume.
  minRtt: f64;
  minRttStamp: f64;
  inflightLongterm: f64;
  inflightShortterm: f64;
  inflightLatest: f64;
  maxInflight: f64;
  // Aggregation: the largest of the current and of the previous half window.
  extraAckedIntervalStart: f64;
  extraAckedDelivered: f64;
  extraAckedCurrent: f64;
  extraAckedPrevious: f64;
  extraAckedRound: u32;
  // Full pipe.
  fullBwCount: u32;
  fullBw: f64;
  // ProbeBW.
  bwProbeUpAcked: f64;
  probeUpAckedPerInc: f64;
  cycleStamp: f64;
  bwProbeWait: f64;
  bwProbeUpRounds: u32;
  // Ours (probe-up.ts): max_bw when UP began; the minimum RTT since; since when every packet took longer, Infinity =
  // the last one did not.
  upBw: f64;
  upRtt: f64;
  upQueueSince: f64;
  // ProbeRTT.
  probeRttDoneStamp: f64;
  probeRttCwnd: f64;
  // Ours (loss.ts): this round's losses and round trips, and the path's loss without a queue.
  roundLost: f64;
  roundDelivered: f64;
  roundMinRtt: f64;
  roundMaxRtt: f64;
  randomLoss: f64;
  // Ours (loss.ts, compete.ts): the minimum RTT of this and of the last interval; rounds of CRUISE in which every
  // packet waited.
  quietRtt: f64;
  quietRttPrevious: f64;
  quietStamp: f64;
  waitedRounds: u32;
  // Undo (§5.5.11).
  undoBwShortterm: f64;
  undoInflightShortterm: f64;
  undoInflightLongterm: f64;
  /** The state that a loss ended, or COMPETE after a loss in it, else NO_STATE. */
  undoState: u8;
  /** Ours (loss.ts): rounds in `randomLoss`, up to 255. */
  randomLossRounds: u8;
  lastLost: u64;
  lossRanges: u32;
  state: u8;
  ackPhase: u8;
  roundStart: bool;
  lossRoundStart: bool;
  lossInRound: bool;
  congestedRound: bool;
  quietRound: bool;
  waitedRound: bool;
  competed: bool;
  isBwProbeSample: bool;
  prevProbeTooHigh: bool;
  prevProbePrecautionary: bool;
  fullBwReached: bool;
  fullBwNow: bool;
  minRttExpired: bool;
  probeRttRoundDone: bool;
  idleRestart: bool;
  hasRtt: bool;
  /** Whether the window was full in this round; in this or the last one (C.is_cwnd_limited). */
  windowFull: bool;
  cwndLimited: bool;
  /** Whether data waited for the peer's credit in this round; in this or the last one. */
  outOfCredit: bool;
  creditLimited: bool;
}

/** Bytes of the chunk in use. */
export const BBR_USED: usize = offsetof<Bbr>();

export function bbrOf(c: Connection): Bbr {
  return changetype<Bbr>(c.model);
}

/** C.SMSS */
export function smss(c: Connection): f64 {
  return <f64>c.packetSize;
}

export function minPipeCwnd(c: Connection): f64 {
  return MinPipeCwndPackets * smss(c);
}

export function isInProbeBw(b: Bbr): bool {
  return b.state >= <u8>STATE_PROBE_BW_DOWN && b.state <= <u8>STATE_PROBE_BW_UP;
}

export function isProbingBw(b: Bbr): bool {
  return b.state == <u8>STATE_STARTUP || b.state == <u8>STATE_PROBE_BW_REFILL || b.state == <u8>STATE_PROBE_BW_UP;
}

/** Returns whether the window is CUBIC's, beside a flow that fills the queue (compete.ts). */
export function isCompeting(b: Bbr): bool {
  return b.state == <u8>STATE_COMPETE;
}
