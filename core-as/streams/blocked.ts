/**
 * Streams with new bytes, and the credit that the peer gives them: one without credit is blocked, and announces that
 * once (RFC 9000 §4.1).
 */
import { MESSAGE_LIMIT } from '../memory/layout';
import { push, remove as unlink } from '../memory/list';
import { at, BYTES_LIST, CONTROL_LIST, Connection, MESSAGES_LIST } from '../records/connection';
import {
  address,
  BLOCKED,
  CONTROL_LINK,
  has,
  isMessage,
  queueControl,
  RESET,
  SEND_LINK,
  SEND_STREAM_DATA_BLOCKED,
  Stream,
} from '../records/stream';
import { MIN_WINDOW, RESERVE } from './window';

/** Lists the stream among those with new bytes, if its window allows one. */
export function queueNew(c: Connection, s: Stream): void {
  if (s.sendNext >= s.sendEnd || has(s, RESET) || isBlocked(c, s)) return;
  push(at(c) + (isMessage(s) ? MESSAGES_LIST : BYTES_LIST), address(s), SEND_LINK);
}

/**
 * Returns whether the stream has bytes to send but no credit; a newly blocked stream queues STREAM_DATA_BLOCKED (RFC
 * 9000 §4.1).
 */
export function isBlocked(c: Connection, s: Stream): bool {
  if (s.sendNext < s.sendLimit || s.sendNext >= s.sendEnd) return false;
  if (has(s, BLOCKED)) return true;
  s.flags |= BLOCKED;
  s.blocked++;
  queueControl(c, s, SEND_STREAM_DATA_BLOCKED);
  return true;
}

/** Bytes that byte streams may still send: they never use the last R of MAX_DATA. */
export function byteCredit(c: Connection): u64 {
  const used = c.dataSent + MESSAGE_LIMIT;
  return c.dataSendLimit > used ? c.dataSendLimit - used : 0;
}

/**
 * The part of that for `s`: the last bytes are for streams that move, up to MIN_WINDOW after each credit of their
 * own, and the very last for those that have got some. Streams that no application reads get no credit, so they cannot
 * use up what others need (PROTOCOL.md §5.5).
 */
export function creditOf(c: Connection, s: Stream): u64 {
  const all = byteCredit(c);
  const common = beyond(all, RESERVE);
  if (!isMoving(s)) return common;
  return max(common, min(s.creditedAt > 0 ? all : beyond(all, MIN_WINDOW), MIN_WINDOW + s.creditedAt - s.sentHighest));
}

/** Returns whether the peer has given `s` credit of its own not long ago: it reads it, or the stream is new. */
export function isMoving(s: Stream): bool {
  return s.sentHighest - s.creditedAt < <u64>MIN_WINDOW;
}

/** Returns whether the connection's credit, or that of bytes to repeat, lets `s` send. */
export function hasCredit(c: Connection, s: Stream): bool {
  return s.sendNext < s.sentHighest || creditOf(c, s) > 0;
}

/** There is credit, or nothing left to send: drops a STREAM_DATA_BLOCKED that has not gone out. */
export function unblock(c: Connection, s: Stream): void {
  s.flags &= ~BLOCKED;
  s.pending &= ~SEND_STREAM_DATA_BLOCKED;
  if (s.pending == 0) unlink(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

function beyond(credit: u64, reserved: u32): u64 {
  return credit > <u64>reserved ? credit - reserved : 0;
}
