/**
 * Retires the peer's ids (RFC 9000 §5.1.2, §19.16): noted, then announced in RETIRE_CONNECTION_ID until acknowledged.
 */
import { RETIRE_CONNECTION_ID } from '../frames/types';
import { writeVarint } from '../frames/varint';
import { Connection, SEND_IDS } from '../records/connection';
import {
  ID_DUE,
  ID_FREE,
  ID_SENT,
  ID_USED,
  idsOf,
  MAX_RETIRED,
  RemoteId,
  remoteAt,
  retirementAt,
  TOKEN,
  tokenOf,
} from '../records/connection-ids';
import { FREE, MAX_PATHS, pathAt } from '../records/path';

/** Largest size of RETIRE_CONNECTION_ID, bytes. */
const FRAME: usize = 9;

/**
 * The path that used the id of `slot` is gone: retires the id unless another path uses it, as after a NAT's rebinding.
 */
export function retireUnused(c: Connection, slot: u8): void {
  const theirs = remoteAt(c, slot);
  if (theirs.state != ID_USED || c.remoteId == theirs.id) return;
  if (c.paths) for (let i: u32 = 0; i < MAX_PATHS; i++) if (pathAt(c, i).state != FREE && pathAt(c, i).remoteSlot == slot) return;
  // The list is full only with a peer that never acknowledges: the next id of such a peer closes the connection.
  if (retire(c, theirs.sequence)) clearId(theirs);
}

/** Writes the due retirements into packet `number`. */
export function fillRetirements(c: Connection, to: usize, limit: usize, number: u64): usize {
  let end = to;
  for (let i: u32 = 0; i < MAX_RETIRED; i++) {
    const entry = retirementAt(c, i);
    if (entry.state != ID_DUE || end + FRAME > limit) continue;
    end = writeVarint(writeVarint(end, RETIRE_CONNECTION_ID), entry.sequence);
    entry.state = ID_SENT;
    entry.number = <u32>number;
  }
  return end;
}

/** Schedules an id for retirement; false when too many wait for their acknowledgement (§5.1.2). */
export function retire(c: Connection, sequence: u64): bool {
  for (let i: u32 = 0; i < MAX_RETIRED; i++) {
    const entry = retirementAt(c, i);
    if (entry.state != ID_FREE) continue;
    entry.sequence = sequence;
    entry.state = ID_DUE;
    c.pending |= SEND_IDS;
    idsOf(c).news = 1;
    return true;
  }
  return false;
}

/** Clears an id's entry, token included. */
export function clearId(theirs: RemoteId): void {
  memory.fill(changetype<usize>(theirs), 0, offsetof<RemoteId>());
  memory.fill(tokenOf(changetype<usize>(theirs)), 0, TOKEN);
}
