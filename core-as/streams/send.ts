/**
 * The sending half of a stream, byte stream or message.
 *
 * Bytes wait in a ChunkMap from `sendBase` on. What was sent and not acknowledged is known by the packets in flight; what comes
 * back acknowledged moves `sendBase` or, beyond a hole, goes into `acked`; what comes back lost goes into `lost` and out again
 * before anything new. The list "lost" of the connection holds every stream with something to send that needs no credit: lost
 * bytes, or a lone end.
 *
 * What a byte stream takes from its application is bounded: by the congestion window, by what the peer's credit lets it send, and by what the
 * connection as a whole may hold of the pool.
 */
import { copyIn, MAP_WINDOW, releaseAll, releaseBelow, releaseRest } from "../memory/chunk-map";
import { budgetBytes, BYTES_OUT, fairShare, MESSAGES_OUT, nearlyUsedUp, scarce } from "../memory/chunks";
import { connectionCount } from "../memory/layout";
import { push, remove as unlink } from "../memory/list";
import { clear, endFrom, foundEnd, foundStart, insert, insertMerging, remove, seek } from "../memory/range-set";
import { at, BYTES_LIST, Connection, CONTROL_LIST, EVENTS_LIST, LOST_LIST, MESSAGES_LIST, STARVED } from "../records/connection";
import { connectionsOpen } from "../records/slab";
import {
  ackedSet, address, BLOCKED, CONTROL_LINK, END_ACKED, END_PENDING, ENDED, EVENT_LINK, has, isMessage, LOST_LINK, lostSet, ON_FINISHED,
  ON_WRITABLE, RESET, SEND_DONE, SEND_LINK, SEND_RESET_STREAM, SEND_STREAM_DATA_BLOCKED, sendMap, STARTED, Stream, WANTS_ROOM,
} from "../records/stream";
import { maybeFree } from "./lifecycle";

/** Our constants: least and most bytes buffered per byte stream; in between, four times the congestion window: where packets
 * are lost, what waits for a second repetition spans three round trips and more. */
const LEAST_BUFFER: u32 = 65_536;
const MOST_BUFFER: u32 = MAP_WINDOW - 1_024;
/** Our constant: bytes taken beyond the peer's credit, so that something is there when more credit comes. */
const AHEAD: u64 = 16_384;
/** Our constant: bytes that a stream may buffer whatever the others of its connection hold, unless others need the last of the room. */
const LEAST_ROOM: u32 = 4_096;
/** Our constant: an application that was turned away is asked again when so many bytes fit, or a quarter of what may be buffered. */
const WORTH_OFFERING: u32 = 131_072;

/** Takes up to `length` bytes; fewer when the buffer or the pool is full, and then ON_WRITABLE follows. */
export function write(c: Connection, s: Stream, source: usize, length: u32): u32 {
  if (has(s, ENDED | RESET | SEND_DONE)) return 0;
  const wanted = min(length, roomOf(c, s));
  const taken = copyIn(sendMap(s), s.sendEnd, source, wanted, BYTES_OUT);
  s.sendEnd += taken;
  // With nothing buffered no acknowledgement will come that could offer room: the retry timer does.
  if (taken < wanted || (taken < length && bufferedOf(s) == 0)) c.flags |= STARVED;
  if (taken < length) s.flags |= WANTS_ROOM;
  c.buffered += taken;
  if (taken > 0) queueNew(c, s);
  return taken;
}

/** Ends our direction after what was written. */
export function finish(c: Connection, s: Stream): void {
  if (has(s, ENDED | RESET | SEND_DONE)) return;
  s.flags |= ENDED | END_PENDING;
  s.flags &= ~WANTS_ROOM;
  if (s.sendNext == s.sendEnd) push(at(c) + LOST_LIST, address(s), LOST_LINK);
}

