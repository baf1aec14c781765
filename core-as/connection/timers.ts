/** Every timer of a connection, each with one sentence. Infinity = not armed. */
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

/** A lone small packet on a lossy path is repeated before its acknowledgement could arrive. */
export function earlyCopyTimer(c: Connection): f64 {
  return earlyCopyTime(c);
}

/** The pacer allows the next packet. */
export function pacingTimer(c: Connection): f64 {
  return pacingTime(c);
}

/** A PING keeps the path open, or finds that the peer is gone. */
export function keepAliveTimer(c: Connection): f64 {
  return keepAliveTime(c);
}

/** Bytes that were arriving have stopped: a PING is due. */
export function stallTimer(c: Connection): f64 {
  return stallTime(c);
}

/** Nothing authentic arrived for the whole idle timeout (RFC 9000 §10.1: at least 3 PTO). */
export function idleTimer(c: Connection): f64 {
  return c.idleTimeout == 0 ? Infinity : c.idleSince + max(<f64>c.idleTimeout, 3 * probeTimeout(c));
}

/** A writer that found no chunk is offered room again. */
export function retryTimer(c: Connection): f64 {
  return c.stateTime;
}

/** The model of the path is too old to be useful. */
export function modelTimer(c: Connection): f64 {
  return modelTime(c);
}

/** The previous receive key is wiped. */
export function previousKeyTimer(c: Connection): f64 {
  return previousKeyTime(c);
}

/** A path is to be challenged, has answered too late, or was left long enough ago. */
export function pathTimer(c: Connection): f64 {
  return pathTime(c);
}

/** The closing or draining period is over. */
export function closeTimer(c: Connection): f64 {
  return c.stateTime;
}

/** The earliest of them. */
export function nextTimer(c: Connection): f64 {
  if (c.state == DRAINED) return Infinity;
  if (c.state != OPEN) return closeTimer(c);
  if (flagged(c, RESTING)) return restTimer(c);
  let next = min(ackTimer(c), min(lossTimer(c), probeTimer(c)));
  next = min(next, earlyCopyTimer(c));
  next = min(next, min(pacingTimer(c), keepAliveTimer(c)));
  next = min(next, min(stallTimer(c), min(idleTimer(c), retryTimer(c))));
  if (c.paths) next = min(next, pathTimer(c));
  return min(next, min(previousKeyTimer(c), modelTimer(c)));
}

/** At rest nothing ends the connection, and only path challenges are sent. */
function restTimer(c: Connection): f64 {
  const next = min(retryTimer(c), previousKeyTimer(c));
  return c.paths ? min(next, pathTimer(c)) : next;
}
