/**
 * Detects within 3 s a path that carries packets one way only, or not at all (PROTOCOL.md §6).
 *
 * From its second probe timeout on, an end reports that to its caller: a route may be dead on this side of the station,
 * where only its channel can restore it. On the second it challenges the active and all warm paths. An initiator that
 * is challenged on a warm path challenges too: the peer may be the only end with something to send. An initiator that
 * hears from none repeats the check, as all of them may have been silent for a moment. The consequences of answers and
 * silence: migration.ts.
 */
import { Connection, SUSPECTED } from '../records/connection';
import { flightOf } from '../records/flight';
import {
  CHALLENGES,
  CHALLENGING,
  challengeOf,
  FREE,
  FULL_SIZE,
  is,
  KEPT,
  LEAVING,
  MAX_PATHS,
  pathAt,
  pathsOf,
  VALIDATED,
} from '../records/path';
import { challenge } from './challenges';
import { checkTime } from './migration';

/** PROTOCOL.md §6 */
const SUSPICIOUS_TIMEOUTS: u32 = 2;
/** Our constant, ms: see `reachedOnStandby`. */
const SMALL_PAUSE: f64 = 1_000;

/** Handles the probe timer. */
export function onProbeTimeout(c: Connection, now: f64): void {
  if (!c.flight || flightOf(c).ptoCount < SUSPICIOUS_TIMEOUTS) return;
  c.flags |= SUSPECTED;
  if (c.paths && flightOf(c).ptoCount == SUSPICIOUS_TIMEOUTS) suspect(c, now);
}

/** Checks the liveness of the active path, and whether others could take over. */
export function suspect(c: Connection, now: f64): void {
  if (is(pathAt(c, c.activePath), CHALLENGING) || !hasOther(c)) return;
  pathsOf(c).checkStart = now;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) {
    if (i == c.activePath || mayTakeOver(c, i)) challenge(c, i, now + checkTime(c, i), now);
  }
}

/**
 * The peer reaches this initiator on a path other than the active one, with a challenge. A check that began while that
 * path was silent would ask there again too late. What this sends has full size: small challenges cause it once a
 * second at most.
 */
export function reachedOnStandby(c: Connection, index: u8, isFull: bool, now: f64): void {
  if (!isFull && now < lastAsked(c, index) + SMALL_PAUSE) return;
  suspect(c, now);
  const p = pathAt(c, index);
  if (!is(p, CHALLENGING)) return;
  p.challengeAt = now;
  p.deadline = max(p.deadline, now + checkTime(c, index));
}

/** When the last challenge went out there; 0 = none yet. */
function lastAsked(c: Connection, index: u8): f64 {
  let last: f64 = 0;
  for (let n: u32 = 0; n < CHALLENGES; n++) last = max(last, load<f64>(challengeOf(pathAt(c, index), n), 8));
  return last;
}

function hasOther(c: Connection): bool {
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) if (mayTakeOver(c, i)) return true;
  return false;
}

function mayTakeOver(c: Connection, index: u8): bool {
  const p = pathAt(c, index);
  if (index == c.activePath || p.state == FREE || is(p, LEAVING)) return false;
  // One that failed may carry again; a validation under way keeps its time.
  return is(p, FULL_SIZE) || (is(p, KEPT) && p.state == VALIDATED && !is(p, CHALLENGING));
}
