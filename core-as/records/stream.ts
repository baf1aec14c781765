/**
 * One stream, byte stream or message: fields, flags and events. 384 bytes in the stream slab (memory/layout.ts).
 *
 * Sending and receiving halves are independent; a message has one of them. Offsets are those of RFC 9000 §2.2.
 *
 *   send:     sendBase (all below acknowledged) ≤ sendNext (first never sent) ≤ sendEnd (written by the application)
 *   receive:  readBase (handed to the application) ≤ contiguous (no gap below) ≤ highest (largest end seen)
 */
import { MAP_SIZE } from '../memory/chunk-map';
import { push } from '../memory/list';
import { at, CONTROL_LIST, Connection, EVENTS_LIST } from './connection';

/** Our constant: the weight of a byte stream without one of its own, from 1 … 256 (as in HTTP/2, RFC 7540 §5.3.2). */
export const DEFAULT_WEIGHT: u32 = 16;

/** Final size of a direction whose end is not yet known. */
export const UNKNOWN: u64 = u64.MAX_VALUE;

// Flags: the state of a stream.
/** Opened by us. */
export const OWN: u32 = 1 << 0;
/** Kind 1: a message (PROTOCOL.md §5). */
export const MESSAGE: u32 = 1 << 1;
/** The application ended our direction. */
export const ENDED: u32 = 1 << 2;
/** The end must go out (again). */
export const END_PENDING: u32 = 1 << 3;
export const END_ACKED: u32 = 1 << 4;
/** We reset our direction. */
export const RESET: u32 = 1 << 5;
/** Our direction needs nothing more: everything is acknowledged, or its reset is. */
export const SEND_DONE: u32 = 1 << 6;
/** The application waits for room. */
export const WANTS_ROOM: u32 = 1 << 7;
/** The message's whole size is reserved in MAX_DATA and it is on its way. */
export const STARTED: u32 = 1 << 8;
/** Arriving data is counted and discarded: the application asked the peer to stop. */
export const DISCARD: u32 = 1 << 9;
/** The peer reset its direction. */
export const PEER_RESET: u32 = 1 << 10;
/** The application saw the end of the peer's direction. */
export const RECEIVE_DONE: u32 = 1 << 11;
/** The receive map holds chunks of refused data: it is freed only as a whole, at the end. */
export const RAGGED: u32 = 1 << 12;
/** The receive window was raised: from now on it grows automatically (window.ts). */
export const ADAPTIVE: u32 = 1 << 13;
/** It has bytes to send but no credit from the peer. */
export const BLOCKED: u32 = 1 << 14;

// Pending control frames of a stream.
export const SEND_MAX_STREAM_DATA: u32 = 1 << 0;
export const SEND_RESET_STREAM: u32 = 1 << 1;
export const SEND_STOP_SENDING: u32 = 1 << 2;
export const SEND_STREAM_DATA_BLOCKED: u32 = 1 << 3;

// Events of a stream that the caller has not fetched, in the order of reporting.
export const ON_OPENED: u32 = 1 << 0;
export const ON_READABLE: u32 = 1 << 1;
export const ON_MESSAGE: u32 = 1 << 2;
export const ON_RESET: u32 = 1 << 3;
export const ON_STOPPED: u32 = 1 << 4;
export const ON_WRITABLE: u32 = 1 << 5;
export const ON_FINISHED: u32 = 1 << 6;

@unmanaged
export class Stream {
  id: u64;
  sendBase: u64;
  sendNext: u64;
  /** Largest end ever sent; above `sendNext` only after a loss for which no range could be recorded. */
  sentHighest: u64;
  sendEnd: u64;
  /** The peer's MAX_STREAM_DATA. */
  sendLimit: u64;
  resetCode: u64;
  stopCode: u64;
  readBase: u64;
  contiguous: u64;
  highest: u64;
  /** Size of the peer's direction, UNKNOWN before FIN or RESET_STREAM. */
  finalSize: u64;
  /** Our MAX_STREAM_DATA, as announced. */
  receiveLimit: u64;
  peerResetCode: u64;
  peerStopCode: u64;
  /** Bytes that were retransmitted. */
  repeated: u64;
  /** `sentHighest` when the peer last gave credit: what was sent since may lie unread (credit.ts). */
  creditedAt: u64;
  connection: usize;
  /** Hash chain of the table; link of the free list. */
  tableNext: usize;
  /** Incremented at each reuse of the record, so that a late acknowledgement cannot affect its successor. */
  generation: u32;
  flags: u32;
  pending: u32;
  events: u32;
  /** Receive window that we keep open. */
  window: u32;
  /** When it was last announced (`ticksOf`), 0 = never. */
  tuned: u32;
  /** Bytes the stream may still send in its turn; negative: the excess of its last turn. */
  share: i32;
  /** Weight among byte streams less one: 0 … 255 for 1 … 256. */
  weight: u8;
  /** How often it became BLOCKED. */
  blocked: u32;
  /** RangeSets, see memory/range-set.ts. */
  acked: usize;
  lost: usize;
  gaps: usize;
  // Links of lists, see memory/list.ts: previous and next.
  allPrevious: usize;
  allNext: usize;
  sendPrevious: usize;
  sendFollowing: usize;
  lostPrevious: usize;
  lostNext: usize;
  controlPrevious: usize;
  controlNext: usize;
  eventPrevious: usize;
  eventNext: usize;
}

const FIELDS: usize = offsetof<Stream>();
/** Bytes of a record in use. */
export const STREAM_USED: usize = FIELDS + 2 * MAP_SIZE;

export const ALL_LINK: usize = offsetof<Stream>('allPrevious');
export const SEND_LINK: usize = offsetof<Stream>('sendPrevious');
export const LOST_LINK: usize = offsetof<Stream>('lostPrevious');
export const CONTROL_LINK: usize = offsetof<Stream>('controlPrevious');
export const EVENT_LINK: usize = offsetof<Stream>('eventPrevious');

export function address(s: Stream): usize {
  return changetype<usize>(s);
}

/** ChunkMap of the bytes to send. */
export function sendMap(s: Stream): usize {
  return changetype<usize>(s) + FIELDS;
}

/** ChunkMap of the bytes received. */
export function receiveMap(s: Stream): usize {
  return changetype<usize>(s) + FIELDS + MAP_SIZE;
}

export function ackedSet(s: Stream): usize {
  return changetype<usize>(s) + offsetof<Stream>('acked');
}

export function lostSet(s: Stream): usize {
  return changetype<usize>(s) + offsetof<Stream>('lost');
}

/** Ranges received beyond `contiguous`. */
export function gapSet(s: Stream): usize {
  return changetype<usize>(s) + offsetof<Stream>('gaps');
}

export function has(s: Stream, flag: u32): bool {
  return (s.flags & flag) != 0;
}

export function isMessage(s: Stream): bool {
  return (s.flags & MESSAGE) != 0;
}

/** Returns whether we send on this stream at all. */
export function canSend(s: Stream): bool {
  return !isMessage(s) || has(s, OWN);
}

/** Returns whether the peer sends on this stream at all. */
export function canReceive(s: Stream): bool {
  return !isMessage(s) || !has(s, OWN);
}

/** Queues control frames of a stream, `SEND_…` above. */
export function queueControl(c: Connection, s: Stream, frames: u32): void {
  s.pending |= frames;
  push(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

/** Raises one of the `ON_…` above for the caller. */
export function raiseEvent(c: Connection, s: Stream, event: u32): void {
  s.events |= event;
  push(at(c) + EVENTS_LIST, address(s), EVENT_LINK);
}
