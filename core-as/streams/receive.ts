/**
 * The receiving half of a stream: reassembly.
 *
 * Bytes go to their offsets in a ChunkMap, in any order; `gaps` records what lies beyond the first hole. A frame that
 * finds no chunk, or would make more holes than can be recorded, is refused before any of it counts: its packet is not
 * acknowledged and the peer sends the frame again.
 */
import { ERROR_FINAL_SIZE_ERROR, ERROR_FLOW_CONTROL_ERROR, ERROR_NO_ERROR } from '../codes.generated';
import { REFUSED } from '../frames/types';
import { MAX_VARINT } from '../frames/varint';
import { addressOf, copyIn, copyOut, releaseBelow, releaseRest } from '../memory/chunk-map';
import { BYTES_IN, CHUNK, MESSAGES_IN, nearlyUsedUp, roomBehindGap, scarce } from '../memory/chunks';
import { endFrom, insert, remove } from '../memory/range-set';
import { Connection } from '../records/connection';
import { connectionsOpen } from '../records/slab';
import {
  ADAPTIVE,
  DISCARD,
  gapSet,
  has,
  isMessage,
  ON_MESSAGE,
  ON_READABLE,
  ON_RESET,
  PEER_RESET,
  RAGGED,
  RECEIVE_DONE,
  raiseEvent,
  receiveMap,
  Stream,
  UNKNOWN,
} from '../records/stream';
import { receiveBudget, releaseReceiveBuffers } from './buffers';
import { afterConsumed, afterRead, afterReceived, requestStop } from './credit';
import { maybeFree } from './lifecycle';
import { holdsLittle } from './window';

/** Result of `read`: the end was reached. */
export const AT_END: u32 = 0xffff_ffff;

/** Processes a STREAM frame. Returns a transport error code, or REFUSED. */
export function onData(c: Connection, s: Stream, offset: u64, length: u32, fin: bool, data: usize): u32 {
  const end = offset + length;
  const error = checkSizes(c, s, end, fin);
  if (error) return error;
  if (has(s, PEER_RESET | RECEIVE_DONE)) return ERROR_NO_ERROR;

  const before = s.contiguous;
  if (!has(s, DISCARD) && !keep(c, s, offset, end, data)) {
    if (s.contiguous > before) {
      reachTo(c, s, s.contiguous);
      raiseEvent(c, s, ON_READABLE);
    }
    return REFUSED;
  }
  reachTo(c, s, end);
  const ended = fin && s.finalSize == UNKNOWN;
  if (fin) s.finalSize = end;

  if (has(s, DISCARD)) discard(c, s);
  else if (isMessage(s)) {
    if (s.contiguous == s.finalSize && (ended || s.contiguous > before)) raiseEvent(c, s, ON_MESSAGE);
  } else if (s.contiguous > before || (ended && s.contiguous == end)) raiseEvent(c, s, ON_READABLE);
  return ERROR_NO_ERROR;
}

/** Processes a RESET_STREAM frame. Returns a transport error code. */
export function onPeerReset(c: Connection, s: Stream, code: u64, finalSize: u64): u32 {
  const error = checkSizes(c, s, finalSize, true);
  if (error) return error;
  if (has(s, PEER_RESET | RECEIVE_DONE)) return ERROR_NO_ERROR;
  // Everything has arrived and ended regularly: the reset came too late to matter (RFC 9000 §3.2).
  if (s.finalSize != UNKNOWN && s.contiguous == s.finalSize && !has(s, DISCARD)) return ERROR_NO_ERROR;
  reachTo(c, s, finalSize);
  s.finalSize = finalSize;
  s.flags |= PEER_RESET;
  s.peerResetCode = code;
  // All that was sent on an accepted stream has arrived: the application reads it first (RFC 9000 §3.2), and then
  // learns of the reset. No answer is lost because its reader was slow.
  if (s.contiguous == finalSize && s.readBase < finalSize && has(s, ADAPTIVE) && !has(s, DISCARD)) return ERROR_NO_ERROR;
  releaseReceiveBuffers(s);
  consume(c, s, s.highest);
  if (isMessage(s) || has(s, DISCARD)) s.flags |= RECEIVE_DONE;
  else raiseEvent(c, s, ON_RESET);
  maybeFree(c, s);
  return ERROR_NO_ERROR;
}

/** Copies up to `most` bytes to `target`; returns how many, 0 = none yet, AT_END after the last one. */
export function read(c: Connection, s: Stream, target: usize, most: u32): u32 {
  if (has(s, DISCARD) || isReset(s)) return 0;
  const length = <u32>min(s.contiguous - s.readBase, <u64>most);
  if (length == 0) {
    if (s.readBase != s.finalSize) return 0;
    s.flags |= RECEIVE_DONE;
    s.events &= ~ON_READABLE;
    maybeFree(c, s);
    return AT_END;
  }
  copyOut(receiveMap(s), s.readBase, target, length);
  const from = s.readBase;
  releaseBelow(receiveMap(s), from, from + length, receiveBudget(s));
  consume(c, s, from + length);
  if (s.readBase == s.contiguous && !s.gaps && !has(s, RAGGED)) releaseRest(receiveMap(s), s.readBase, receiveBudget(s));
  afterRead(c, s);
  if (isReset(s)) raiseEvent(c, s, ON_RESET);
  return length;
}

