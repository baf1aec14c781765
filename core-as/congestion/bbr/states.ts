/**
 * The state machine (draft-ietf-ccwg-bbr §5.3).
 *
 *   Startup → Drain → ProbeBW: DOWN → CRUISE → REFILL → UP → DOWN …          any → ProbeRTT → CRUISE (or Startup)
 *
 * Each function is named after its counterpart there.
 */
import {
  STATE_DRAIN,
  STATE_PROBE_BW_CRUISE,
  STATE_PROBE_BW_DOWN,
  STATE_PROBE_BW_REFILL,
  STATE_PROBE_BW_UP,
  STATE_PROBE_RTT,
  STATE_STARTUP,
} from '../../codes.generated';
import { Connection, nextRandom } from '../../records/connection';
import { endCompete, noteLineBw, queueIsHeld, startCompete } from './compete';
import {
  DrainRounds,
  FullBwGrowth,
  FullBwRounds,
  MostProbeRounds,
  ProbeWaitBase,
  ProbeWaitLeast,
  ProbeWaitSpread,
  StartupFullLossCnt,
} from './constants';
import { inflightWithHeadroom } from './control';
import { advanceMaxBwFilter, bdpMultiple, inflightOf, startRound, targetInflight } from './path';
import { isUpQueueing, resetUpQueue } from './probe-up';
import { rsAppLimited, rsDeliveryRate, rsTxInFlight } from './rate-sample';
import {
  ACKS_INIT,
  ACKS_PROBE_FEEDBACK,
  ACKS_PROBE_STARTING,
  ACKS_PROBE_STOPPING,
  ACKS_REFILLING,
  Bbr,
  isCompeting,
  isInProbeBw,
  NO_STATE,
  smss,
} from './record';
import { isInflightTooHigh, resetCongestionSignals, resetShortTermModel } from './signals';

const MAX_UP_ROUNDS: u32 = 30;

export function enterStartup(b: Bbr): void {
  b.state = <u8>STATE_STARTUP;
}

/** ResetFullBW (§5.3.1.2). */
export function resetFullBw(b: Bbr): void {
  b.fullBw = 0;
  b.fullBwCount = 0;
  b.fullBwNow = false;
}

/**
 * CheckFullBWReached (§5.3.1.2). A round that waited for the peer's credit counts however its samples are marked: the
 * peer's window is a bottleneck like any other (§4.1.1), and Startup against it would fill the queue with every
 * announcement.
 */
export function checkFullBwReached(b: Bbr): void {
  if (b.fullBwNow || !b.roundStart || (rsAppLimited && !b.creditLimited)) return;
  if (rsDeliveryRate >= b.fullBw * FullBwGrowth) {
    resetFullBw(b);
    b.fullBw = rsDeliveryRate;
    return;
  }
  b.fullBwCount++;
  b.fullBwNow = b.fullBwCount >= FullBwRounds;
  if (b.fullBwNow) b.fullBwReached = true;
}

/** CheckStartupDone (§5.3.1.1), with CheckStartupHighLoss (§5.3.1.3). */
export function checkStartupDone(c: Connection, b: Bbr): void {
  if (b.state != <u8>STATE_STARTUP) return;
  if (b.lossRoundStart && b.congestedRound && b.lossRanges >= StartupFullLossCnt) {
    b.undoState = b.state;
    b.fullBwReached = true;
    b.inflightLongterm = max(bdpMultiple(c, b, b.maxBw, 1), b.inflightLatest);
  }
  if (!b.fullBwReached) return;
  b.state = <u8>STATE_DRAIN;
  b.drainStartRound = b.roundCount;
}

/** CheckDrainDone (§5.3.2). */
export function checkDrainDone(c: Connection, b: Bbr, now: f64): void {
  if (b.state != <u8>STATE_DRAIN) return;
  if (<f64>c.bytesInFlight <= inflightOf(c, b, b.bw, 1) || b.roundCount > b.drainStartRound + DrainRounds) startProbeBwDown(c, b, now);
}

