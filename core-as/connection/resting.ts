/**
 * Rest (PROTOCOL.md §6): no path carries anything, and the connection waits for one that does.
 *
 *   begins   the caller reports that the last path is lost, or keep-alive found no answer and the caller allows rest
 *   lasts    only path challenges leave; no timer ends the connection; what was in flight waits, and counts for no
 *            path; streams accept what they have room for
 *   ends     with an authentic packet on the active path. The caller may have replaced that path (`replacePath`), or
 *            the peer arrives on another one (migration.ts). Each end acknowledges what it received before the rest:
 *            those acknowledgements may be lost with the path. What that packet acknowledges does not go out again
 *
 * The caller decides how long it may last and how to find a path meanwhile.
 */
import { STATUS_BLOCKED, STATUS_INVALID_ARGUMENT, STATUS_OK } from '../codes.generated';
import { challenge, validationTime } from '../paths/challenges';
import { setAddress } from '../paths/switch';
import { ensurePaths } from '../paths/table';
import { ACK_NOW, Connection, flagged, OPEN, PROBE, RESTED, RESTING, RESUMED, SEND_PING, SUSPECTED } from '../records/connection';
import { FRESH, FULL_SIZE, KEPT, NO_PATH, ON_ROUTE, OURS, pathAt, pathsOf, UNVALIDATED } from '../records/path';
import { loseInFlight } from '../recovery/loss';
import { beginRecovery, forgetInFlight, restartFlight } from '../recovery/path-state';

/** Begins a rest. `unreported`: the caller did not request it, so an event reports it. */
export function beginRest(c: Connection, unreported: bool): void {
  if (c.state != OPEN || flagged(c, RESTING)) return;
  forgetInFlight(c, c.activePath);
  c.bytesInFlight = 0;
  // The end of an earlier rest, if not yet reported, is no longer news.
  c.flags = (c.flags | RESTING | (unreported ? RESTED : 0)) & ~(PROBE | SUSPECTED | RESUMED);
  // It once answered in full size; now nothing is known about it.
  if (c.paths) pathAt(c, c.activePath).flags &= ~FULL_SIZE;
}

/** Ends the rest: the peer was heard on the active path. */
export function endRest(c: Connection, now: f64): void {
  c.flags = (c.flags | RESUMED) & ~RESTING;
  c.keepAliveSince = now;
  c.keepAliveCount = 0;
  loseInFlight(c, NO_PATH);
  restartFlight(c, now);
  if (c.largestReceived >= 0) c.flags |= ACK_NOW;
  // The peer follows non-probing frames.
  c.pending |= SEND_PING;
}

/**
 * Redirects the active path of a resting connection: it keeps its ids, since the peer could supply no others, and
 * forgets what was known about the path. It is challenged, and the connection resumes once the peer is heard there.
 * `route`: the id of its Route header, if `routed`.
 */
export function replacePath(c: Connection, routed: bool, route: u64, now: f64): u32 {
  if (!flagged(c, RESTING) || c.state != OPEN) return STATUS_INVALID_ARGUMENT;
  if (!ensurePaths(c)) return STATUS_BLOCKED;
  const index = c.activePath;
  const p = pathAt(c, index);
  p.state = UNVALIDATED;
  p.flags = FRESH | KEPT | OURS | (routed ? ON_ROUTE : 0);
  p.route = routed ? route : 0;
  p.sibling = NO_PATH;
  p.answeredAt = -1;
  p.bytesSent = 0;
  p.bytesReceived = 0;
  const all = pathsOf(c);
  all.former = NO_PATH;
  all.rival = NO_PATH;
  all.activeDead = 0;
  setAddress(c, p);
  beginRecovery(c, c.packetSize);
  restartFlight(c, now);
  challenge(c, index, now + validationTime(c, index), now);
  return STATUS_OK;
}
