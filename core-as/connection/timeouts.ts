/** The actions of timers that fire (timers.ts lists them). */
import { forget } from '../congestion/congestion';
import { modelTime } from '../congestion/model';
import { discardPreviousKey, previousKeyTime } from '../packet/key-update';
import { onProbeTimeout } from '../paths/failover';
import { onPathTimeout } from '../paths/validation';
import { ACK_NOW, Connection, DRAINED, flagged, OPEN, RESTING, STARVED } from '../records/connection';
import { earlyCopyTime, onEarlyCopy } from '../recovery/early-copy';
import { detectLost, onProbe } from '../recovery/loss';
import { offerMessages, offerRooms, offerStreams } from '../streams/credit';
import { endClosing, timeOut } from './close';
import { keepAliveTime, onKeepAlive } from './keep-alive';
import { onStall, stallTime } from './stall';
import { ackTimer, idleTimer, lossTimer, probeTimer } from './timers';

/** Fires every timer that is due at `now`. */
export function handleTimeout(c: Connection, now: f64): void {
  if (c.state == DRAINED) return;
  if (c.state != OPEN) {
    if (now >= c.stateTime) endClosing(c);
    return;
  }
  if (!flagged(c, RESTING)) whileCarried(c, now);
  if (c.state != OPEN) return;
  if (c.paths) onPathTimeout(c, now);
  if (now >= c.stateTime) retryStarved(c);
  if (now >= previousKeyTime(c)) discardPreviousKey(c);
}

/** Fires the timers for traffic on the path and for its liveness. */
function whileCarried(c: Connection, now: f64): void {
  if (now >= idleTimer(c)) {
    timeOut(c);
    return;
  }
  if (now >= keepAliveTime(c)) onKeepAlive(c);
  if (c.state != OPEN || flagged(c, RESTING)) return;
  if (now >= ackTimer(c)) c.flags |= ACK_NOW;
  if (now >= lossTimer(c)) detectLost(c, now);
  if (now >= earlyCopyTime(c)) onEarlyCopy(c);
  if (now >= probeTimer(c)) {
    onProbe(c);
    onProbeTimeout(c, now);
  }
  if (now >= stallTime(c)) onStall(c);
  if (now >= modelTime(c)) forget(c);
}

/** Lets turned-away writers try again: chunks may be free. */
function retryStarved(c: Connection): void {
  c.stateTime = Infinity;
  c.flags &= ~STARVED;
  offerStreams(c);
  offerMessages(c);
  offerRooms(c);
}
