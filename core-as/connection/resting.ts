/**
 * Rest (PROTOCOL.md §6): no path carries anything, and the connection waits for one that does.
 *
 *   begins   the host says that the last path is lost, or keep-alive found no answer and the host allows it
 *   goes on  only challenges of paths leave, no timer ends the connection, what was in flight waits to go out again; streams take what they have room for
 *   ends     with an authentic packet on the active path. The host may have replaced that (`replacePath`), or the peer comes in on another one (migration.ts)
 *
 * How long it may last, and what is done meanwhile to get a path, the host decides.
 */
import { STATUS_BLOCKED, STATUS_INVALID_ARGUMENT, STATUS_OK } from '../codes.generated';
import { challenge, validationTime } from '../paths/challenges';
import { setAddress } from '../paths/switch';
import { ensurePaths } from '../paths/table';
import { ACK_NOW, ACK_OWED, Connection, flagged, OPEN, PROBE, RESTED, RESTING, RESUMED, SEND_PING, SUSPECTED } from '../records/connection';
import { FRESH, FULL_SIZE, KEPT, NO_PATH, ON_ROUTE, OURS, pathAt, pathsOf, UNVALIDATED } from '../records/path';
import { loseInFlight } from '../recovery/loss';
import { beginRecovery, forgetInFlight, restartFlight } from '../recovery/path-state';

/** `untold`: the host has not asked for it. */
export function beginRest(c: Connection, untold: bool): void {
  if (c.state != OPEN || flagged(c, RESTING)) return;
  loseInFlight(c, c.activePath);
  // The end of a rest before this one, if the host has not heard of it, is no news any more.
  c.flags = (c.flags | RESTING | (untold ? RESTED : 0)) & ~(PROBE | SUSPECTED | RESUMED);
  // It answered in full size once; now nothing is known of it.
  if (c.paths) pathAt(c, c.activePath).flags &= ~FULL_SIZE;
}

/** The peer was heard on the active path. */
export function endRest(c: Connection, now: f64): void {
  c.flags = (c.flags | RESUMED) & ~RESTING;
  c.keepAliveSince = now;
  c.keepAliveCount = 0;
  restartFlight(c, now);
  if (flagged(c, ACK_OWED)) c.flags |= ACK_NOW;
  // The peer follows what is no probe.
  c.pending |= SEND_PING;
}

/**
 * The active path of a connection at rest leads elsewhere from now on: the same ids, since the peer could supply no other ones; nothing is known of it. It is
 * challenged, and the connection goes on once the peer was heard there. `route`: the id of its Route header, if `routed`.
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
  // What is left of it, the Complete packet, counts nowhere.
  forgetInFlight(c, index);
  c.bytesInFlight = 0;
  beginRecovery(c);
  restartFlight(c, now);
  challenge(c, index, now + validationTime(c, index), now);
  return STATUS_OK;
}
