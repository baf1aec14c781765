/**
 * Which path is the active one (RFC 9000 §9, PROTOCOL.md §6).
 *
 *   the initiator chooses      `choose`; the responder follows the newest packet with a non-probing frame (`followed`)
 *   same id, new address       a NAT has rebound the peer, or somebody forwards copies. The responder follows, and asks old and new
 *                              path: the old one wins if it still answers. What was led astray once is asked before it moves again,
 *                              and the initiator always asks first
 *   at rest                    no path carries anything (connection/resting.ts): either end takes the first that does
 *   no answer                  of the active path in a check: the initiator goes to a warm path that answers
 *
 * Validation itself stands in validation.ts, what changes at a switch in switch.ts.
 */
import {
  PATH_REASON_FAILED_OVER,
  PATH_REASON_FOLLOWED,
  PATH_REASON_MIGRATED,
  PATH_REASON_REBOUND,
  PATH_REASON_RETURNED,
} from '../codes.generated';
import { Connection, DOUBTED, flagged, INITIATOR, RESTING, SEND_PING } from '../records/connection';
import { findLocal } from '../records/connection-ids';
import { flightOf } from '../records/flight';
import {
  ASKED,
  CHALLENGING,
  CHOSEN,
  FREE,
  FULL_SIZE,
  is,
  KEPT,
  LEAVING,
  MOST_PATHS,
  NEWS_FAILED,
  NEWS_VALIDATED,
  NO_PATH,
  pathAt,
  pathsOf,
  VALIDATED,
} from '../records/path';
import { loseInFlight, onProbe } from '../recovery/loss';
import { pathProbeTimeout } from '../recovery/path-state';
import { arrivedAnnounced } from './arrival';
import { challenge, validationTime } from './challenges';
import { switchPath } from './switch';
import { dropPath } from './table';

/** Our constant: a check of a path that carried packets a moment ago takes so many of its PTO, ms at most (PROTOCOL.md §6). */
const CHECK_PTOS: f64 = 3;
const LONGEST_CHECK: f64 = 3_000;
/**
 * Our constant, ms: after the active path has won. A peer that answers from another address than the one it is reached at, as a host with
 * several does, would have us ask with each of its packets, and each question brings one.
 */
const CONTEST_PAUSE: f64 = 3_000;

/** How long a path in use has to answer, ms. */
export function checkTime(c: Connection, index: u8): f64 {
  return min(CHECK_PTOS * pathProbeTimeout(c, index), LONGEST_CHECK);
}

/** The host wants that path; it is taken as soon as it may be. */
export function choose(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  if (index == c.activePath) return;
  if (!is(p, FULL_SIZE)) {
    p.flags |= CHOSEN;
    challenge(c, index, now + validationTime(c, index), now);
    return;
  }
  const left = c.activePath;
  switchPath(c, index, PATH_REASON_MIGRATED, now);
  leave(c, left, now);
  // The peer follows what is no probe.
  c.pending |= SEND_PING;
}

/** The newest packet came in on another path than the active one, and it had a non-probing frame. */
export function followed(c: Connection, index: u8, now: f64): void {
  if (index == NO_PATH || !c.paths) return;
  const all = pathsOf(c);
  const p = pathAt(c, index);
  const isAnnounced = arrivedAnnounced;
  if (flagged(c, RESTING)) {
    takeOver(c, index, now);
  } else if (flagged(c, INITIATOR)) {
    if (!isAnnounced) contest(c, index, now);
  } else if (isAnnounced) {
    const left = c.activePath;
    switchPath(c, index, PATH_REASON_FOLLOWED, now);
    dropRetired(c, left);
    if (p.state != VALIDATED) challenge(c, index, now + validationTime(c, index), now);
  } else if (index == all.former) goBack(c, now);
  else if (flagged(c, DOUBTED)) contest(c, index, now);
  else rebind(c, index, now);
}

/** A challenge was answered; `isFirst`: for the first time in full size. */
export function answered(c: Connection, index: u8, isFirst: bool, now: f64): void {
  const all = pathsOf(c);
  const p = pathAt(c, index);
  const isTold = is(p, ASKED) && is(p, FULL_SIZE) && !is(p, CHALLENGING);
  if (isFirst || isTold) p.news = (p.news & ~NEWS_FAILED) | NEWS_VALIDATED;
  if (isTold) p.flags &= ~ASKED;
  if (index == all.former) {
    goBack(c, now);
  } else if (index == c.activePath) {
    if (all.rival != NO_PATH) all.contestAfter = now + CONTEST_PAUSE;
    all.rival = NO_PATH;
    all.activeDead = 0;
    onAlive(c);
  } else if (is(p, CHOSEN)) {
    if (is(p, FULL_SIZE)) choose(c, index, now);
  } else if (all.activeDead && is(p, FULL_SIZE)) {
    failOverTo(c, index, now);
  }
}

/** The active path carries again: what waits for a probe timeout, which has grown while it did not, goes out now. */
function onAlive(c: Connection): void {
  if (!c.flight || flagged(c, RESTING) || flightOf(c).ptoCount == 0 || flightOf(c).outstanding == 0) return;
  flightOf(c).ptoCount = 0;
  onProbe(c);
}

