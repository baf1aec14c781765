/**
 * Stream buffers in both directions: how much may wait in them, and when they are freed.
 *
 * The bytes that a byte stream accepts from its application are bounded by the congestion window, by the peer's credit,
 * and by the connection's share of the pool.
 */
import { MAP_WINDOW, releaseAll } from '../memory/chunk-map';
import { BYTES_IN, BYTES_OUT, budgetBytes, MESSAGES_IN, MESSAGES_OUT, nearlyUsedUp, scarce, shareOfRest } from '../memory/chunks';
import { connectionCount } from '../memory/layout';
import { remove as unlink } from '../memory/list';
import { clear } from '../memory/range-set';
import { at, BYTES_LIST, Connection, LOST_LIST, MESSAGES_LIST } from '../records/connection';
import { connectionsOpen } from '../records/slab';
import {
  ackedSet,
  address,
  gapSet,
  has,
  isMessage,
  LOST_LINK,
  lostSet,
  ON_WRITABLE,
  RESET,
  raiseEvent,
  receiveMap,
  SEND_LINK,
  Stream,
  sendMap,
  WANTS_ROOM,
} from '../records/stream';
import { byteCredit, creditOf, isMoving } from './blocked';
import { MIN_WINDOW } from './window';

/**
 * Our constants: least and most bytes buffered per byte stream; in between, four times the congestion window: where
 * packets are lost, bytes that wait for a second retransmission span three round trips and more.
 */
const MIN_BUFFER: u32 = 65_536;
const MAX_BUFFER: u32 = MAP_WINDOW - 1_024;
/**
 * Our constants: bytes accepted beyond the peer's credit, of a stream and of a connection, so that data is ready when
 * more credit comes.
 */
const AHEAD: u64 = 16_384;
const ALL_AHEAD: u64 = 262_144;
/**
 * Our constant: bytes that a stream may buffer whatever other streams of its connection hold, unless other connections
 * need the room; where there is much, one that the peer reads may buffer as much as it may send (MIN_WINDOW).
 */
const MIN_ROOM: u32 = 4_096;
/**
 * Our constant: a turned-away application is offered room when this many bytes fit, or a quarter of the buffer limit.
 */
const WORTH_OFFERING: u32 = 131_072;

/** Raises the event for a turned-away writer that would be served now. */
export function offerRoom(c: Connection, s: Stream): void {
  if (!has(s, WANTS_ROOM)) return;
  if (bufferedOf(s) > 0 && roomOf(c, s) < min(min(bufferLimit(c, s), connectionLimit(c)) / 4, WORTH_OFFERING)) return;
  s.flags &= ~WANTS_ROOM;
  raiseEvent(c, s, ON_WRITABLE);
}

/** Frees the bytes waiting to be sent and removes the stream from every sending list. */
export function releaseSendBuffers(c: Connection, s: Stream): void {
  releaseAll(sendMap(s), sendBudget(s));
  if (!isMessage(s) && !has(s, RESET)) c.buffered -= bufferedOf(s);
  clear(ackedSet(s));
  clear(lostSet(s));
  unlink(at(c) + LOST_LIST, address(s), LOST_LINK);
  unlink(at(c) + (isMessage(s) ? MESSAGES_LIST : BYTES_LIST), address(s), SEND_LINK);
}

/** Bytes the application may write now. */
export function roomOf(c: Connection, s: Stream): u32 {
  const buffered = bufferedOf(s);
  const limit = bufferLimit(c, s);
  const own = limit > buffered ? limit - buffered : 0;
  const all = connectionLimit(c);
  const shared = all > c.buffered ? all - c.buffered : 0;
  const most = s.creditedAt > 0 && isMoving(s) && !scarce(BYTES_OUT) ? MIN_WINDOW : MIN_ROOM;
  const least = most > buffered && mayHaveLeast(c, all) ? most - buffered : 0;
  return min(own, max(shared, least));
}

/**
 * Returns whether a stream of a connection that may hold `all` has its least room: if other connections need room, many
 * such streams together may exceed the limit by a quarter.
 */
function mayHaveLeast(c: Connection, all: u32): bool {
  if (connectionsOpen == 1 || !scarce(BYTES_OUT)) return true;
  return !nearlyUsedUp(BYTES_OUT) && c.buffered < all + all / 4;
}

/** Bytes written and not acknowledged; 0 after a reset of our direction. */
export function bufferedOf(s: Stream): u32 {
  return has(s, RESET) ? 0 : <u32>(s.sendEnd - s.sendBase);
}

/** Most bytes that may be buffered for the stream. */
function bufferLimit(c: Connection, s: Stream): u32 {
  const path = min(max(MIN_BUFFER, c.congestionWindow * 4), MAX_BUFFER);
  const credit = min(s.sendLimit - s.sendBase, s.sendNext - s.sendBase + creditOf(c, s)) + AHEAD;
  return <u32>min(<u64>path, credit);
}

/**
 * Most bytes that may be buffered for all byte streams of the connection: no more than are on their way or may go out
 * soon, so that streams which no application reads do not use up the room of others; its share when room is scarce and
 * there are other connections.
 */
function connectionLimit(c: Connection): u32 {
  const useful = <u64>c.bytesInFlight + byteCredit(c) + ALL_AHEAD;
  return <u32>min(useful, <u64>shareOfRoom());
}

function shareOfRoom(): u32 {
  const budget = <u32>min(budgetBytes(BYTES_OUT), <u64>i32.MAX_VALUE);
  if (connectionsOpen == 1 || !scarce(BYTES_OUT)) return (budget / 4) * 3;
  return <u32>min(shareOfRest(BYTES_OUT, connectionCount), <u64>budget);
}

/** Budget for chunks of bytes to send. */
export function sendBudget(s: Stream): u32 {
  return isMessage(s) ? MESSAGES_OUT : BYTES_OUT;
}

export function releaseReceiveBuffers(s: Stream): void {
  releaseAll(receiveMap(s), receiveBudget(s));
  clear(gapSet(s));
}

/** Budget for chunks of received bytes. */
export function receiveBudget(s: Stream): u32 {
  return isMessage(s) ? MESSAGES_IN : BYTES_IN;
}
