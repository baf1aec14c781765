/** The actions of timers that fire (timers.ts lists them). */
import { forget } from '../congestion/congestion';
import { discardPreviousKey } from '../packet/key-update';
import { onProbeTimeout } from '../paths/failover';
import { onPathTimeout } from '../paths/validation';
import { ACK_NOW, Connection, DRAINED, flagged, OPEN, RESTING, STARVED } from '../records/connection';
import { onEarlyCopy } from '../recovery/early-copy';
import { detectLost, onProbe } from '../recovery/loss';
import { offerMessages, offerRooms, offerStreams } from '../streams/credit';
import { endClosing, timeOut } from './close';
import { onKeepAlive } from './keep-alive';
import { onStall } from './stall';
import {
  ackTimer,
  closeTimer,
  earlyCopyTimer,
  idleTimer,
  keepAliveTimer,
  lossTimer,
  modelTimer,
  previousKeyTimer,
  probeTimer,
  retryTimer,
  stallTimer,
} from './timers';

/** Fires every timer that is due at `now`. */
export function handleTimeout(c: Connection, now: f64): void {
  if (c.state == DRAINED) return;
  if (c.state != OPEN) {
    if (now >= closeTimer(c)) endClosing(c);
    return;
  }
  if (!flagged(c, RESTING)) whileCarried(c, now);
  if (c.state != OPEN) return;
  if (c.paths) onPathTimeout(c, now);
  if (now >= retryTimer(c)) retryStarved(c);
  if (now >= previousKeyTimer(c)) discardPreviousKey(c);
}

/** Fires the timers for traffic on the path and for its liveness. */
function whileCarried(c: Connection, now: f64): void {
  if (now >= idleTimer(c)) {
    timeOut(c);
    return;
  }
  if (now >= keepAliveTimer(c)) onKeepAlive(c);
  if (c.state != OPEN || flagged(c, RESTING)) return;
  if (now >= ackTimer(c)) c.flags |= ACK_NOW;
  if (now >= lossTimer(c)) detectLost(c, now);
  if (now >= earlyCopyTimer(c)) onEarlyCopy(c);
  if (now >= probeTimer(c)) {
    onProbe(c);
    onProbeTimeout(c, now);
  }
  if (now >= stallTimer(c)) onStall(c);
  if (now >= modelTimer(c)) forget(c);
}

/** Lets turned-away writers try again: chunks may be free. */
function retryStarved(c: Connection): void {
  c.stateTime = Infinity;
  c.flags &= ~STARVED;
  offerStreams(c);
  offerMessages(c);
  offerRooms(c);
}