/** A path did not answer in time. */
export function unanswered(c: Connection, index: u8, now: f64): void {
  const all = pathsOf(c);
  const p = pathAt(c, index);
  if (index == c.activePath) {
    if (flagged(c, RESTING)) p.news |= NEWS_FAILED;
    else activeUnanswered(c, now);
    return;
  }
  const isFormer = index == all.former;
  if (isFormer) all.former = NO_PATH;
  // One that the peer may keep is silent with its network, and comes back with that: it has its time (challenges.ts, `rest`).
  if (!is(p, KEPT) && (isFormer || p.state != VALIDATED)) {
    dropPath(c, index);
    return;
  }
  if (is(p, FULL_SIZE | ASKED) || p.answeredAt < 0) p.news |= NEWS_FAILED;
  p.flags &= ~(FULL_SIZE | CHOSEN | ASKED);
}

/** The peer's address has changed under the same id: go along, and let the old path speak. */
function rebind(c: Connection, index: u8, now: f64): void {
  const all = pathsOf(c);
  const left = c.activePath;
  const wasValidated = pathAt(c, left).state == VALIDATED;
  switchPath(c, index, PATH_REASON_REBOUND, now);
  if (wasValidated) all.former = left;
  else if (!is(pathAt(c, left), KEPT)) dropPath(c, left);
  const p = pathAt(c, index);
  if (p.state != VALIDATED) challenge(c, index, now + validationTime(c, index), now);
  if (all.former != NO_PATH) challenge(c, all.former, now + validationTime(c, all.former), now);
}

/** Nothing came on the path in use any more: the first that carries something takes its place. */
function takeOver(c: Connection, index: u8, now: f64): void {
  const dead = c.activePath;
  switchPath(c, index, PATH_REASON_FAILED_OVER, now);
  dropPath(c, dead);
  if (pathAt(c, index).state != VALIDATED) challenge(c, index, now + validationTime(c, index), now);
}

/** The packet that left a path may have retired its id, too: nothing comes in there from now on. */
function dropRetired(c: Connection, index: u8): void {
  const p = pathAt(c, index);
  if (c.ids && !is(p, KEPT) && !changetype<usize>(findLocal(c, p.localId))) dropPath(c, index);
}

/** The same, but the old path is asked before. */
function contest(c: Connection, index: u8, now: f64): void {
  const all = pathsOf(c);
  if (all.rival == index || now < all.contestAfter) return;
  all.rival = index;
  challenge(c, c.activePath, now + checkTime(c, c.activePath), now);
  challenge(c, index, now + validationTime(c, index), now);
}

/** The old path is alive: whoever led us away from it is not followed so easily again. */
function goBack(c: Connection, now: f64): void {
  const all = pathsOf(c);
  const former = all.former;
  all.former = NO_PATH;
  c.flags |= DOUBTED;
  switchPath(c, former, PATH_REASON_RETURNED, now);
}

function activeUnanswered(c: Connection, now: f64): void {
  const all = pathsOf(c);
  const dead = c.activePath;
  if (all.rival != NO_PATH) {
    const rival = all.rival;
    all.rival = NO_PATH;
    switchPath(c, rival, PATH_REASON_REBOUND, now);
    loseInFlight(c, dead);
    if (!is(pathAt(c, dead), KEPT)) dropPath(c, dead);
  } else if (pathAt(c, dead).state != VALIDATED) {
    // §9.3.2: back to the last address that was validated, if it is still one of ours.
    if (all.former == NO_PATH) all.former = lastValidated(c);
    if (all.former != NO_PATH) goBack(c, now);
  } else if (flagged(c, INITIATOR)) {
    all.activeDead = 1;
    const best = bestAnswering(c);
    if (best != NO_PATH) failOverTo(c, best, now);
  }
}

function failOverTo(c: Connection, index: u8, now: f64): void {
  const dead = c.activePath;
  switchPath(c, index, PATH_REASON_FAILED_OVER, now);
  pathAt(c, dead).flags &= ~FULL_SIZE;
  loseInFlight(c, dead);
  leave(c, dead, now);
  c.pending |= SEND_PING;
}

/** The path of the shortest round trip among those that answered since the check began. */
function bestAnswering(c: Connection): u8 {
  let best = NO_PATH;
  for (let i: u8 = 0; i < <u8>MOST_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || p.state == FREE || !is(p, FULL_SIZE) || p.answeredAt < pathsOf(c).checkStart) continue;
    if (best == NO_PATH || p.smoothedRtt < pathAt(c, best).smoothedRtt) best = i;
  }
  return best;
}

/** The path besides the active one that answered last, NO_PATH when none is validated. */
function lastValidated(c: Connection): u8 {
  let last = NO_PATH;
  for (let i: u8 = 0; i < <u8>MOST_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || p.state != VALIDATED) continue;
    if (last == NO_PATH || p.answeredAt > pathAt(c, last).answeredAt) last = i;
  }
  return last;
}

/** A path that was left, unless the host keeps it, is forgotten once packets that are still under way have arrived. */
function leave(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  if (is(p, KEPT)) return;
  p.flags |= LEAVING;
  p.deadline = now + checkTime(c, index);
}
