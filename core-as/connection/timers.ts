/** The timers of a connection. Infinity = not armed. */
import { modelTime } from '../congestion/model';
import { pacingTime } from '../congestion/pacing';
import { previousKeyTime } from '../packet/key-update';
import { mayAmplify } from '../paths/amplification';
import { pathTime } from '../paths/challenges';
import { ACK_NOW, Connection, DRAINED, flagged, LIMITED, OPEN, RESTING } from '../records/connection';
import { flightOf } from '../records/flight';
import { probeTimeout } from '../records/rtt';
import { earlyCopyTime } from '../recovery/early-copy';
import { probeTime } from '../recovery/loss';
import { keepAliveTime } from './keep-alive';
import { stallTime } from './stall';

/** Latest time to acknowledge a received packet. */
export function ackTimer(c: Connection): f64 {
  return flagged(c, ACK_NOW) ? Infinity : c.ackTime;
}

/** A packet older than acknowledged ones now counts as lost. */
export function lossTimer(c: Connection): f64 {
  return c.flight ? flightOf(c).lossTime : Infinity;
}

/**
 * PTO: nothing was acknowledged for so long that a probe goes out; not while the anti-amplification limit blocks it
 * (RFC 9002 §6.2.2.1).
 */
export function probeTimer(c: Connection): f64 {
  return flagged(c, LIMITED) && !mayAmplify(c) ? Infinity : probeTime(c);
}

/** Nothing authentic arrived for the whole idle timeout (RFC 9000 §10.1: at least 3 PTO). */
export function idleTimer(c: Connection): f64 {
  return c.idleTimeout == 0 ? Infinity : c.idleSince + max(<f64>c.idleTimeout, 3 * probeTimeout(c));
}

/** The earliest of them. */
export function nextTimer(c: Connection): f64 {
  if (c.state == DRAINED) return Infinity;
  if (c.state != OPEN) return c.stateTime;
  if (flagged(c, RESTING)) return restTimer(c);
  let next = min(ackTimer(c), min(lossTimer(c), probeTimer(c)));
  next = min(next, earlyCopyTime(c));
  next = min(next, min(pacingTime(c), keepAliveTime(c)));
  next = min(next, min(stallTime(c), min(idleTimer(c), c.stateTime)));
  if (c.paths) next = min(next, pathTime(c));
  return min(next, min(previousKeyTime(c), modelTime(c)));
}

/** At rest nothing ends the connection, and only path challenges are sent. */
function restTimer(c: Connection): f64 {
  const next = min(c.stateTime, previousKeyTime(c));
  return c.paths ? min(next, pathTime(c)) : next;
}
