/**
 * The sending half of a stream, byte stream or message.
 *
 * Bytes wait in a ChunkMap from `sendBase` on. The packets in flight know what was sent and not acknowledged.
 * Acknowledged bytes move `sendBase` or, beyond a hole, go into `acked`; lost bytes go into `lost` and out again before
 * anything new. The connection's list "lost" holds every stream with something to send that needs no credit: lost
 * bytes, or a lone end. buffers.ts bounds how much may wait.
 */
import { copyIn, releaseBelow, releaseRest } from '../memory/chunk-map';
import { BYTES_OUT } from '../memory/chunks';
import { push, remove as unlink } from '../memory/list';
import { endFrom, insert, insertMerging, outEnd, outStart, remove, seek } from '../memory/range-set';
import { at, Connection, LOST_LIST, STARVED } from '../records/connection';
import {
  ackedSet,
  address,
  END_ACKED,
  END_PENDING,
  ENDED,
  has,
  isMessage,
  LOST_LINK,
  lostSet,
  ON_FINISHED,
  queueControl,
  RESET,
  raiseEvent,
  SEND_DONE,
  SEND_RESET_STREAM,
  STARTED,
  Stream,
  sendMap,
  WANTS_ROOM,
} from '../records/stream';
import { queueNew, unblock } from './blocked';
import { bufferedOf, offerRoom, releaseSendBuffers, roomOf, sendBudget } from './buffers';
import { maybeFree } from './lifecycle';

/** Takes up to `length` bytes; fewer when the buffer or the pool is full, and then ON_WRITABLE follows. */
export function write(c: Connection, s: Stream, source: usize, length: u32): u32 {
  if (has(s, ENDED | RESET | SEND_DONE)) return 0;
  const wanted = min(length, roomOf(c, s));
  const taken = copyIn(sendMap(s), s.sendEnd, source, wanted, BYTES_OUT);
  s.sendEnd += taken;
  // With nothing buffered no acknowledgement will come to offer room: the retry timer does.
  if (taken < wanted || (taken < length && bufferedOf(s) == 0)) c.flags |= STARVED;
  if (taken < length) s.flags |= WANTS_ROOM;
  c.buffered += taken;
  if (taken > 0) queueNew(c, s);
  return taken;
}

/** Ends our direction after the bytes written so far. */
export function finish(c: Connection, s: Stream): void {
  if (has(s, ENDED | RESET | SEND_DONE)) return;
  s.flags |= ENDED | END_PENDING;
  s.flags &= ~WANTS_ROOM;
  if (s.sendNext == s.sendEnd) push(at(c) + LOST_LIST, address(s), LOST_LINK);
}

/** Ends our direction at once (RFC 9000 §3.1): discards buffered bytes. */
export function reset(c: Connection, s: Stream, code: u64): void {
  if (has(s, RESET | SEND_DONE)) return;
  if (!isMessage(s)) c.buffered -= bufferedOf(s);
  // A started message reserved its whole size; its final size is what was sent.
  if (isMessage(s) && has(s, STARTED)) c.dataSent -= s.sendEnd - s.sentHighest;
  s.flags = (s.flags | RESET) & ~(WANTS_ROOM | END_PENDING);
  s.resetCode = code;
  unblock(c, s);
  releaseSendBuffers(c, s);
  queueControl(c, s, SEND_RESET_STREAM);
}

/** `length` bytes from `offset` (and the end) arrived. */
export function onSendAcked(c: Connection, s: Stream, offset: u64, length: u32, fin: bool): void {
  if (has(s, RESET | SEND_DONE)) return;
  if (fin) s.flags = (s.flags | END_ACKED) & ~END_PENDING;
  const end = offset + length;
  if (end > s.sendBase) {
    const start = max(offset, s.sendBase);
    if (s.lost) remove(lostSet(s), s.sendBase, start, end);
    if (start == s.sendBase) moveBase(c, s, end);
    else if (!insert(ackedSet(s), s.sendBase, start, end)) noteLost(s, start, end);
  }
  if (!s.lost && !endAlone(s)) unlink(at(c) + LOST_LIST, address(s), LOST_LINK);
  afterAck(c, s);
}

/**
 * The packet with `length` bytes from `offset` (and the end) is lost: queues those that were not acknowledged
 * otherwise.
 */
export function onSendLost(c: Connection, s: Stream, offset: u64, length: u32, fin: bool): void {
  if (has(s, RESET | SEND_DONE)) return;
  if (fin && !has(s, END_ACKED)) s.flags |= END_PENDING;
  let start = max(offset, s.sendBase);
  const end = offset + length;
  while (start < end && seek(ackedSet(s), s.sendBase, start) && outStart < end) {
    if (outStart > start) noteLost(s, start, outStart);
    start = outEnd;
  }
  if (start < end) noteLost(s, start, end);
  if (s.lost || endAlone(s)) push(at(c) + LOST_LIST, address(s), LOST_LINK);
  else queueNew(c, s);
}

/** Our RESET_STREAM arrived. */
export function onResetAcked(c: Connection, s: Stream): void {
  s.flags |= SEND_DONE;
  maybeFree(c, s);
}

export function onResetLost(c: Connection, s: Stream): void {
  if (has(s, SEND_DONE)) return;
  queueControl(c, s, SEND_RESET_STREAM);
}

/** Returns whether only the end is left to send. */
export function endAlone(s: Stream): bool {
  return has(s, END_PENDING) && s.sendNext == s.sendEnd;
}

/** Everything below `to`, and the ranges of `acked` that follow it, are acknowledged. */
function moveBase(c: Connection, s: Stream, to: u64): void {
  const from = s.sendBase;
  let base = to;
  if (s.acked) {
    base = endFrom(ackedSet(s), from, to);
    remove(ackedSet(s), from, from, base);
    if (s.lost) remove(lostSet(s), from, from, base);
  }
  releaseBelow(sendMap(s), from, base, sendBudget(s));
  if (!isMessage(s)) c.buffered -= <u32>(base - from);
  s.sendBase = base;
  if (s.sendNext < base) s.sendNext = base;
  if (base == s.sendEnd) releaseRest(sendMap(s), base, sendBudget(s));
}

/**
 * Notes a lost range. Without a chunk for it, everything from its start on goes out again: more than needed, but
 * correct.
 */
function noteLost(s: Stream, start: u64, end: u64): void {
  if (!insertMerging(lostSet(s), s.sendBase, start, end)) s.sendNext = min(s.sendNext, start);
}

function afterAck(c: Connection, s: Stream): void {
  if (has(s, END_ACKED) && s.sendBase == s.sendEnd) {
    s.flags |= SEND_DONE;
    if (!isMessage(s)) raiseEvent(c, s, ON_FINISHED);
    maybeFree(c, s);
    return;
  }
  offerRoom(c, s);
}