/** UpdateProbeBWCyclePhase (§5.3.3.9). */
export function updateProbeBwCyclePhase(c: Connection, b: Bbr, acked: f64, now: f64): void {
  if (isCompeting(b)) {
    if (!b.lossRoundStart || !b.quietRound) return;
    endCompete(c, b);
    startProbeBwDown(c, b, now);
    return;
  }
  if (!b.fullBwReached || adaptLongTermModel(c, b, acked) || !isInProbeBw(b)) return;
  switch (<u32>b.state) {
    case STATE_PROBE_BW_DOWN:
      if (queueIsHeld(b)) startCompete(c, b, now);
      else if (!isTimeToProbeBw(c, b, now) && isTimeToCruise(c, b)) startProbeBwCruise(b);
      break;
    case STATE_PROBE_BW_CRUISE:
      // Such a queue may be our own, from a bandwidth measured too high: DOWN finds out, as ProbeRTT has just done.
      if (!queueIsHeld(b)) isTimeToProbeBw(c, b, now);
      else if (b.competed) startCompete(c, b, now);
      else startProbeBwDown(c, b, now);
      break;
    case STATE_PROBE_BW_REFILL:
      if (b.roundStart) {
        b.isBwProbeSample = true;
        startProbeBwUp(c, b);
      }
      break;
    default:
      if (isTimeToGoDown(c, b) || isUpQueueing(b, now)) {
        b.prevProbeTooHigh = false;
        startProbeBwDown(c, b, now);
      }
  }
}

/** HandleSpuriousLossDetection (§5.5.11). */
export function handleSpuriousLossDetection(b: Bbr): void {
  b.lossInRound = false;
  resetFullBw(b);
  b.bwShortterm = max(b.bwShortterm, b.undoBwShortterm);
  b.inflightShortterm = max(b.inflightShortterm, b.undoInflightShortterm);
  b.inflightLongterm = max(b.inflightLongterm, b.undoInflightLongterm);
  const ended = b.undoState;
  b.undoState = NO_STATE;
  if (ended == b.state) return;
  const mayMove = b.state != <u8>STATE_PROBE_RTT && !isCompeting(b);
  if (ended == <u8>STATE_STARTUP) {
    b.fullBwReached = false;
    if (mayMove) enterStartup(b);
  } else if (ended == <u8>STATE_PROBE_BW_UP && mayMove) startProbeBwRefill(b);
}

export function startProbeBwDown(c: Connection, b: Bbr, now: f64): void {
  resetCongestionSignals(b);
  b.probeUpAckedPerInc = Infinity;
  pickProbeWait(c, b);
  b.cycleStamp = now;
  b.ackPhase = ACKS_PROBE_STOPPING;
  b.waitedRounds = 0;
  startRound(b);
  b.state = <u8>STATE_PROBE_BW_DOWN;
}

export function startProbeBwCruise(b: Bbr): void {
  b.waitedRounds = 0;
  b.state = <u8>STATE_PROBE_BW_CRUISE;
}

function startProbeBwRefill(b: Bbr): void {
  resetShortTermModel(b);
  b.bwProbeUpRounds = 0;
  b.bwProbeUpAcked = 0;
  b.prevProbePrecautionary = false;
  b.ackPhase = ACKS_REFILLING;
  startRound(b);
  b.state = <u8>STATE_PROBE_BW_REFILL;
}

function startProbeBwUp(c: Connection, b: Bbr): void {
  b.ackPhase = ACKS_PROBE_STARTING;
  startRound(b);
  resetFullBw(b);
  b.fullBw = rsDeliveryRate;
  resetUpQueue(b);
  b.state = <u8>STATE_PROBE_BW_UP;
  raiseInflightLongtermSlope(c, b);
}

/** PickProbeWait (§5.3.3.8.3). */
function pickProbeWait(c: Connection, b: Bbr): void {
  const random = nextRandom(c);
  b.roundsSinceProbeUp = random & 1;
  b.bwProbeWait = ProbeWaitBase + (ProbeWaitSpread * <f64>(random >> 1)) / <f64>(u32.MAX_VALUE >> 1);
}

