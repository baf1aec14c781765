/**
 * Adds and drops entries of the path table (records/path.ts).
 *
 * A connection with one validated path and no challenge or response owns no table: `Connection.activePath` is that
 * path's index. The chunk is taken when a second path appears or a challenge needs an answer, and given back
 * afterwards.
 */
import { BOOKKEEPING, releaseChunk, takeClearChunk } from '../memory/chunks';
import { Connection, flagged, LIMITED, ROUTED } from '../records/connection';
import { NO_ID, slotOfRemote } from '../records/connection-ids';
import {
  CHALLENGING,
  CHOSEN,
  clearPath,
  FREE,
  FRESH,
  FULL_SIZE,
  is,
  KEPT,
  MAX_PATHS,
  NEWS_GONE,
  NO_PATH,
  ON_ROUTE,
  Path,
  pathAt,
  pathsOf,
  UNVALIDATED,
  VALIDATED,
} from '../records/path';
import { forgetInFlight, releaseSavedModel } from '../recovery/path-state';
import { forgetResponses } from './responses';
import { retireUnused } from './retirement';

/** Ensures the chunk, with an entry of the active path; false when none is left. */
export function ensurePaths(c: Connection): bool {
  if (c.paths) return true;
  c.paths = takeClearChunk(BOOKKEEPING);
  if (!c.paths) return false;
  const all = pathsOf(c);
  all.former = NO_PATH;
  all.rival = NO_PATH;
  all.checkStart = -1;
  const p = pathAt(c, c.activePath);
  begin(p, VALIDATED);
  p.flags = flagged(c, ROUTED) ? FULL_SIZE | ON_ROUTE : FULL_SIZE;
  p.route = c.route;
  p.localId = c.localId;
  p.remoteSlot = slotOfRemote(c, c.remoteId);
  p.remoteId = c.remoteId;
  p.sendMask = c.sendMask;
  p.bytesSent = c.bytesSent;
  p.bytesReceived = c.bytesReceived;
  p.packetsSent = c.packetsSent;
  p.packetsReceived = c.packetsReceived;
  return true;
}

/**
 * Takes an entry for a new path, at `wanted` if that is free; NO_PATH when the four existing ones are worth more. Those
 * worth least go first: unvalidated ones, then those that were left. The active path, the one it may return to, and
 * those the caller wants stay.
 */
export function takePath(c: Connection, wanted: u32): u8 {
  let index = wanted < MAX_PATHS && pathAt(c, wanted).state == FREE ? <u8>wanted : findFree(c);
  if (index == NO_PATH) {
    index = leastWorth(c);
    if (index == NO_PATH) return NO_PATH;
    dropPath(c, index);
  }
  const p = pathAt(c, index);
  clearPath(p);
  begin(p, UNVALIDATED);
  p.flags = FRESH;
  return index;
}

/** Forgets a path that is not the active one; its id is retired unless another path uses it. */
export function dropPath(c: Connection, index: u8): void {
  const p = pathAt(c, index);
  if (p.state == FREE) return;
  const all = pathsOf(c);
  if (all.former == index) all.former = NO_PATH;
  if (all.rival == index) all.rival = NO_PATH;
  forgetInFlight(c, index);
  forgetResponses(c, index);
  releaseSavedModel(p);
  const slot = p.remoteSlot;
  clearPath(p);
  p.news = NEWS_GONE;
  if (slot != NO_ID) retireUnused(c, slot);
}

/** Gives the chunk back when only the active path is left, with no challenge, response or unreported event. */
export function maybeReleasePaths(c: Connection): void {
  if (!c.paths || flagged(c, LIMITED)) return;
  const all = pathsOf(c);
  if (all.responses > 0 || all.reason != 0) return;
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.news != 0 || (i == c.activePath ? is(p, CHALLENGING) : p.state != FREE)) return;
  }
  releasePaths(c);
}

export function releasePaths(c: Connection): void {
  if (!c.paths) return;
  for (let i: u32 = 0; i < MAX_PATHS; i++) releaseSavedModel(pathAt(c, i));
  releaseChunk(c.paths, BOOKKEEPING);
  c.paths = 0;
}

function begin(p: Path, state: u8): void {
  p.state = state;
  p.remoteSlot = NO_ID;
  p.sibling = NO_PATH;
  p.challengeAt = Infinity;
  p.deadline = Infinity;
  p.answeredAt = -1;
}

function findFree(c: Connection): u8 {
  for (let i: u32 = 0; i < MAX_PATHS; i++) if (pathAt(c, i).state == FREE && pathAt(c, i).news == 0) return <u8>i;
  return NO_PATH;
}

function leastWorth(c: Connection): u8 {
  const all = pathsOf(c);
  let found = NO_PATH;
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || i == all.former || is(p, KEPT | CHOSEN)) continue;
    if (found == NO_PATH || p.state < pathAt(c, found).state) found = <u8>i;
  }
  return found;
}
