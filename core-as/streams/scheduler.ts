/**
 * Selects the stream bytes and datagrams for the packet under construction (docs/transport.md §2):
 *
 *   1. lost bytes   2. messages, in id order   3. datagrams   4. byte streams in turn, by weight
 *
 * While byte streams have something to send, they come first in one packet of four. A message starts only when its
 * whole size fits into the rest of MAX_DATA, which is then reserved; byte streams never use the last R bytes. So
 * neither can stall the other. Of what is left to byte streams the last bytes are for those that move (blocked.ts), so
 * that streams which no application reads cannot stall them.
 *
 * Turns are a deficit round robin that serves before it charges: at the start of its turn a stream gets a share of
 * bytes in proportion to its weight (one packet at the default weight), keeps its turn while any of that is left, and
 * carries its excess over. A stream with many times the weight sends that many packets in a row. Skipping a stream
 * costs a list rotation; a share covers at least a sixteenth of a packet, so there are on average at most 16 rotations
 * per packet.
 */
import { onOutOfCredit } from '../congestion/congestion';
import { fillDatagrams } from '../datagrams/send';
import { STREAM, STREAM_FIN, STREAM_LEN, STREAM_OFF } from '../frames/types';
import { varintSize, writeVarint } from '../frames/varint';
import { copyOut } from '../memory/chunk-map';
import { head, next, remove, rotate } from '../memory/list';
import { outEnd, outStart, remove as removeRange, seek } from '../memory/range-set';
import { canStage, stageReference } from '../packet/staging';
import { at, BYTES_LIST, Connection, LOST_LIST, MESSAGES_LIST } from '../records/connection';
import { REF_DATA } from '../records/flight';
import {
  address,
  DEFAULT_WEIGHT,
  END_ACKED,
  END_PENDING,
  ENDED,
  has,
  isMessage,
  LOST_LINK,
  lostSet,
  SEND_LINK,
  STARTED,
  Stream,
  sendMap,
} from '../records/stream';
import { byteCredit, creditOf, hasCredit, isBlocked } from './blocked';
import { endAlone } from './send';
import { RESERVE } from './window';

/** One packet in this many belongs to byte streams first. */
const SHARE: u8 = 4;

/** A frame is not worth starting in less space than this, unless the piece ends there. */
const MIN_SPACE: u32 = 24;

/** Writes STREAM and DATAGRAM frames from `to` up to `limit`; returns the address after them. */
export function fillStreams(c: Connection, to: usize, limit: usize): usize {
  let end = fillLost(c, to, limit);
  c.turn = (c.turn + 1) % SHARE;
  if (c.turn == 0) {
    end = fillBytes(c, end, limit);
    end = fillMessages(c, end, limit);
    return fillDatagrams(c, end, limit);
  }
  end = fillMessages(c, end, limit);
  end = fillDatagrams(c, end, limit);
  return fillBytes(c, end, limit);
}

/** Returns whether `fillStreams` would write stream bytes. */
export function hasStreamData(c: Connection): bool {
  if (c.lostHead) return true;
  if (c.messagesHead && mayStart(c, changetype<Stream>(c.messagesHead))) return true;
  return c.bytesHead != 0 && bringForward(c);
}

function fillLost(c: Connection, to: usize, limit: usize): usize {
  const list = at(c) + LOST_LIST;
  while (head(list) && canStage()) {
    const s = changetype<Stream>(head(list));
    const end = writeLost(c, s, to, limit);
    if (!s.lost && !endAlone(s)) remove(list, address(s), LOST_LINK);
    if (end == to) break;
    to = end;
  }
  return to;
}

function fillMessages(c: Connection, to: usize, limit: usize): usize {
  const list = at(c) + MESSAGES_LIST;
  while (head(list) && canStage()) {
    const s = changetype<Stream>(head(list));
    if (!mayStart(c, s)) break;
    const end = writeNew(c, s, to, limit, u64.MAX_VALUE);
    if (end == to) break;
    if (!has(s, STARTED)) {
      s.flags |= STARTED;
      c.dataSent += s.sendEnd;
    }
    if (s.sendNext == s.sendEnd) remove(list, address(s), SEND_LINK);
    to = end;
  }
  return to;
}