/** IsTimeToProbeBW and IsRenoCoexistenceProbeTime (§5.3.3.8.3). */
function isTimeToProbeBw(c: Connection, b: Bbr, now: f64): bool {
  const rounds = min(targetInflight(c, b) / smss(c), MostProbeRounds);
  const asReno = now > b.cycleStamp + ProbeWaitLeast && <f64>b.roundsSinceProbeUp >= rounds;
  if (!asReno && now <= b.cycleStamp + b.bwProbeWait) return false;
  startProbeBwRefill(b);
  return true;
}

/** IsTimeToCruise (§5.3.3.9). */
function isTimeToCruise(c: Connection, b: Bbr): bool {
  const inFlight = <f64>c.bytesInFlight;
  return inFlight <= inflightWithHeadroom(c, b) && inFlight <= inflightOf(c, b, b.maxBw, 1);
}

/** IsTimeToGoDown (§5.3.3.9). */
function isTimeToGoDown(c: Connection, b: Bbr): bool {
  if (b.prevProbeTooHigh && <f64>c.bytesInFlight >= b.inflightLongterm) {
    b.prevProbePrecautionary = true;
    return true;
  }
  if (isHeldByLongterm(c, b)) {
    resetFullBw(b);
    b.fullBw = rsDeliveryRate;
    return false;
  }
  return b.fullBwNow;
}

/** AdaptLongTermModel (§5.3.3.9); true when it changed the state. */
function adaptLongTermModel(c: Connection, b: Bbr, acked: f64): bool {
  if (b.ackPhase == ACKS_PROBE_STARTING && b.roundStart) b.ackPhase = ACKS_PROBE_FEEDBACK;
  if (b.ackPhase == ACKS_PROBE_STOPPING && b.roundStart) {
    b.isBwProbeSample = false;
    b.ackPhase = ACKS_INIT;
    if (isInProbeBw(b) && !rsAppLimited) {
      noteLineBw(b);
      advanceMaxBwFilter(b);
    }
    if (isInProbeBw(b) && b.prevProbePrecautionary && !b.prevProbeTooHigh) {
      startProbeBwRefill(b);
      return true;
    }
  }
  if (isInflightTooHigh(c, b) || b.inflightLongterm == Infinity) return false;
  b.inflightLongterm = max(b.inflightLongterm, rsTxInFlight);
  if (b.state == <u8>STATE_PROBE_BW_UP) probeInflightLongtermUpward(c, b, acked);
  return false;
}

/** RaiseInflightLongtermSlope (§5.3.3.9). */
function raiseInflightLongtermSlope(c: Connection, b: Bbr): void {
  const growth = <f64>(1 << b.bwProbeUpRounds);
  b.bwProbeUpRounds = min(b.bwProbeUpRounds + 1, MAX_UP_ROUNDS);
  b.probeUpAckedPerInc = max(<f64>c.congestionWindow / growth, smss(c));
}

/** ProbeInflightLongtermUpward (§5.3.3.9). */
function probeInflightLongtermUpward(c: Connection, b: Bbr, acked: f64): void {
  if (!isHeldByLongterm(c, b)) return;
  b.bwProbeUpAcked += acked;
  if (b.bwProbeUpAcked >= b.probeUpAckedPerInc) {
    const delta = Math.floor(b.bwProbeUpAcked / b.probeUpAckedPerInc);
    b.bwProbeUpAcked -= delta * b.probeUpAckedPerInc;
    b.inflightLongterm += delta * smss(c);
  }
  if (b.roundStart) raiseInflightLongtermSlope(c, b);
}

/** Returns whether the window is full and inflight_longterm limits it. A window is a whole number of bytes. */
function isHeldByLongterm(c: Connection, b: Bbr): bool {
  return (b.cwndLimited || b.windowFull) && <f64>c.congestionWindow + 1 > b.inflightLongterm;
}
