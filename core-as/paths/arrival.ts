/**
 * Determines the path of an authenticated packet (RFC 9000 §9.3): an address without an index gets one, and the one of
 * our ids that the peer used is recorded.
 */
import { openedId } from '../packet/protection';
import { Connection, ELSEWHERE, flagged, LIMITED } from '../records/connection';
import { findLocal } from '../records/connection-ids';
import { CHALLENGING, FREE, is, MAX_PATHS, NEEDS_ID, NO_PATH, Path, pathAt, UNKNOWN_PORT, VALIDATED } from '../records/path';
import { challenge, rest, validationTime } from './challenges';
import { usePacketsId } from './local-ids';
import { assignSpare } from './remote-ids';
import { ensurePaths, takePath } from './table';

/** Index of the path of the packet being received; NO_PATH when there was no room for a new one. */
export let arrivedOn: u8 = 0;
/** Its bytes, without a Route header. */
export let arrivedSize: u32 = 0;
/**
 * The peer used a different id than before: it changed its path on purpose. Set before frames are read, as one of them
 * may retire that id.
 */
export let arrivedAnnounced: bool = false;

/** Notes a packet of `size` bytes from the path that the caller calls `path`: an index, UNKNOWN or UNKNOWN_PORT. */
export function arrive(c: Connection, path: u32, size: u32, now: f64): void {
  arrivedOn = c.activePath;
  arrivedSize = size;
  arrivedAnnounced = openedId != c.localId;
  if (path != <u32>c.activePath || c.paths != 0) attribute(c, path, size, now);
  if (openedId != c.localId && arrivedOn == c.activePath) usePacketsId(c, findLocal(c, openedId));
}

/** Notes whether a packet with a non-probing frame was followed: the path that the peer sends from. */
export function noteSpeaker(c: Connection, isNewest: bool): void {
  if (arrivedOn != c.activePath) c.flags |= ELSEWHERE;
  else if (isNewest) c.flags &= ~ELSEWHERE;
}

/**
 * Returns whether the peer is on that path: it is the active one, the peer has shown that it receives there, and it
 * sends from there. A peer may keep us from following it, with packets that only probe or arrive late; then it is not
 * where our packets for it go.
 */
export function isThere(c: Connection, index: u32): bool {
  return index == <u32>c.activePath && !flagged(c, LIMITED | ELSEWHERE);
}

function attribute(c: Connection, path: u32, size: u32, now: f64): void {
  arrivedOn = <u8>path;
  if (!ensurePaths(c)) {
    if (path != <u32>c.activePath) arrivedOn = NO_PATH;
    return;
  }
  if (path >= MAX_PATHS || pathAt(c, path).state == FREE) arrivedOn = newcomer(c, path);
  if (arrivedOn == NO_PATH) return;
  const p = pathAt(c, arrivedOn);
  p.bytesReceived += <f64>size;
  p.packetsReceived++;
  p.localId = openedId;
  if (!is(p, CHALLENGING)) rest(c, arrivedOn, now);
  // The new address did not answer in time but keeps sending: challenge it again.
  if (arrivedOn == c.activePath && p.state != VALIDATED && !is(p, CHALLENGING)) {
    challenge(c, arrivedOn, now + validationTime(c, arrivedOn), now);
  }
}

/**
 * Adds an unknown path: with an id of its own if the peer has used one; else a NAT has rebound the peer and the id
 * stays.
 */
function newcomer(c: Connection, path: u32): u8 {
  const index = takePath(c, path);
  if (index == NO_PATH) return NO_PATH;
  const p = pathAt(c, index);
  p.localId = openedId;
  if (path == UNKNOWN_PORT) p.sibling = c.activePath;
  const twin = twinOf(c, index);
  if (twin != NO_PATH) copyId(p, pathAt(c, twin));
  else {
    p.flags |= NEEDS_ID;
    assignSpare(c, p, false);
  }
  return index;
}

/** Returns the path on which the peer uses the same id, the active one before others. */
function twinOf(c: Connection, index: u8): u8 {
  if (pathAt(c, c.activePath).localId == openedId) return c.activePath;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) {
    if (i != index && pathAt(c, i).state != FREE && pathAt(c, i).localId == openedId) return i;
  }
  return NO_PATH;
}

function copyId(p: Path, from: Path): void {
  p.remoteSlot = from.remoteSlot;
  p.remoteId = from.remoteId;
  p.sendMask = from.sendMask;
  p.flags |= from.flags & NEEDS_ID;
}
