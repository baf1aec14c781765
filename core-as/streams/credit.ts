/**
 * Credit (RFC 9000 §4): what we let the peer send and what the peer lets us send, in bytes and in streams.
 *
 * Announcements are only noted here (`pending` bits); transmit writes the frame from the state at that time, so a lost
 * or overtaken announcement is never stale.
 *
 * MAX_DATA and MAX_STREAM_DATA rise when a quarter of the window was consumed, MAX_DATA in any case when less than 2 R
 * is left: a peer with a message of up to R bytes must never wait for credit that we hold back (PROTOCOL.md §5). Bytes
 * that no application reads raise MAX_DATA, too, as they arrive, as far as memory allows (window.ts).
 */
import { BYTES_IN, scarce } from '../memory/chunks';
import { MESSAGE_LIMIT } from '../memory/layout';
import { next } from '../memory/list';
import {
  Connection,
  flagged,
  ON_MESSAGES,
  ON_STREAMS,
  OUT_OF_CREDIT,
  SEND_DATA_BLOCKED,
  SEND_MAX_DATA,
  SEND_MAX_MESSAGES,
  SEND_MAX_STREAMS,
  WANTS_MESSAGES,
  WANTS_STREAMS,
} from '../records/connection';
import {
  ADAPTIVE,
  ALL_LINK,
  BLOCKED,
  DISCARD,
  has,
  isMessage,
  PEER_RESET,
  queueControl,
  RECEIVE_DONE,
  SEND_MAX_STREAM_DATA,
  SEND_STOP_SENDING,
  SEND_STREAM_DATA_BLOCKED,
  Stream,
  UNKNOWN,
  WANTS_ROOM,
} from '../records/stream';
import { byteCredit, queueNew, unblock } from './blocked';
import { offerRoom } from './buffers';
import { holdsLittle, lend, MIN_WINDOW, noteCramped, stepOf, takeBack, windowOf } from './window';

/** Smallest MAX_DATA window. */
export const MIN_DATA_WINDOW: u32 = 2 * MESSAGE_LIMIT;

/** Updates the connection's credit after bytes have arrived, whether or not anyone reads them. */
export function afterReceived(c: Connection): void {
  const left = c.dataReceiveLimit - c.dataReceived;
  if (left >= <u64>max(c.dataWindow / 2, 2 * MESSAGE_LIMIT)) return;
  lend(c);
  offer(c);
  if (isShort(c) && scarce(BYTES_IN)) noteCramped(c, true);
}

/** Updates the connection's credit after bytes were consumed. */
export function afterConsumed(c: Connection): void {
  takeBack(c);
  if (isShort(c)) lend(c);
  offer(c);
}

/** Updates the stream's credit after bytes of `s` were read. */
export function afterRead(c: Connection, s: Stream): void {
  if (isMessage(s) || s.finalSize != UNKNOWN) return;
  // Where the connection is short of credit, the peer sends on with what the stream has just got (PROTOCOL.md §5.5).
  const step = isShort(c) ? min(stepOf(s.window), MIN_WINDOW / 2) : stepOf(s.window);
  if (s.readBase + s.window - s.receiveLimit >= <u64>step) queueControl(c, s, SEND_MAX_STREAM_DATA);
}

/**
 * Raises our window of `s` to at least `bytes`, as far as allowed (window.ts); from then on it grows automatically.
 * Where unread bytes fill their memory the window stays as it began, except for a connection that holds little of them.
 */
export function raiseWindow(c: Connection, s: Stream, bytes: u32): void {
  if (isMessage(s) || has(s, DISCARD | PEER_RESET | RECEIVE_DONE)) return;
  s.flags |= ADAPTIVE;
  if (scarce(BYTES_IN) && !holdsLittle(c, BYTES_IN)) noteCramped(c, true);
  else s.window = max(s.window, windowOf(c, bytes));
  if (s.finalSize == UNKNOWN && s.readBase + s.window > s.receiveLimit) queueControl(c, s, SEND_MAX_STREAM_DATA);
}

/** One of the peer's streams has ended: its slot is free. */
export function afterPeerStream(c: Connection): void {
  c.finishedPeerStreams++;
  if (streamCreditDue(c.finishedPeerStreams, c.maxStreams, c.peerStreamLimit, c.peerStreams)) c.pending |= SEND_MAX_STREAMS;
}

export function afterPeerMessage(c: Connection): void {
  c.finishedPeerMessages++;
  if (streamCreditDue(c.finishedPeerMessages, c.maxMessages, c.peerMessageLimit, c.peerMessages)) c.pending |= SEND_MAX_MESSAGES;
}

