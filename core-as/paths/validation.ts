/**
 * Path validation (RFC 9000 §8.2): does the peer receive there? challenges.ts sends the challenges; this file processes
 * the results.
 *
 *   onResponse    an answer: the address is validated; in a full-size datagram the path may be chosen
 *   onPathTimeout deadlines, and the challenges that keep a path warm
 *
 * The consequences for the choice of the active path are not decided here (migration.ts).
 */
import { Connection, flagged, LIMITED, RESTING } from '../records/connection';
import { CHALLENGES, CHALLENGING, challengeOf, FREE, FULL_SIZE, is, KEPT, MAX_PATHS, pathAt, SMALL, VALIDATED } from '../records/path';
import { guessRtt } from '../recovery/path-state';
import { keepWarm, rest, validationTime } from './challenges';
import { suspect } from './failover';
import { answered, unanswered } from './migration';
import { dropPath } from './table';

/** A PATH_RESPONSE arrived, on any path (§8.2.3). Unknown data is ignored. */
export function onResponse(c: Connection, data: u64, now: f64): void {
  if (!c.paths) return;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) {
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

/** Handles passed deadlines, and warm paths whose turn it is. */
export function onPathTimeout(c: Connection, now: f64): void {
  for (let i: u8 = 0; i < <u8>MAX_PATHS && c.paths; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE) continue;
    if (now >= p.deadline) {
      p.deadline = Infinity;
      if (is(p, CHALLENGING)) giveUp(c, i, now);
      else if (i != c.activePath && !is(p, KEPT)) dropPath(c, i);
    } else if (!is(p, CHALLENGING) && now >= p.challengeAt) {
      if (i != c.activePath) keepWarm(c, i, now);
      else {
        // The active path did not answer, nor did another (migration.ts): checks them once more.
        p.challengeAt = Infinity;
        if (!flagged(c, RESTING)) suspect(c, now);
      }
    }
  }
}

/** The n-th challenge was answered after `rtt` ms. */
function noteAnswer(c: Connection, index: u8, n: u32, rtt: f64, now: f64): void {
  const p = pathAt(c, index);
  p.answeredAt = now;
  const isActive = index == c.activePath;
  if (p.state != VALIDATED) {
    p.state = VALIDATED;
    if (isActive) c.flags &= ~LIMITED;
  }
  if (isActive && !c.hasRtt) guessRtt(c, <f32>rtt);
  else if (!isActive && !p.hasRtt) p.smoothedRtt = <f32>rtt;
  const isFull = ((p.fullSize >> <u8>n) & 1) != 0;
  const isFirst = isFull && !is(p, FULL_SIZE);
  if (!isFull && !is(p, FULL_SIZE)) {
    // It answered a short datagram, which the anti-amplification limit allowed: now one of full size (§8.2.1).
    p.flags &= ~SMALL;
    p.challengesSent = 0;
    p.fullSize = 0;
    p.challengeAt = now;
    p.deadline = now + validationTime(c, index);
  } else {
    p.flags = (p.flags | FULL_SIZE) & ~CHALLENGING;
    rest(c, index, now);
  }
  answered(c, index, isFirst, now);
}

function giveUp(c: Connection, index: u8, now: f64): void {
  const p = pathAt(c, index);
  p.flags &= ~CHALLENGING;
  rest(c, index, now);
  unanswered(c, index, now);
}
