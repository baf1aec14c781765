/**
 * Challenges paths (RFC 9000 §8.2): a PATH_CHALLENGE now, again at doubling intervals (connection/path-probes.ts writes
 * it), until an answer or the deadline; and at intervals on a path that is kept warm.
 *
 * A keep-warm challenge of a path that has shown full size is small: it serves NATs, and shows that the peer still
 * answers. Every eighth has full size, because the path's capacity may change and the caller may choose the path at any
 * time. A check of failover.ts always has full size, and no answer to a small challenge ends it.
 *
 * The consequences of an answer, or of none, are not decided here (validation.ts, migration.ts).
 */
import { Connection } from '../records/connection';
import { flightIsFull } from '../records/flight';
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
  NEEDS_ID,
  Path,
  pathAt,
  SMALL,
  VALIDATED,
} from '../records/path';
import { pathProbeTimeout } from '../recovery/path-state';
import { allowance } from './amplification';

/** RFC 9000 §8.2.1: UDP payload of a full-size datagram. */
export const FULL_DATAGRAM: u32 = 1_200;
/** RFC 9002 §6.2.2: PTO of a path without samples; RFC 9000 §8.2.4: multiples of the larger one. */
const INITIAL_PTO: f64 = 999;
const VALIDATION_PTOS: f64 = 3;
/**
 * Our constant: the first repetition comes after half a PTO, so that three challenges fit into a check of 3 PTO; not
 * sooner than this, ms.
 */
const MIN_INTERVAL: f64 = 20;
/**
 * Our constants, ms: when a path that the caller does not keep is forgotten. A peer that keeps one warm uses it more
 * often; an unvalidated one may be an attacker's.
 */
const FORGET_AFTER: f64 = 90_000;
const FORGET_UNVALIDATED: f64 = 5_000;
/** Our constant: one keep-warm challenge in this many has full size. */
const FULL_ONE_IN: u8 = 8;
/** Header, tag and the challenge itself. */
const MIN_PACKET: f64 = 13 + 16 + 9 + 9;

/** Time for a new path to answer, ms. */
export function validationTime(c: Connection, index: u8): f64 {
  return VALIDATION_PTOS * max(INITIAL_PTO, max(pathProbeTimeout(c, index), pathProbeTimeout(c, c.activePath)));
}

/** Challenges the path, at once, until `deadline` at the latest. */
export function challenge(c: Connection, index: u8, deadline: f64, now: f64): void {
  const p = pathAt(c, index);
  // Outstanding small ones say nothing about size: from here on their answers do not count.
  const isAsked = is(p, CHALLENGING) && !is(p, SMALL);
  p.deadline = isAsked ? min(p.deadline, deadline) : deadline;
  if (!isAsked) {
    p.challengesSent = 0;
    p.fullSize = 0;
  }
  p.flags = (p.flags | CHALLENGING) & ~(LEAVING | SMALL);
  p.challengeAt = now;
}

/** Challenges a warm path whose turn it is. */
export function keepWarm(c: Connection, index: u8, now: f64): void {
  challenge(c, index, now + validationTime(c, index), now);
  const p = pathAt(c, index);
  p.keeps = (p.keeps + 1) % FULL_ONE_IN;
  if (is(p, FULL_SIZE) && p.keeps != 0) p.flags |= SMALL;
}

/** Returns whether a challenge may and should go to the path now. */
export function challengeDue(p: Path, now: f64): bool {
  return is(p, CHALLENGING) && now >= p.challengeAt && mayAsk(p);
}

/** Notes that a challenge with `data` goes out, in a full-size datagram or not. */
export function noteChallenge(c: Connection, index: u8, data: u64, fullSize: bool, now: f64): void {
  const p = pathAt(c, index);
  const place = challengeOf(p, p.challengesSent);
  store<u64>(place, data);
  store<f64>(place, now, 8);
  const bit = <u8>(1 << (p.challengesSent % <u8>CHALLENGES));
  p.fullSize = fullSize ? p.fullSize | bit : p.fullSize & ~bit;
  const interval = max(pathProbeTimeout(c, index) / 2, MIN_INTERVAL);
  p.challengeAt = now + interval * <f64>(1 << min(p.challengesSent, 10));
  if (p.challengesSent < 200) p.challengesSent += 1;
}

/** Returns when a path next needs a packet or a decision, Infinity = never. */
export function pathTime(c: Connection): f64 {
  if (!c.paths) return Infinity;
  // A challenge that finds the number space full goes out after the acknowledgement or timer that makes room.
  const isFull = flightIsFull(c);
  let next = Infinity;
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE) continue;
    next = min(next, p.deadline);
    if (!is(p, CHALLENGING) || (mayAsk(p) && !isFull)) next = min(next, p.challengeAt);
  }
  return next;
}

/**
 * Ends a validation or check: the next challenge keeps a warm path; a path that the caller does not keep is eventually
 * forgotten.
 */
export function rest(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  const isActive = index == c.activePath;
  const isWarm = is(p, KEPT) && p.keepInterval > 0 && !isActive;
  p.challengeAt = isWarm ? now + <f64>p.keepInterval : Infinity;
  if (!is(p, LEAVING)) p.deadline = isActive || is(p, KEPT) ? Infinity : now + (p.state == VALIDATED ? FORGET_AFTER : FORGET_UNVALIDATED);
}

function mayAsk(p: Path): bool {
  return !is(p, NEEDS_ID) && allowance(p) >= MIN_PACKET;
}
