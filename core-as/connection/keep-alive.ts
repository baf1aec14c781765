/**
 * Keep-alive (PROTOCOL.md §5), for client and device: a PING `interval` after our last acknowledged packet, then one
 * every `retry`, at most `most` of them; then the connection is dead, or rests (resting.ts). Unlike the PTO it does not
 * back off, and unlike the idle timeout it is about our own packets: it detects a path that carries packets one way
 * only.
 */
import { Connection, flagged, MAY_REST, PROBE, SEND_PING, SUSPECTED } from '../records/connection';
import { timeOut } from './close';
import { beginRest } from './resting';

/** Returns when the next PING goes out, or the connection ends. */
export function keepAliveTime(c: Connection): f64 {
  if (c.keepAliveInterval == 0) return Infinity;
  return c.keepAliveSince + <f64>c.keepAliveInterval + <f64>c.keepAliveCount * <f64>c.keepAliveRetry;
}

/** Handles the keep-alive timer. */
export function onKeepAlive(c: Connection): void {
  if (c.keepAliveCount >= c.keepAliveMost) {
    if (flagged(c, MAY_REST)) beginRest(c, true);
    else timeOut(c);
    return;
  }
  c.keepAliveCount++;
  // The previous PING was not answered, or no further one will follow: the caller should check what carries the path.
  if (c.keepAliveCount > 1 || c.keepAliveCount == c.keepAliveMost) c.flags |= SUSPECTED;
  c.pending |= SEND_PING;
  c.flags |= PROBE;
}