/** Sends STOP_SENDING and discards whatever still arrives. */
export function stop(c: Connection, s: Stream, code: u64): void {
  if (has(s, DISCARD | RECEIVE_DONE) || isReset(s)) return;
  s.flags |= DISCARD;
  s.events &= ~ON_READABLE;
  if (s.finalSize == UNKNOWN) requestStop(c, s, code);
  releaseReceiveBuffers(s);
  discard(c, s);
}

/** Returns whether the peer has reset its direction, and nothing that arrived before waits to be read. */
function isReset(s: Stream): bool {
  return has(s, PEER_RESET) && s.readBase == s.finalSize;
}

/** Checks offsets and final size (RFC 9000 §4.1, §4.5). */
function checkSizes(c: Connection, s: Stream, end: u64, fin: bool): u32 {
  if (s.finalSize != UNKNOWN && (end > s.finalSize || (fin && end != s.finalSize))) return ERROR_FINAL_SIZE_ERROR;
  if (fin && end < s.highest) return ERROR_FINAL_SIZE_ERROR;
  if (end <= s.highest) return ERROR_NO_ERROR;
  if (end > MAX_VARINT || end > s.receiveLimit) return ERROR_FLOW_CONTROL_ERROR;
  return c.dataReceived + (end - s.highest) > c.dataReceiveLimit ? ERROR_FLOW_CONTROL_ERROR : ERROR_NO_ERROR;
}

/** Stores the bytes and advances `contiguous`; false when there is no room for them. */
function keep(c: Connection, s: Stream, offset: u64, end: u64, data: usize): bool {
  const start = max(offset, s.contiguous);
  if (start >= end) return true;
  if (!hasRoom(c, s, start) && needsChunk(s, start, end)) return false;
  const length = <u32>(end - start);
  const taken = copyIn(receiveMap(s), start, data + <usize>(start - offset), length, receiveBudget(s));
  if (taken < length) {
    s.flags |= RAGGED;
    // Contiguous bytes are delivered all the same: reading them frees the chunk that the rest needs. Otherwise streams
    // with half-filled last chunks and bytes behind gaps could hold all the room between them.
    if (start == s.contiguous && !isMessage(s)) closeGaps(s, start + taken);
    return false;
  }
  if (start > s.contiguous) {
    if (insert(gapSet(s), s.contiguous, start, end)) return true;
    s.flags |= RAGGED;
    return false;
  }
  closeGaps(s, end);
  return true;
}

/** Returns whether bytes of `s` from `start` on may take another chunk. */
function hasRoom(c: Connection, s: Stream, start: u64): bool {
  if (isMessage(s)) return !scarce(MESSAGES_IN) || holdsLittle(c, MESSAGES_IN);
  if (roomBehindGap()) return true;
  // The last quarter is for bytes that close gaps, so that the room behind them is freed. The last eighth is for those
  // that reading applications wait for and, if there are other connections, for those that hold little.
  if (start != s.contiguous) return false;
  return !nearlyUsedUp(BYTES_IN) || s.contiguous == s.readBase || connectionsOpen == 1 || holdsLittle(c, BYTES_IN);
}

function closeGaps(s: Stream, to: u64): void {
  const from = s.contiguous;
  let reached = to;
  if (s.gaps) {
    reached = endFrom(gapSet(s), from, to);
    remove(gapSet(s), from, from, reached);
  }
  s.contiguous = reached;
}

function needsChunk(s: Stream, start: u64, end: u64): bool {
  for (let offset = start & ~(<u64>CHUNK - 1); offset < end; offset += CHUNK) if (!addressOf(receiveMap(s), offset)) return true;
  return false;
}

/** Flow control: accounts for the stream reaching to `end`. */
function reachTo(c: Connection, s: Stream, end: u64): void {
  if (end <= s.highest) return;
  c.dataReceived += end - s.highest;
  s.highest = end;
  afterReceived(c);
}

function discard(c: Connection, s: Stream): void {
  s.contiguous = s.highest;
  consume(c, s, s.highest);
  if (s.finalSize == UNKNOWN) return;
  s.flags |= RECEIVE_DONE;
  maybeFree(c, s);
}

/** The application has finished with everything below `to`. */
function consume(c: Connection, s: Stream, to: u64): void {
  c.dataConsumed += to - s.readBase;
  s.readBase = to;
  afterConsumed(c);
}
