/** Streams with new bytes: one without credit from the peer is blocked, and announces that once (RFC 9000 §4.1). */
import { push, remove as unlink } from '../memory/list';
import { at, BYTES_LIST, CONTROL_LIST, Connection, MESSAGES_LIST } from '../records/connection';
import { address, BLOCKED, CONTROL_LINK, has, isMessage, RESET, SEND_LINK, SEND_STREAM_DATA_BLOCKED, Stream } from '../records/stream';

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
  announceBlocked(c, s);
  return true;
}

/** Queues STREAM_DATA_BLOCKED. */
export function announceBlocked(c: Connection, s: Stream): void {
  s.pending |= SEND_STREAM_DATA_BLOCKED;
  push(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}

/** There is credit, or nothing left to send: drops a STREAM_DATA_BLOCKED that has not gone out. */
export function unblock(c: Connection, s: Stream): void {
  s.flags &= ~BLOCKED;
  s.pending &= ~SEND_STREAM_DATA_BLOCKED;
  if (s.pending == 0) unlink(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
}
