/**
 * The peer's ids (RFC 9000 §5.1.2, §19.15): taken from NEW_CONNECTION_ID, used by one path each, retired
 * (retirement.ts) when that path is gone or at the peer's request.
 */
import { ERROR_CONNECTION_ID_LIMIT_ERROR, ERROR_FRAME_ENCODING_ERROR, ERROR_NO_ERROR, ERROR_PROTOCOL_VIOLATION } from '../codes.generated';
import { REFUSED } from '../frames/types';
import { failed, readByte, readBytes, readVarint } from '../frames/varint';
import { Connection } from '../records/connection';
import {
  ACTIVE_CONNECTION_ID_LIMIT,
  ensureIds,
  ID_FREE,
  ID_SPARE,
  ID_USED,
  idsOf,
  NO_ID,
  remoteAt,
  sendMaskOf,
  TOKEN,
  tokenOf,
} from '../records/connection-ids';
import { FREE, is, MAX_PATHS, NEEDS_ID, Path, pathAt } from '../records/path';
import { clearId, retire } from './retirement';
import { ensurePaths } from './table';

const ID: u32 = 8;

/** Reads a NEW_CONNECTION_ID frame, its type consumed, and processes it. Returns a transport error, REFUSED, or 0. */
export function newIdFrame(c: Connection): u32 {
  const sequence = readVarint();
  const retirePriorTo = readVarint();
  const length = readByte();
  const id = readBytes(length);
  const token = readBytes(TOKEN);
  if (failed || length != ID || retirePriorTo > sequence) return ERROR_FRAME_ENCODING_ERROR;
  if (!ensureIds(c)) return REFUSED;
  return onNewId(c, sequence, retirePriorTo, load<u64>(id), token);
}

/** Assigns one of the peer's spare ids to a path that has none; false when there is none, or no mask key yet. */
export function assignSpare(c: Connection, p: Path, isActive: bool): bool {
  if (!c.ids || !idsOf(c).hasKeys) return false;
  let slot = NO_ID;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    if (remoteAt(c, i).state != ID_SPARE) continue;
    if (slot == NO_ID || remoteAt(c, i).sequence < remoteAt(c, slot).sequence) slot = <u8>i;
  }
  if (slot == NO_ID) return false;
  const theirs = remoteAt(c, slot);
  theirs.state = ID_USED;
  p.remoteSlot = slot;
  p.remoteId = theirs.id;
  p.sendMask = theirs.mask;
  p.flags &= ~NEEDS_ID;
  idsOf(c).news = 1;
  if (isActive) {
    c.remoteId = theirs.id;
    c.sendMask = theirs.mask;
  }
  return true;
}

/** New ids arrived: paths that wait for one continue. */
export function assignWaiting(c: Connection): void {
  if (!c.paths) return;
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.state != FREE && is(p, NEEDS_ID)) assignSpare(c, p, i == c.activePath);
  }
}

function onNewId(c: Connection, sequence: u64, retirePriorTo: u64, id: u64, token: usize): u32 {
  const ids = idsOf(c);
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const theirs = remoteAt(c, i);
    if (theirs.state == ID_FREE) continue;
    const same = theirs.id == id && (sequence == 0 || memory.compare(tokenOf(changetype<usize>(theirs)), token, TOKEN) == 0);
    if (theirs.sequence == sequence) return same ? ERROR_NO_ERROR : ERROR_PROTOCOL_VIOLATION;
    if (theirs.id == id) return ERROR_PROTOCOL_VIOLATION;
  }
  if (retirePriorTo > ids.retirePriorTo && !ensurePaths(c)) return REFUSED;
  if (!noteSeen(c, sequence)) return ERROR_NO_ERROR;
  ids.retirePriorTo = max(ids.retirePriorTo, retirePriorTo);
  if (sequence < ids.retirePriorTo) return retire(c, sequence) ? ERROR_NO_ERROR : ERROR_CONNECTION_ID_LIMIT_ERROR;
  if (!retireOld(c)) return ERROR_CONNECTION_ID_LIMIT_ERROR;
  if (!keep(c, sequence, id, token)) return ERROR_CONNECTION_ID_LIMIT_ERROR;
  ids.news = 1;
  assignWaiting(c);
  return ERROR_NO_ERROR;
}

/** Notes a sequence number; false when it was seen before, or is so old that it must have been. */
function noteSeen(c: Connection, sequence: u64): bool {
  const ids = idsOf(c);
  if (sequence > ids.largestSeen) {
    const step = sequence - ids.largestSeen;
    ids.seen = (step < 64 ? ids.seen << step : 0) | 1;
    ids.largestSeen = sequence;
    return true;
  }
  const back = ids.largestSeen - sequence;
  if (back >= 64 || ((ids.seen >> back) & 1) != 0) return false;
  ids.seen |= (<u64>1) << back;
  return true;
}

/** Retires all ids below retirePriorTo; paths that used one wait for another. False when the list is full. */
function retireOld(c: Connection): bool {
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const theirs = remoteAt(c, i);
    if (theirs.state == ID_FREE || theirs.sequence >= idsOf(c).retirePriorTo) continue;
    if (theirs.state == ID_USED) takeFromPaths(c, <u8>i);
    if (!retire(c, theirs.sequence)) return false;
    clearId(theirs);
  }
  return true;
}

function takeFromPaths(c: Connection, slot: u8): void {
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (p.state == FREE || p.remoteSlot != slot) continue;
    p.remoteSlot = NO_ID;
    p.flags |= NEEDS_ID;
  }
}

function keep(c: Connection, sequence: u64, id: u64, token: usize): bool {
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const theirs = remoteAt(c, i);
    if (theirs.state != ID_FREE) continue;
    theirs.id = id;
    theirs.sequence = sequence;
    theirs.mask = sendMaskOf(c, id);
    theirs.state = ID_SPARE;
    memory.copy(tokenOf(changetype<usize>(theirs)), token, TOKEN);
    return true;
  }
  return false;
}
