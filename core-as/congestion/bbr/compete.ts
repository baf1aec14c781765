/**
 * Behaviour beside a flow that fills the queue: our addition to BBR, so that a CUBIC neighbour keeps its share.
 *
 * The draft probes every 2 to 3 s at 1.25 times its rate, whatever else is on the link. In a queue of one
 * bandwidth-delay product each probe costs a CUBIC flow 30 % and us nothing; CUBIC needs K = 5 s and more to recover,
 * and ends with a tenth of the link. So where another flow holds the queue, we behave as it does:
 *
 *   CRUISE, and all packets waited in the last 4 rounds → DOWN, which drains our part; if they still wait after 8
 *   rounds of it
 *     → COMPETE: window, growth and reduction are CUBIC's (../cubic.ts); bandwidth and minimum RTT are still measured.
 *       Two CUBIC flows that begin unequal take minutes to become equal; we know a lower bound of the line's rate,
 *       and reduce less while we have little of it
 *     → back when no packet waits any longer, and for each ProbeRTT: if the other flow has ended, that drains the
 *       queue; if not, COMPETE resumes after a few rounds
 *
 * Waiting at the hosts themselves is not a queue of other flows (`HostDelay`). A path with random loss never gets
 * there: a CUBIC flow cannot fill a queue on it, and its window would ruin ours.
 */
import { STATE_COMPETE, STATE_PROBE_BW_CRUISE, STATE_PROBE_BW_DOWN } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { BETA_CUBIC, cubicBegin, cubicLost, cubicWindowNow } from '../cubic';
import {
  CompetingRounds,
  DeepQueue,
  DrainingRounds,
  LineBwDecay,
  MostCompetingLoss,
  PoorBeta,
  PoorShare,
  PoorShareDeep,
  ResumingRounds,
} from './constants';
import { Bbr, minPipeCwnd } from './record';
import { resetShortTermModel } from './signals';

/** Returns whether another flow holds the queue. */
export function queueIsHeld(b: Bbr): bool {
  const cruising = b.competed ? ResumingRounds : CompetingRounds;
  const rounds = b.state == <u8>STATE_PROBE_BW_DOWN ? DrainingRounds : cruising;
  return b.waitedRounds >= rounds && b.randomLoss <= MostCompetingLoss;
}

/** Counts a finished round: `waited` if all its packets waited, `quiet` if none did. */
export function countWaitedRound(b: Bbr, waited: bool, quiet: bool): void {
  if (b.state == <u8>STATE_PROBE_BW_CRUISE || b.state == <u8>STATE_PROBE_BW_DOWN) b.waitedRounds = waited ? b.waitedRounds + 1 : 0;
  b.quietRound = quiet;
  if (quiet) b.competed = false;
}

/** Factor that a loss leaves of CUBIC's window: larger for a flow that has little of the line. */
export function reduction(c: Connection, b: Bbr): f64 {
  const share = <f64>c.congestionWindow / max(<f64>c.smoothedRtt, 0.01) / b.lineBw;
  const isDeep = <f64>c.smoothedRtt > DeepQueue * min(b.quietRtt, b.quietRttPrevious);
  const poor = isDeep ? PoorShareDeep : PoorShare;
  return share < poor ? PoorBeta : BETA_CUBIC;
}

/** Call when a cycle of probing ends or the queue is held: the line carries at least our recent rate. */
export function noteLineBw(b: Bbr): void {
  b.lineBw = max(b.maxBw, b.lineBw * LineBwDecay);
}

/** Starts CUBIC's window: the one that ProbeRTT interrupted, or what is in flight now. */
export function startCompete(c: Connection, b: Bbr, now: f64): void {
  const window = b.competed ? cubicWindowNow(c) : min(c.congestionWindow, c.bytesInFlight);
  c.congestionWindow = max(window, <u32>minPipeCwnd(c));
  c.slowStartThreshold = <u32>minPipeCwnd(c);
  resetShortTermModel(b);
  noteLineBw(b);
  if (!b.competed) cubicBegin(c, now);
  if (b.congestedRound) cubicLost(c, now, now, reduction(c, b));
  b.state = <u8>STATE_COMPETE;
}

/** Returns to BBR's window; its bandwidth is the latest delivery rate. */
export function endCompete(c: Connection, b: Bbr): void {
  c.slowStartThreshold = u32.MAX_VALUE;
  b.maxBwPrevious = b.bwLatest;
  b.maxBwCurrent = b.bwLatest;
  b.maxBw = b.bwLatest;
  b.waitedRounds = 0;
  b.competed = true;
}
