/**
 * Switches the active path: recovery state, ids, route and the anti-amplification limit change with it (RFC 9000 §9.4,
 * §9.5).
 */
import { Connection, LIMITED, ROUTED } from '../records/connection';
import { findLocal } from '../records/connection-ids';
import { CHALLENGING, CHOSEN, FRESH, is, LEAVING, ON_ROUTE, Path, pathAt, pathsOf, VALIDATED } from '../records/path';
import { moveRecovery, resetRecovery } from '../records/recovery-state';
import { moveInFlight, restartFlight, restoreRecovery } from '../recovery/path-state';
import { rest } from './challenges';
import { usePacketsId } from './local-ids';

/** Sends packets on the path of index `to` from now on; `reason` is one of PathReason (codes.json), for the caller. */
export function switchPath(c: Connection, to: u8, reason: u32, now: f64): void {
  const from = c.activePath;
  if (from == to) return;
  const old = pathAt(c, from);
  const p = pathAt(c, to);
  moveRecovery(old, c);
  if (is(p, FRESH) && p.sibling == from) handOver(c, from, to);
  restoreRecovery(c, p, now);
  restartFlight(c, now);
  p.flags &= ~(FRESH | CHOSEN | LEAVING);
  c.activePath = to;
  setAddress(c, p);
  const ours = findLocal(c, p.localId);
  if (changetype<usize>(ours)) usePacketsId(c, ours);
  for (let i: u32 = 0; i < 2; i++) {
    const index = i == 0 ? from : to;
    if (!is(pathAt(c, index), CHALLENGING)) rest(c, index, now);
  }
  pathsOf(c).reason = <u8>reason;
  pathsOf(c).activeDead = 0;
}

/** Copies what the hot path reads about the active path. */
export function setAddress(c: Connection, p: Path): void {
  c.remoteId = p.remoteId;
  c.sendMask = p.sendMask;
  c.route = p.route;
  c.flags &= ~(ROUTED | LIMITED);
  if (is(p, ON_ROUTE)) c.flags |= ROUTED;
  if (p.state != VALIDATED) c.flags |= LIMITED;
}

/**
 * Only the port has changed: window, RTT and packets in flight carry over (RFC 9000 §9.4), and the round trip back is
 * as short.
 */
function handOver(c: Connection, from: u8, to: u8): void {
  const old = pathAt(c, from);
  const p = pathAt(c, to);
  moveRecovery(p, old);
  resetRecovery(old);
  p.flags &= ~FRESH;
  old.flags |= FRESH;
  old.sibling = to;
  moveInFlight(c, from, to);
}