function fillBytes(c: Connection, to: usize, limit: usize): usize {
  const list = at(c) + BYTES_LIST;
  while (head(list) && canStage()) {
    if (!bringForward(c)) break;
    const s = byteCredit(c) > <u64>RESERVE ? inTurn(c) : changetype<Stream>(head(list));
    const before = s.sentHighest;
    const end = writeNew(c, s, to, limit, creditOf(c, s));
    if (end == to) break;
    c.dataSent += s.sentHighest - before;
    s.share -= <i32>outWritten;
    if (s.sendNext >= s.sendEnd || isBlocked(c, s)) {
      if (s.sendNext < s.sendEnd) onOutOfCredit(c);
      s.share = min(s.share, 0);
      remove(list, address(s), SEND_LINK);
    } else if (s.share <= 0) rotate(list, SEND_LINK);
    to = end;
  }
  return to;
}

/**
 * Moves a byte stream that has credit to the head of the list, which is not empty; false when none has. Only the last
 * bytes of the connection's credit are not for all.
 */
function bringForward(c: Connection): bool {
  if (byteCredit(c) > <u64>RESERVE) return true;
  const list = at(c) + BYTES_LIST;
  const first = head(list);
  do {
    if (hasCredit(c, changetype<Stream>(head(list)))) return true;
    rotate(list, SEND_LINK);
  } while (head(list) != first);
  return false;
}

/** Returns the byte stream whose turn it is, moved to the head of the list; there must be one. */
function inTurn(c: Connection): Stream {
  const list = at(c) + BYTES_LIST;
  let s = changetype<Stream>(head(list));
  if (!next(address(s), SEND_LINK)) {
    s.share = 0;
    return s;
  }
  while (s.share <= 0) {
    s.share += shareOf(c, s);
    if (s.share > 0) break;
    rotate(list, SEND_LINK);
    s = changetype<Stream>(head(list));
  }
  return s;
}

/** Bytes of one turn. */
function shareOf(c: Connection, s: Stream): i32 {
  return max(1, (<i32>c.packetSize * (<i32>s.weight + 1)) / <i32>DEFAULT_WEIGHT);
}

function mayStart(c: Connection, s: Stream): bool {
  return has(s, STARTED) || c.dataSent + s.sendEnd <= c.dataSendLimit;
}

/** Writes the first lost range of `s`, or its end alone. */
function writeLost(c: Connection, s: Stream, to: usize, limit: usize): usize {
  if (!seek(lostSet(s), s.sendBase, s.sendBase)) return endAlone(s) ? writePiece(s, s.sendEnd, 0, to, limit) : to;
  const start = outStart;
  const length = <u32>min(outEnd - start, <u64>u32.MAX_VALUE);
  const end = writePiece(s, start, length, to, limit);
  if (end == to) return to;
  removeRange(lostSet(s), s.sendBase, start, start + outWritten);
  countRepeated(c, s, outWritten);
  return end;
}

/** Writes new bytes of `s`, at most `credit` of them beyond what was ever sent. */
function writeNew(c: Connection, s: Stream, to: usize, limit: usize, credit: u64): usize {
  const most = min(s.sendEnd, s.sendLimit);
  let length = most - s.sendNext;
  if (!isMessage(s)) length = min(length, s.sentHighest - s.sendNext + credit);
  const end = writePiece(s, s.sendNext, <u32>length, to, limit);
  if (end == to) return to;
  if (s.sendNext < s.sentHighest) countRepeated(c, s, <u32>min(<u64>outWritten, s.sentHighest - s.sendNext));
  s.sendNext += outWritten;
  s.sentHighest = max(s.sentHighest, s.sendNext);
  return end;
}

function countRepeated(c: Connection, s: Stream, bytes: u32): void {
  s.repeated += bytes;
  c.bytesRepeated += <f64>bytes;
}

/** Bytes that the last `writePiece` wrote. */
let outWritten: u32 = 0;

/** Writes one STREAM frame with up to `length` bytes from `offset`; returns `to` when it does not fit. */
function writePiece(s: Stream, offset: u64, length: u32, to: usize, limit: usize): usize {
  const space = <u32>(limit - to);
  const header: u32 = 1 + varintSize(s.id) + (offset ? varintSize(offset) : 0) + varintSize(min(length, space));
  if (space < header || (length > space - header && space < MIN_SPACE + header)) return to;
  const take = min(length, space - header);
  const fin = has(s, ENDED) && !has(s, END_ACKED) && offset + take == s.sendEnd;

  let at = writeVarint(to, STREAM | STREAM_LEN | (offset ? STREAM_OFF : 0) | (fin ? STREAM_FIN : 0));
  at = writeVarint(at, s.id);
  if (offset) at = writeVarint(at, offset);
  at = writeVarint(at, take);
  copyOut(sendMap(s), offset, at, take);
  if (fin) s.flags &= ~END_PENDING;
  stageReference(s, REF_DATA, offset, take, fin);
  outWritten = take;
  return at + take;
}
