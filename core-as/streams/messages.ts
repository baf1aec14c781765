/**
 * Messages (PROTOCOL.md §5): one unidirectional stream each, at most R = 66,560 bytes, delivered whole and in any
 * order.
 *
 * A message takes an id when it is queued and its bytes wait in the pool; the scheduler starts messages in id order.
 * Credit and count return to the peer when the application takes a message.
 */
import { copyIn, copyOut } from '../memory/chunk-map';
import { MESSAGES_OUT, scarce } from '../memory/chunks';
import { push } from '../memory/list';
import { at, Connection, MESSAGES_LIST, STARVED, WANTS_MESSAGES } from '../records/connection';
import {
  address,
  END_PENDING,
  ENDED,
  has,
  isMessage,
  MESSAGE,
  ON_MESSAGE,
  OWN,
  RECEIVE_DONE,
  receiveMap,
  SEND_LINK,
  Stream,
  sendMap,
} from '../records/stream';
import { afterConsumed } from './credit';
import { freeStream, idOf, maybeFree } from './lifecycle';
import { addStream, holdsOwnMessage } from './table';

/** Queues a message of `length` bytes; null (0) when the peer's count, the records or the chunks are used up. */
export function sendMessage(c: Connection, source: usize, length: u32): Stream {
  if (c.openedMessages >= c.messageLimit) return turnAway(c, 0);
  // A peer that takes nothing must not block our messages to others.
  if (scarce(MESSAGES_OUT) && holdsOwnMessage(c)) return turnAway(c, STARVED);
  const s = addStream(c, idOf(c, c.openedMessages, OWN | MESSAGE), OWN | MESSAGE);
  if (!changetype<usize>(s)) return turnAway(c, STARVED);
  if (copyIn(sendMap(s), 0, source, length, MESSAGES_OUT) < length) {
    freeStream(c, s);
    return turnAway(c, STARVED);
  }
  c.openedMessages++;
  s.sendEnd = length;
  s.flags |= ENDED | END_PENDING;
  push(at(c) + MESSAGES_LIST, address(s), SEND_LINK);
  return s;
}

/** Copies a complete message to `target` and releases its record, credit and slot. Returns its length. */
export function takeMessage(c: Connection, s: Stream, target: usize): u32 {
  const length = <u32>s.finalSize;
  copyOut(receiveMap(s), 0, target, length);
  c.dataConsumed += length;
  afterConsumed(c);
  s.readBase = length;
  s.flags |= RECEIVE_DONE;
  s.events &= ~ON_MESSAGE;
  maybeFree(c, s);
  return length;
}

/** Returns whether `s` is a complete message of the peer. */
export function isWhole(s: Stream): bool {
  return isMessage(s) && !has(s, OWN | RECEIVE_DONE) && s.contiguous == s.finalSize;
}

function turnAway(c: Connection, why: u32): Stream {
  c.flags |= WANTS_MESSAGES | why;
  return changetype<Stream>(0);
}