/** Queues STOP_SENDING. */
export function requestStop(c: Connection, s: Stream, code: u64): void {
  s.stopCode = code;
  queueControl(c, s, SEND_STOP_SENDING);
}

export function onMaxStreamDataLost(c: Connection, s: Stream): void {
  if (s.finalSize == UNKNOWN && !has(s, DISCARD | RECEIVE_DONE)) queueControl(c, s, SEND_MAX_STREAM_DATA);
}

export function onStopSendingLost(c: Connection, s: Stream): void {
  if (s.finalSize == UNKNOWN && has(s, DISCARD)) requestStop(c, s, s.stopCode);
}

/** STREAM_DATA_BLOCKED with that limit was lost. */
export function onBlockedLost(c: Connection, s: Stream, limit: u64): void {
  if (has(s, BLOCKED) && s.sendLimit == limit) queueControl(c, s, SEND_STREAM_DATA_BLOCKED);
}

/**
 * Nothing may be sent: returns true when MAX_DATA blocks streams and a DATA_BLOCKED is due, once for each limit (RFC
 * 9000 §4.1).
 */
export function noteOutOfCredit(c: Connection): bool {
  if ((!c.bytesHead && !c.messagesHead) || flagged(c, OUT_OF_CREDIT)) return false;
  c.flags |= OUT_OF_CREDIT;
  c.pending |= SEND_DATA_BLOCKED;
  return true;
}

// The peer's announcements.

export function onMaxData(c: Connection, limit: u64): void {
  if (limit <= c.dataSendLimit) return;
  const wasShort = byteCredit(c) < <u64>MESSAGE_LIMIT;
  c.dataSendLimit = limit;
  c.flags &= ~OUT_OF_CREDIT;
  c.pending &= ~SEND_DATA_BLOCKED;
  if (wasShort) offerRooms(c);
}

export function onMaxStreamData(c: Connection, s: Stream, limit: u64): void {
  if (limit <= s.sendLimit) return;
  s.sendLimit = limit;
  s.creditedAt = s.sentHighest;
  unblock(c, s);
  queueNew(c, s);
  offerRoom(c, s);
}

export function onMaxStreams(c: Connection, limit: u64): void {
  const capped = <u32>min(limit, <u64>u32.MAX_VALUE);
  if (capped <= c.streamLimit) return;
  c.streamLimit = capped;
  offerStreams(c);
}

export function onMaxMessages(c: Connection, limit: u64): void {
  const capped = <u32>min(limit, <u64>u32.MAX_VALUE);
  if (capped <= c.messageLimit) return;
  c.messageLimit = capped;
  offerMessages(c);
}

/** Lets a turned-away caller of openStream try again. */
export function offerStreams(c: Connection): void {
  if (!flagged(c, WANTS_STREAMS) || c.openedStreams >= c.streamLimit) return;
  c.flags &= ~WANTS_STREAMS;
  c.events |= ON_STREAMS;
}

/** Lets a turned-away caller of sendMessage try again. */
export function offerMessages(c: Connection): void {
  if (!flagged(c, WANTS_MESSAGES)) return;
  c.flags &= ~WANTS_MESSAGES;
  c.events |= ON_MESSAGES;
}

/** Lets turned-away writers try again. */
export function offerRooms(c: Connection): void {
  for (let item = c.allHead; item; item = next(item, ALL_LINK)) {
    const s = changetype<Stream>(item);
    if (has(s, WANTS_ROOM)) offerRoom(c, s);
  }
}

/** Announces more credit of the connection if it is worth a frame. */
function offer(c: Connection): void {
  const limit = c.dataConsumed + c.dataWindow + c.dataLent;
  if (limit <= c.dataReceiveLimit) return;
  if (isShort(c) || limit - c.dataReceiveLimit >= <u64>stepOf(c.dataWindow)) c.pending |= SEND_MAX_DATA;
}

/** Returns whether the peer has credit left for less than two messages. */
function isShort(c: Connection): bool {
  return c.dataReceiveLimit - c.dataReceived < 2 * MESSAGE_LIMIT;
}

/**
 * Returns whether new stream credit is due: in halves of the capacity, or one by one when the peer has fewer than a
 * quarter left.
 */
function streamCreditDue(finished: u32, capacity: u32, announced: u32, opened: u32): bool {
  const due = finished + capacity - announced;
  return due >= max(1, capacity / 2) || (announced - opened <= capacity / 4 && due > 0);
}
