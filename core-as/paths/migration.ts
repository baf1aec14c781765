/**
 * Selects the active path (RFC 9000 §9, PROTOCOL.md §6).
 *
 *   the initiator chooses      `choose`; the responder follows the newest packet with a non-probing frame (`followed`)
 *   same id, new address       a NAT has rebound the peer, or an attacker forwards copies. The responder follows, and
 *                              challenges the old and the new path: the old one wins if it still answers. After one
 *                              such detour the old path is challenged before the next migration; an initiator always
 *                              does that first
 *   at rest                    no path carries anything (connection/resting.ts): either end takes the first that does
 *   no answer                  from the active path in a check: the initiator migrates to a warm path that answers
 *
 * arrival.ts finds the path of a packet, challenges.ts and connection/path-probes.ts send challenges, validation.ts
 * handles the answers, failover.ts detects a path that went silent; switch.ts lists what changes at a switch. Paths are
 * indexes here: `protocol/connection/paths.ts` maps them to addresses.
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
  MAX_PATHS,
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

/**
 * Our constants: time for checking a path that carried packets a moment ago: multiples of its PTO; upper bound in ms
 * (PROTOCOL.md §6).
 */
const CHECK_PTOS: f64 = 3;
const LONGEST_CHECK: f64 = 3_000;
/**
 * Our constant, ms: pause after the active path has won. A peer that answers from an address other than the one at
 * which it is reached, as a multihomed host does, would cause a check with each of its packets, and each check brings
 * another packet.
 */
const CONTEST_PAUSE: f64 = 3_000;
/** Our constant, ms: pause between two checks while no path answers. */
const SEEK_PAUSE: f64 = 3_000;

/** Time for a path in use to answer, ms. */
export function checkTime(c: Connection, index: u8): f64 {
  return min(CHECK_PTOS * pathProbeTimeout(c, index), LONGEST_CHECK);
}

/** The caller wants that path: it becomes active as soon as it may. */
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
  // The peer follows non-probing frames.
  c.pending |= SEND_PING;
}

/** The newest packet arrived on a path other than the active one and had a non-probing frame. */
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
  const isReported = is(p, ASKED) && is(p, FULL_SIZE) && !is(p, CHALLENGING);
  if (isFirst || isReported) p.news = (p.news & ~NEWS_FAILED) | NEWS_VALIDATED;
  if (isReported) p.flags &= ~ASKED;
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

/** The active path carries again: sends at once what waits for a probe timeout, which backed off meanwhile. */
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
  // A path that the peer may keep is silent with its network, and returns with it: it keeps its time (challenges.ts,
  // `rest`).
  if (!is(p, KEPT) && (isFormer || p.state != VALIDATED)) {
    dropPath(c, index);
    return;
  }
  if (is(p, FULL_SIZE | ASKED) || p.answeredAt < 0) p.news |= NEWS_FAILED;
  p.flags &= ~(FULL_SIZE | CHOSEN | ASKED);
}

/** The peer's address has changed under the same id: follow, and challenge the old path. */
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

/** The active path no longer carries packets: the first one that does takes its place. */
function takeOver(c: Connection, index: u8, now: f64): void {
  const dead = c.activePath;
  switchPath(c, index, PATH_REASON_FAILED_OVER, now);
  dropPath(c, dead);
  if (pathAt(c, index).state != VALIDATED) challenge(c, index, now + validationTime(c, index), now);
}

/** The packet that left a path may have retired its id, too: nothing arrives there from now on. */
function dropRetired(c: Connection, index: u8): void {
  const p = pathAt(c, index);
  if (c.ids && !is(p, KEPT) && !changetype<usize>(findLocal(c, p.localId))) dropPath(c, index);
}

/** As `rebind`, but challenges the old path first. */
function contest(c: Connection, index: u8, now: f64): void {
  const all = pathsOf(c);
  if (all.rival == index || now < all.contestAfter) return;
  all.rival = index;
  challenge(c, c.activePath, now + checkTime(c, c.activePath), now);
  challenge(c, index, now + validationTime(c, index), now);
}

/** The old path is alive: returns to it, and makes the next such migration harder. */
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
    // §9.3.2: back to the last address that was validated, if its path still exists.
    if (all.former == NO_PATH) all.former = lastValidated(c);
    if (all.former != NO_PATH) goBack(c, now);
  } else if (flagged(c, INITIATOR)) {
    all.activeDead = 1;
    const best = bestAnswering(c);
    if (best != NO_PATH) failOverTo(c, best, now);
    else pathAt(c, dead).challengeAt = now + SEEK_PAUSE;
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

/** The path with the shortest round trip among those that answered since the check began. */
function bestAnswering(c: Connection): u8 {
  let best = NO_PATH;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || p.state == FREE || !is(p, FULL_SIZE) || p.answeredAt < pathsOf(c).checkStart) continue;
    if (best == NO_PATH || p.smoothedRtt < pathAt(c, best).smoothedRtt) best = i;
  }
  return best;
}

/** The path other than the active one that answered last, NO_PATH when none is validated. */
function lastValidated(c: Connection): u8 {
  let last = NO_PATH;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || p.state != VALIDATED) continue;
    if (last == NO_PATH || p.answeredAt > pathAt(c, last).answeredAt) last = i;
  }
  return last;
}

/** Leaves a path; unless the caller keeps it, it is forgotten once packets still under way have arrived. */
function leave(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  if (is(p, KEPT)) return;
  p.flags |= LEAVING;
  p.deadline = now + checkTime(c, index);
}
