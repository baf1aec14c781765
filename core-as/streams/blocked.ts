/** Which streams with new bytes may send them: one without credit of the peer is blocked, and says so once (RFC 9000 §4.1). */
import { push, remove as unlink } from '../memory/list';
import { at, BYTES_LIST, CONTROL_LIST, Connection, MESSAGES_LIST } from '../records/connection';
import { address, BLOCKED, CONTROL_LINK, has, isMessage, RESET, SEND_LINK, SEND_STREAM_DATA_BLOCKED, Stream } from '../records/stream';

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
