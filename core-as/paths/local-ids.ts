/**
 * Our ids for the peer's use (RFC 9000 §5.1.1, §19.15): chosen by the caller, announced in NEW_CONNECTION_ID until
 * acknowledged, dropped when the peer retires them.
 */
import { ERROR_NO_ERROR, ERROR_PROTOCOL_VIOLATION, STATUS_BLOCKED, STATUS_INVALID_ARGUMENT, STATUS_OK } from '../codes.generated';
import { NEW_CONNECTION_ID } from '../frames/types';
import { writeVarint } from '../frames/varint';
import { openedId } from '../packet/protection';
import { Connection, SEND_IDS } from '../records/connection';
import {
  ACTIVE_CONNECTION_ID_LIMIT,
  findLocal,
  ID_DUE,
  ID_FREE,
  ID_SENT,
  idsOf,
  LocalId,
  localAt,
  receiveMaskOf,
  TOKEN,
  tokenOf,
} from '../records/connection-ids';
import { is, KEPT, MAX_PATHS, pathAt } from '../records/path';
import { dropPath } from './table';

const ID: u32 = 8;
/** Largest size of the frame: type, sequence, two single bytes, id, token. */
const FRAME: usize = 1 + 8 + 2 + 8 + 16;

/** Supplies an id; its reset token follows it. */
export function issueId(c: Connection, at: usize): u32 {
  if (!c.ids || !idsOf(c).hasKeys) return STATUS_INVALID_ARGUMENT;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const ours = localAt(c, i);
    if (ours.state != ID_FREE) continue;
    ours.id = load<u64>(at);
    ours.sequence = idsOf(c).nextLocal++;
    ours.mask = receiveMaskOf(c, ours.id);
    ours.state = ID_DUE;
    memory.copy(tokenOf(changetype<usize>(ours)), at + ID, TOKEN);
    c.pending |= SEND_IDS;
    return STATUS_OK;
  }
  return STATUS_BLOCKED;
}

/** Number of ids that the peer may still be given. */
export function roomForIds(c: Connection): u32 {
  let room: u32 = 0;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) if (localAt(c, i).state == ID_FREE) room++;
  return room;
}

/** Writes the due frames into packet `number`. */
export function fillNewIds(c: Connection, to: usize, limit: usize, number: u64): usize {
  let end = to;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const ours = localAt(c, i);
    if (ours.state != ID_DUE || end + FRAME > limit) continue;
    end = writeFrame(ours, end);
    ours.state = ID_SENT;
    ours.number = <u32>number;
  }
  return end;
}

/** Processes the peer's RETIRE_CONNECTION_ID (§19.16). Returns a transport error, 0 = fine. */
export function onRetire(c: Connection, sequence: u64): u32 {
  const last = c.ids ? idsOf(c).nextLocal : 1;
  if (sequence >= last) return ERROR_PROTOCOL_VIOLATION;
  const inUse = c.ids ? findLocal(c, openedId) : changetype<LocalId>(0);
  if (!changetype<usize>(inUse) || inUse.sequence == sequence) return ERROR_PROTOCOL_VIOLATION;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const ours = localAt(c, i);
    if (ours.state == ID_FREE || ours.sequence != sequence) continue;
    leavePaths(c, ours.id);
    if (c.localId == ours.id) usePacketsId(c, inUse);
    memory.fill(changetype<usize>(ours), 0, offsetof<LocalId>());
    memory.fill(tokenOf(changetype<usize>(ours)), 0, TOKEN);
    idsOf(c).news = 1;
  }
  return ERROR_NO_ERROR;
}

/** Sets the id that the peer uses on the active path: the first one that packets are compared with. */
export function usePacketsId(c: Connection, ours: LocalId): void {
  c.localId = ours.id;
  c.receiveMask = ours.mask;
}

/**
 * The peer has left every path on which it used the id. A path that the caller wants stays; the peer will use another
 * id there.
 */
function leavePaths(c: Connection, id: u64): void {
  if (!c.paths) return;
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    const p = pathAt(c, i);
    if (i == c.activePath || p.localId != id) continue;
    if (is(p, KEPT)) p.localId = 0;
    else dropPath(c, <u8>i);
  }
}

function writeFrame(ours: LocalId, to: usize): usize {
  let at = writeVarint(writeVarint(to, NEW_CONNECTION_ID), ours.sequence);
  // Retire Prior To: we never request it.
  at = writeVarint(at, 0);
  store<u8>(at, <u8>ID);
  store<u64>(at + 1, ours.id);
  memory.copy(at + 9, tokenOf(changetype<usize>(ours)), TOKEN);
  return at + 9 + TOKEN;
}
