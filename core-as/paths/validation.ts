/**
 * Path validation (RFC 9000 §8.2): does the peer receive there?
 *
 *   challenge     begins: a PATH_CHALLENGE now, again at doubling intervals (connection/path-probes.ts writes it), until an answer or the deadline
 *   onResponse    an answer: the address is proven; in a datagram of full size the path may be chosen
 *   onPathTimeout deadlines, and the challenges that keep a warm path
 *
 * What an answer or its absence means for the choice of the active path is not decided here (migration.ts).
 */
import { Connection, flagged, HAS_RTT, LIMITED } from "../records/connection";
import { flightIsFull } from "../records/flight";
import {
  challengeOf, CHALLENGES, CHALLENGING, FREE, FULL_SIZE, is, KEPT, LEAVING, MOST_PATHS, NEEDS_ID, Path, pathAt, PROVEN,
} from "../records/path";
import { guessRtt, pathProbeTimeout } from "../recovery/path-state";
import { allowance } from "./amplification";
import { answered, unanswered } from "./migration";
import { dropPath } from "./table";

/** RFC 9002 §6.2.2: PTO of a path without samples; RFC 9000 §8.2.4: so many of the larger one. */
const INITIAL_PTO: f64 = 999;
const VALIDATION_PTOS: f64 = 3;
/** Our constant: the first repetition comes after half a PTO, so that three challenges fit a check of 3 PTO; not sooner than this, ms. */
const LEAST_INTERVAL: f64 = 20;
/** Our constants, ms: when a path that nobody keeps here is forgotten. A peer that keeps one warm uses it more often; unproven ones may be anybody's. */
const FORGET_AFTER: f64 = 90_000;
const FORGET_UNPROVEN: f64 = 5_000;
/** Header, tag and the challenge itself. */
const LEAST_PACKET: f64 = 13 + 16 + 9 + 9;

/** How long a new path has to answer, ms. */
export function validationTime(c: Connection, index: u8): f64 {
  return VALIDATION_PTOS * max(INITIAL_PTO, max(pathProbeTimeout(c, index), pathProbeTimeout(c, c.activePath)));
}

/** Asks the path, at once, until `deadline` at the latest. */
export function challenge(c: Connection, index: u8, deadline: f64, now: f64): void {
  const p = pathAt(c, index);
  p.deadline = is(p, CHALLENGING) ? min(p.deadline, deadline) : deadline;
  if (!is(p, CHALLENGING)) {
    p.challengesSent = 0;
    p.fullSize = 0;
  }
  p.flags = (p.flags | CHALLENGING) & ~LEAVING;
  p.challengeAt = now;
}

/** Whether a challenge may and should go to the path now. */
export function challengeDue(p: Path, now: f64): bool {
  return is(p, CHALLENGING) && now >= p.challengeAt && mayAsk(p);
}

/** A challenge with `data` goes out, in a datagram of full size or not. */
export function noteChallenge(c: Connection, index: u8, data: u64, fullSize: bool, now: f64): void {
  const p = pathAt(c, index);
  const place = challengeOf(p, p.challengesSent);
  store<u64>(place, data);
  store<f64>(place, now, 8);
  const bit = <u8>(1 << (p.challengesSent % <u8>CHALLENGES));
  p.fullSize = fullSize ? p.fullSize | bit : p.fullSize & ~bit;
  const interval = max(pathProbeTimeout(c, index) / 2, LEAST_INTERVAL);
  p.challengeAt = now + interval * <f64>(1 << min(p.challengesSent, 10));
  if (p.challengesSent < 200) p.challengesSent += 1;
}

/** A PATH_RESPONSE came, on whatever path (§8.2.3). Data that nobody sent is ignored. */
export function onResponse(c: Connection, data: u64, now: f64): void {
  if (!c.paths) return;
  for (let i: u8 = 0; i < <u8>MOST_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE || !is(p, CHALLENGING)) continue;
    const sent = min(<u32>p.challengesSent, CHALLENGES);
    for (let n: u32 = 0; n < sent; n++) {
      const place = challengeOf(p, n);
      if (load<u64>(place) != data) continue;
      noteAnswer(c, i, n, now - load<f64>(place, 8), now);
      return;
    }
  }
}

/** Deadlines that have passed, and warm paths whose turn it is. */
export function onPathTimeout(c: Connection, now: f64): void {
  for (let i: u8 = 0; i < <u8>MOST_PATHS && c.paths; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE) continue;
    if (now >= p.deadline) {
      p.deadline = Infinity;
      if (is(p, CHALLENGING)) giveUp(c, i, now);
      else if (i != c.activePath && !is(p, KEPT)) dropPath(c, i);
    } else if (!is(p, CHALLENGING) && now >= p.challengeAt) {
      challenge(c, i, now + validationTime(c, i), now);
    }
  }
}

/** When a path wants something, Infinity = never. */
export function pathTime(c: Connection): f64 {
  if (!c.paths) return Infinity;
  // A challenge that finds no number left to send goes out after the acknowledgement or timer that makes room.
  const isFull = flightIsFull(c);
  let next = Infinity;
  for (let i: u32 = 0; i < MOST_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE) continue;
    next = min(next, p.deadline);
    if (!is(p, CHALLENGING) || (mayAsk(p) && !isFull)) next = min(next, p.challengeAt);
  }
  return next;
}

/** Nothing is asked now: the next challenge keeps a warm path; one that nobody keeps is forgotten in the end. */
export function rest(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  const isActive = index == c.activePath;
  const isWarm = is(p, KEPT) && p.keepInterval > 0 && !isActive;
  p.challengeAt = isWarm ? now + <f64>p.keepInterval : Infinity;
  if (!is(p, LEAVING)) p.deadline = isActive || is(p, KEPT) ? Infinity : now + (p.state == PROVEN ? FORGET_AFTER : FORGET_UNPROVEN);
}

function mayAsk(p: Path): bool {
  return !is(p, NEEDS_ID) && allowance(p) >= LEAST_PACKET;
}

/** The n-th of the challenges was answered after `rtt` ms. */
function noteAnswer(c: Connection, index: u8, n: u32, rtt: f64, now: f64): void {
  const p = pathAt(c, index);
  p.answeredAt = now;
  const isActive = index == c.activePath;
  if (p.state != PROVEN) {
    p.state = PROVEN;
    if (isActive) c.flags &= ~LIMITED;
  }
  if (isActive && !flagged(c, HAS_RTT)) guessRtt(c, <f32>rtt);
  else if (!isActive && !p.hasRtt) p.smoothedRtt = <f32>rtt;
  const isFull = ((p.fullSize >> <u8>n) & 1) != 0;
  if (!isFull && !is(p, FULL_SIZE)) {
    // It answered a short datagram, which the 3 × limit allowed: now one of full size (§8.2.1).
    p.challengesSent = 0;
    p.fullSize = 0;
    p.challengeAt = now;
    p.deadline = now + validationTime(c, index);
  } else {
    const isFirst = !is(p, FULL_SIZE);
    p.flags = (p.flags | FULL_SIZE) & ~CHALLENGING;
    rest(c, index, now);
    answered(c, index, isFirst, now);
    return;
  }
  answered(c, index, false, now);
}

function giveUp(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  p.flags &= ~CHALLENGING;
  rest(c, index, now);
  unanswered(c, index, now);
}