/** Ends our direction at once (RFC 9000 §3.1): buffered bytes are thrown away. */
export function reset(c: Connection, s: Stream, code: u64): void {
  if (has(s, RESET | SEND_DONE)) return;
  if (!isMessage(s)) c.buffered -= bufferedOf(s);
  // A started message reserved its whole size; its final size is what went out.
  if (isMessage(s) && has(s, STARTED)) c.dataSent -= s.sendEnd - s.sentHighest;
  s.flags = (s.flags | RESET) & ~(WANTS_ROOM | END_PENDING);
  s.resetCode = code;
  unblock(c, s);
  releaseSendBuffers(c, s);
  s.pending |= SEND_RESET_STREAM;
  push(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

/** Puts the stream among those with new bytes, if its window allows one. */
export function queueNew(c: Connection, s: Stream): void {
  if (s.sendNext >= s.sendEnd || has(s, RESET) || isBlocked(c, s)) return;
  push(at(c) + (isMessage(s) ? MESSAGES_LIST : BYTES_LIST), address(s), SEND_LINK);
}

/** Whether the stream has bytes to send and no credit for them; when it is new, the peer is told (RFC 9000 §4.1). */
export function isBlocked(c: Connection, s: Stream): bool {
  if (s.sendNext < s.sendLimit || s.sendNext >= s.sendEnd) return false;
  if (has(s, BLOCKED)) return true;
  s.flags |= BLOCKED;
  s.blocked++;
  tellBlocked(c, s);
  return true;
}

/** STREAM_DATA_BLOCKED has to go out. */
export function tellBlocked(c: Connection, s: Stream): void {
  s.pending |= SEND_STREAM_DATA_BLOCKED;
  push(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

/** There is credit, or nothing to send any more: what was not told yet need not be. */
export function unblock(c: Connection, s: Stream): void {
  s.flags &= ~BLOCKED;
  s.pending &= ~SEND_STREAM_DATA_BLOCKED;
  if (s.pending == 0) unlink(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
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

/** The packet with `length` bytes from `offset` (and the end) is lost: queue what is not acknowledged otherwise. */
export function onSendLost(c: Connection, s: Stream, offset: u64, length: u32, fin: bool): void {
  if (has(s, RESET | SEND_DONE)) return;
  if (fin && !has(s, END_ACKED)) s.flags |= END_PENDING;
  let start = max(offset, s.sendBase);
  const end = offset + length;
  while (start < end && seek(ackedSet(s), s.sendBase, start) && foundStart < end) {
    if (foundStart > start) noteLost(s, start, foundStart);
    start = foundEnd;
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
  s.pending |= SEND_RESET_STREAM;
  push(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

/** The end is all that is left to send. */
export function endAlone(s: Stream): bool {
  return has(s, END_PENDING) && s.sendNext == s.sendEnd;
}

/** Whether a writer that was turned away would be served now; if so, tells it. */
export function offerRoom(c: Connection, s: Stream): void {
  if (!has(s, WANTS_ROOM)) return;
  if (bufferedOf(s) > 0 && roomOf(c, s) < min(bufferLimit(c, s) / 4, WORTH_OFFERING)) return;
  s.flags &= ~WANTS_ROOM;
  raiseEvent(c, s, ON_WRITABLE);
}

export function raiseEvent(c: Connection, s: Stream, event: u32): void {
  s.events |= event;
  push(at(c) + EVENTS_LIST, address(s), EVENT_LINK);
}

/** Frees what waits to be sent and takes the stream out of every sending list. */
export function releaseSendBuffers(c: Connection, s: Stream): void {
  releaseAll(sendMap(s), budgetOf(s));
  if (!isMessage(s) && !has(s, RESET)) c.buffered -= bufferedOf(s);
  clear(ackedSet(s));
  clear(lostSet(s));
  unlink(at(c) + LOST_LIST, address(s), LOST_LINK);
  unlink(at(c) + (isMessage(s) ? MESSAGES_LIST : BYTES_LIST), address(s), SEND_LINK);
}

/** Everything below `to` is acknowledged, and what `acked` adds to it. */
function moveBase(c: Connection, s: Stream, to: u64): void {
  const from = s.sendBase;
  let base = to;
  if (s.acked) {
    base = endFrom(ackedSet(s), from, to);
    remove(ackedSet(s), from, from, base);
    if (s.lost) remove(lostSet(s), from, from, base);
  }
  releaseBelow(sendMap(s), from, base, budgetOf(s));
  if (!isMessage(s)) c.buffered -= <u32>(base - from);
  s.sendBase = base;
  if (s.sendNext < base) s.sendNext = base;
  if (base == s.sendEnd) releaseRest(sendMap(s), base, budgetOf(s));
}

/** Without a chunk for the range, everything from there on goes out again: more than needed, and correct. */
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

/** Bytes the application may write now. */
function roomOf(c: Connection, s: Stream): u32 {
  const buffered = bufferedOf(s);
  const limit = bufferLimit(c, s);
  const own = limit > buffered ? limit - buffered : 0;
  const all = connectionLimit(c);
  const shared = all > c.buffered ? all - c.buffered : 0;
  const least = LEAST_ROOM > buffered && (connectionsOpen == 1 || !nearlyUsedUp(BYTES_OUT)) ? LEAST_ROOM - buffered : 0;
  return min(own, max(shared, least));
}

/** Written and not acknowledged; nothing is left of a direction that was reset. */
export function bufferedOf(s: Stream): u32 {
  return has(s, RESET) ? 0 : <u32>(s.sendEnd - s.sendBase);
}

/** Most bytes that may be buffered for the stream. */
function bufferLimit(c: Connection, s: Stream): u32 {
  const path = min(max(LEAST_BUFFER, c.congestionWindow * 4), MOST_BUFFER);
  const credit = s.sendLimit - s.sendBase + AHEAD;
  return <u32>min(<u64>path, credit);
}

/** Most bytes that may be buffered for all byte streams of the connection: when room is scarce its share, if there are others. */
function connectionLimit(c: Connection): u32 {
  const budget = <u32>min(budgetBytes(BYTES_OUT), <u64>i32.MAX_VALUE);
  if (connectionsOpen == 1 || !scarce(BYTES_OUT)) return budget / 4 * 3;
  return <u32>min(fairShare(BYTES_OUT, connectionCount), <u64>budget);
}

function budgetOf(s: Stream): u32 {
  return isMessage(s) ? MESSAGES_OUT : BYTES_OUT;
}
