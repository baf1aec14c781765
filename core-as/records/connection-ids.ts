/**
 * Connection ids of both ends besides the first two (RFC 9000 §5.1, PROTOCOL.md §2): records and lookup. local-ids.ts
 * announces and retires our ids; remote-ids.ts takes and uses the peer's.
 *
 * The chunk is taken when either end supplies an id ahead; a connection that never does has its two ids in `Connection`
 * and owns nothing here. The chunk also holds the mask keys, since each new id needs its mask; they are wiped with it.
 */
import { maskOf } from '../aead/chacha';
import { BOOKKEEPING, CHUNK, releaseChunk, takeClearChunk } from '../memory/chunks';
import { Connection } from './connection';
import { MAX_PATHS, pathAt } from './path';

/** PROTOCOL.md §2: active_connection_id_limit of both ends. */
export const ACTIVE_CONNECTION_ID_LIMIT: u32 = 4;
/**
 * Our constant: retirements that wait for their acknowledgement (RFC 9000 §5.1.2 asks for at least twice the limit).
 */
export const MAX_RETIRED: u32 = 16;
export const NO_ID: u8 = 255;
export const TOKEN: usize = 16;

// States of one of our ids.
export const ID_FREE: u8 = 0;
/** To be announced; announced in packet `number`; acknowledged by the peer. */
export const ID_DUE: u8 = 1;
export const ID_SENT: u8 = 2;
export const ID_KNOWN: u8 = 3;

// States of one of the peer's ids; a retirement uses ID_FREE, ID_DUE and ID_SENT.
export const ID_SPARE: u8 = 1;
export const ID_USED: u8 = 2;

@unmanaged
export class Ids {
  /** Sequence number of our next id. */
  nextLocal: u64;
  /** The peer's ids below this are to be retired. */
  retirePriorTo: u64;
  /** Largest sequence number seen from the peer; bit n of `seen`: largest - n was seen. */
  largestSeen: u64;
  seen: u64;
  hasKeys: u8;
  /** There is news for the caller. */
  news: u8;
}

@unmanaged
export class LocalId {
  id: u64;
  sequence: u64;
  mask: u32;
  /** Low bits of the number of the packet that announced it. */
  number: u32;
  state: u8;
}

@unmanaged
export class RemoteId {
  id: u64;
  sequence: u64;
  mask: u32;
  state: u8;
}

@unmanaged
export class Retirement {
  sequence: u64;
  number: u32;
  state: u8;
}

const SEND_KEY: usize = 64;
const RECEIVE_KEY: usize = 96;
const LOCAL_AT: usize = 128;
/** Both records with the reset token after their fields. */
const ID_SIZE: usize = 48;
const TOKEN_AT: usize = 32;
const REMOTE_AT: usize = LOCAL_AT + <usize>ACTIVE_CONNECTION_ID_LIMIT * ID_SIZE;
const RETIRED_AT: usize = REMOTE_AT + <usize>ACTIVE_CONNECTION_ID_LIMIT * ID_SIZE;
const RETIRED_SIZE: usize = 16;
/** Bytes of the chunk in use. */
export const IDS_USED: usize = RETIRED_AT + <usize>MAX_RETIRED * RETIRED_SIZE;

export function idsOf(c: Connection): Ids {
  return changetype<Ids>(c.ids);
}

export function localAt(c: Connection, slot: u32): LocalId {
  return changetype<LocalId>(c.ids + LOCAL_AT + ID_SIZE * slot);
}

export function remoteAt(c: Connection, slot: u32): RemoteId {
  return changetype<RemoteId>(c.ids + REMOTE_AT + ID_SIZE * slot);
}

export function retirementAt(c: Connection, slot: u32): Retirement {
  return changetype<Retirement>(c.ids + RETIRED_AT + RETIRED_SIZE * slot);
}

/** Address of the reset token of a LocalId or RemoteId. */
export function tokenOf(record: usize): usize {
  return record + TOKEN_AT;
}

/** Ensures the chunk, with the two ids of the handshake; false when no chunk is left. */
export function ensureIds(c: Connection): bool {
  if (c.ids) return true;
  c.ids = takeClearChunk(BOOKKEEPING);
  if (!c.ids) return false;
  idsOf(c).nextLocal = 1;
  idsOf(c).seen = 1;
  const ours = localAt(c, 0);
  ours.id = c.localId;
  ours.mask = c.receiveMask;
  ours.state = ID_KNOWN;
  const theirs = remoteAt(c, 0);
  theirs.id = c.remoteId;
  theirs.mask = c.sendMask;
  theirs.state = ID_USED;
  if (c.paths) for (let i: u32 = 0; i < MAX_PATHS; i++) pathAt(c, i).remoteSlot = 0;
  return true;
}

/** Stores the mask keys, 32 bytes each: for what we send, for what we receive. */
export function giveMaskKeys(c: Connection, keys: usize): void {
  if (idsOf(c).hasKeys) return;
  memory.copy(c.ids + SEND_KEY, keys, 64);
  idsOf(c).hasKeys = 1;
  idsOf(c).news = 1;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const theirs = remoteAt(c, i);
    if (theirs.state == ID_SPARE) theirs.mask = maskOf(c.ids + SEND_KEY, theirs.id);
  }
}

export function sendMaskOf(c: Connection, id: u64): u32 {
  return idsOf(c).hasKeys ? maskOf(c.ids + SEND_KEY, id) : 0;
}

export function receiveMaskOf(c: Connection, id: u64): u32 {
  return maskOf(c.ids + RECEIVE_KEY, id);
}

/** Returns our record of `id`, null (0) when it is none of this connection's ids. */
export function findLocal(c: Connection, id: u64): LocalId {
  if (c.ids) {
    for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
      const ours = localAt(c, i);
      if (ours.state != ID_FREE && ours.id == id) return ours;
    }
  }
  return changetype<LocalId>(0);
}

/** Slot of one of the peer's ids, NO_ID while none are listed. */
export function slotOfRemote(c: Connection, id: u64): u8 {
  if (!c.ids) return NO_ID;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const theirs = remoteAt(c, i);
    if (theirs.state != ID_FREE && theirs.id == id) return <u8>i;
  }
  return NO_ID;
}

/** The packet that announced or retired ids arrived, or was lost: then they are due again. */
export function idFramesSettled(c: Connection, number: u64, arrived: bool): void {
  if (!c.ids) return;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const ours = localAt(c, i);
    if (ours.state == ID_SENT && ours.number == <u32>number) ours.state = arrived ? ID_KNOWN : ID_DUE;
  }
  for (let i: u32 = 0; i < MAX_RETIRED; i++) {
    const entry = retirementAt(c, i);
    if (entry.state == ID_SENT && entry.number == <u32>number) entry.state = arrived ? ID_FREE : ID_DUE;
  }
}

/** Wipes keys and ids. */
export function releaseIds(c: Connection): void {
  if (!c.ids) return;
  memory.fill(c.ids, 0, CHUNK);
  releaseChunk(c.ids, BOOKKEEPING);
  c.ids = 0;
}
