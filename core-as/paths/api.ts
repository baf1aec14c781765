/** API of the paths: adds further paths, keeps them warm, chooses the active one. The policy is the caller's. */
import { STATUS_BLOCKED, STATUS_CLOSED, STATUS_INVALID_ARGUMENT, STATUS_OK } from '../codes.generated';
import { Connection, flagged, INITIATOR, OPEN } from '../records/connection';
import { ASKED, CHALLENGING, FREE, is, KEPT, MAX_PATHS, NEEDS_ID, NO_PATH, ON_ROUTE, OURS, pathAt, UNKNOWN } from '../records/path';
import { challenge, rest, validationTime } from './challenges';
import { suspect } from './failover';
import { choose } from './migration';
import { assignSpare } from './remote-ids';
import { setAddress } from './switch';
import { dropPath, ensurePaths, takePath } from './table';

/** Index of the path that `addPath` added. */
export let outAddedPath: u32 = 0;

/**
 * Adds a path on behalf of the caller: it is validated at once (as soon as the peer has supplied an id for it) and kept
 * until it is dropped. `route`: the id of its Route header, if `routed`. `keepInterval`: ms between challenges, 0 =
 * none.
 */
export function addPath(c: Connection, routed: bool, route: u64, portOnly: bool, keepInterval: u32, now: f64): u32 {
  if (c.state != OPEN) return STATUS_CLOSED;
  if (!ensurePaths(c)) return STATUS_BLOCKED;
  const index = takePath(c, UNKNOWN);
  if (index == NO_PATH) return STATUS_BLOCKED;
  const p = pathAt(c, index);
  p.flags |= KEPT | OURS | NEEDS_ID;
  if (routed) p.flags |= ON_ROUTE;
  p.route = route;
  p.keepInterval = keepInterval;
  if (portOnly) p.sibling = c.activePath;
  assignSpare(c, p, false);
  challenge(c, index, now + validationTime(c, index), now);
  outAddedPath = index;
  return STATUS_OK;
}

/**
 * Checks the liveness of a path: PATH_VALIDATED or PATH_FAILED follows. An initiator that checks its active path
 * challenges the warm ones, too, and soon migrates to one of them if the active one is silent (failover.ts).
 */
export function probePath(c: Connection, index: u32, now: f64): u32 {
  if (c.state != OPEN || (!c.paths && !ensurePaths(c)) || !isPath(c, index)) return STATUS_INVALID_ARGUMENT;
  if (index != c.activePath) {
    // The caller knows more than an earlier check did: results of that no longer count.
    pathAt(c, index).flags &= ~CHALLENGING;
  } else if (flagged(c, INITIATOR)) suspect(c, now);
  pathAt(c, index).flags |= ASKED;
  challenge(c, <u8>index, now + validationTime(c, <u8>index), now);
  return STATUS_OK;
}

/** Keeps the path even while another one is active, with a challenge every `interval` ms (0 = never). */
export function keepPath(c: Connection, index: u32, interval: u32, now: f64): u32 {
  if (c.state != OPEN || (!c.paths && !ensurePaths(c)) || !isPath(c, index)) return STATUS_INVALID_ARGUMENT;
  const p = pathAt(c, index);
  p.flags |= KEPT;
  p.keepInterval = interval;
  if (!is(p, CHALLENGING)) rest(c, <u8>index, now);
  return STATUS_OK;
}

/** Makes the path active, immediately if it is validated, else when it is. Only the initiator chooses. */
export function migrate(c: Connection, index: u32, now: f64): u32 {
  if (c.state != OPEN) return STATUS_CLOSED;
  if (!flagged(c, INITIATOR) || !isPath(c, index)) return STATUS_INVALID_ARGUMENT;
  choose(c, <u8>index, now);
  return STATUS_OK;
}

/** The peer arrived on a route: packets on that path need a Route header with its id. */
export function setPathRoute(c: Connection, index: u32, route: u64): void {
  if (!isPath(c, index)) return;
  const p = pathAt(c, index);
  p.route = route;
  p.flags |= ON_ROUTE;
  if (index == c.activePath) setAddress(c, p);
}

/** Forgets a path that is not the active one; its id is retired. */
export function removePath(c: Connection, index: u32): u32 {
  if (!isPath(c, index) || index == c.activePath) return STATUS_INVALID_ARGUMENT;
  dropPath(c, <u8>index);
  pathAt(c, index).news = 0;
  return STATUS_OK;
}

function isPath(c: Connection, index: u32): bool {
  return c.paths != 0 && index < MAX_PATHS && pathAt(c, index).state != FREE;
}
