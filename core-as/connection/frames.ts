/**
 * The frames of an authenticated packet, type by type (RFC 9000 §12.4, §19).
 *
 * Each branch reads its whole frame first and checks `failed` before it acts.
 */
import { ERROR_FRAME_ENCODING_ERROR, ERROR_NO_ERROR, ERROR_PROTOCOL_VIOLATION } from '../codes.generated';
import { enqueue } from '../datagrams/queue';
import {
  ACK,
  ACK_ECN,
  APPLICATION_CLOSE,
  CONNECTION_CLOSE,
  DATAGRAM,
  DATAGRAM_LEN,
  MAX_DATA,
  MAX_MESSAGES,
  MAX_STREAM_DATA,
  MAX_STREAMS,
  MESSAGES_BLOCKED,
  NEW_CONNECTION_ID,
  PADDING,
  PATH_CHALLENGE,
  PATH_RESPONSE,
  PING,
  RESET_STREAM,
  RETIRE_CONNECTION_ID,
  STOP_SENDING,
  STREAM,
  STREAM_DATA_BLOCKED,
  STREAM_FIN,
  STREAM_LAST,
  STREAM_LEN,
  STREAM_OFF,
  STREAMS_BLOCKED,
} from '../frames/types';
import { atEnd, cursor, end, failed, readByte, readBytes, readVarint, startReading } from '../frames/varint';
import { arrivedOn, arrivedSize } from '../paths/arrival';
import { onRetire } from '../paths/local-ids';
import { onChallenge } from '../paths/peer-challenge';
import { newIdFrame } from '../paths/remote-ids';
import { onResponse } from '../paths/validation';
import { Connection, OPEN } from '../records/connection';
import { has, isMessage, ON_STOPPED, RESET, raiseEvent, SEND_DONE } from '../records/stream';
import { receiveAck } from '../recovery/acknowledge';
import { onMaxData, onMaxMessages, onMaxStreamData, onMaxStreams } from '../streams/credit';
import { locate, outStream } from '../streams/lifecycle';
import { onData, onPeerReset } from '../streams/receive';
import { reset } from '../streams/send';
import { onPeerClose } from './close';

/** RFC 9000 §4.6 */
const MAX_STREAM_COUNT: u64 = 1 << 60;

/** Whether the last packet is ack-eliciting. */
export let outElicited: bool = false;
/** Whether it had a non-probing frame (RFC 9000 §9.1): the sender uses the path it came in on. */
export let outNonProbing: bool = false;
let datagrams: bool = false;

/** Processes all frames except DATAGRAM. Returns a transport error code, REFUSED, or 0. */
export function receiveFrames(c: Connection, from: usize, to: usize, now: f64): u32 {
  outElicited = false;
  outNonProbing = false;
  datagrams = false;
  if (from >= to) return ERROR_PROTOCOL_VIOLATION;
  startReading(from, to);
  while (!atEnd()) {
    const type = readVarint();
    if (type != PADDING && type != ACK && type != ACK_ECN && type != CONNECTION_CLOSE && type != APPLICATION_CLOSE) outElicited = true;
    if (type != PADDING && type != PATH_CHALLENGE && type != PATH_RESPONSE && type != NEW_CONNECTION_ID) outNonProbing = true;
    const error = receiveFrame(c, type, now);
    if (error) return error;
    if (failed) return ERROR_FRAME_ENCODING_ERROR;
  }
  return ERROR_NO_ERROR;
}

/** Queues the DATAGRAM frames of a packet that passed `receiveFrames`. */
export function deliverDatagrams(c: Connection, from: usize, to: usize): void {
  if (!datagrams) return;
  startReading(from, to);
  while (!atEnd()) {
    const type = readVarint();
    if (type == DATAGRAM || type == DATAGRAM_LEN) {
      const length = type == DATAGRAM_LEN ? readVarint() : <u64>(end - cursor);
      enqueue(c, false, readBytes(length), <u32>length);
    } else skipFrame(type);
  }
}

function receiveFrame(c: Connection, type: u64, now: f64): u32 {
  const closes = type == CONNECTION_CLOSE || type == APPLICATION_CLOSE;
  // While closing, or after an earlier frame of this packet closed, only the peer's close still matters.
  if (c.state != OPEN && !closes) return skipFrame(type) ? ERROR_NO_ERROR : ERROR_FRAME_ENCODING_ERROR;
  if (type >= STREAM && type <= STREAM_LAST) return streamFrame(c, type);
  if (type == ACK || type == ACK_ECN) return receiveAck(c, type == ACK_ECN, now);
  if (type == PADDING || type == PING) return ERROR_NO_ERROR;
  if (type == MAX_DATA) {
    const limit = readVarint();
    if (!failed) onMaxData(c, limit);
    return ERROR_NO_ERROR;
  }
  if (type == MAX_STREAM_DATA) return maxStreamDataFrame(c);
  if (type == MAX_STREAMS || type == MAX_MESSAGES) return maxStreamsFrame(c, type == MAX_MESSAGES);
  if (type == RESET_STREAM) return resetFrame(c);
  if (type == STOP_SENDING) return stopFrame(c);
  if (type == DATAGRAM || type == DATAGRAM_LEN) return datagramFrame(c, type);
  if (closes) return closeFrame(c, type, now);
  if (type == STREAM_DATA_BLOCKED) return blockedFrame(c);
  if (type == PATH_CHALLENGE || type == PATH_RESPONSE) return pathFrame(c, type == PATH_CHALLENGE, now);
  if (type == NEW_CONNECTION_ID) return newIdFrame(c);
  if (type == RETIRE_CONNECTION_ID) return retireFrame(c);
  if (type == STREAMS_BLOCKED || type == MESSAGES_BLOCKED) return streamsBlockedFrame();
  return skipFrame(type) ? ERROR_NO_ERROR : ERROR_FRAME_ENCODING_ERROR;
}

function streamFrame(c: Connection, type: u64): u32 {
  const id = readVarint();
  const offset = type & STREAM_OFF ? readVarint() : 0;
  const length = type & STREAM_LEN ? readVarint() : <u64>(end - cursor);
  const data = readBytes(length);
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  const error = locate(c, id, true);
  if (error || !changetype<usize>(outStream)) return error;
  return onData(c, outStream, offset, <u32>length, (type & STREAM_FIN) != 0, data);
}

function resetFrame(c: Connection): u32 {
  const id = readVarint();
  const code = readVarint();
  const finalSize = readVarint();
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  const error = locate(c, id, true);
  if (error || !changetype<usize>(outStream)) return error;
  return onPeerReset(c, outStream, code, finalSize);
}

/** STOP_SENDING, answered by RESET_STREAM with the same code (RFC 9000 §3.5). */
function stopFrame(c: Connection): u32 {
  const id = readVarint();
  const code = readVarint();
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  const error = locate(c, id, false);
  if (error || !changetype<usize>(outStream)) return error;
  const s = outStream;
  if (has(s, RESET | SEND_DONE)) return ERROR_NO_ERROR;
  s.peerStopCode = code;
  if (!isMessage(s)) raiseEvent(c, s, ON_STOPPED);
  reset(c, s, code);
  return ERROR_NO_ERROR;
}

function maxStreamDataFrame(c: Connection): u32 {
  const id = readVarint();
  const limit = readVarint();
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  const error = locate(c, id, false);
  if (error || !changetype<usize>(outStream)) return error;
  onMaxStreamData(c, outStream, limit);
  return ERROR_NO_ERROR;
}

function maxStreamsFrame(c: Connection, messages: bool): u32 {
  const limit = readVarint();
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  if (limit > MAX_STREAM_COUNT) return ERROR_FRAME_ENCODING_ERROR;
  if (messages) onMaxMessages(c, limit);
  else onMaxStreams(c, limit);
  return ERROR_NO_ERROR;
}

function datagramFrame(c: Connection, type: u64): u32 {
  const length = type == DATAGRAM_LEN ? readVarint() : <u64>(end - cursor);
  readBytes(length);
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  if (length > <u64>c.maxDatagram || c.maxDatagram == 0) return ERROR_PROTOCOL_VIOLATION;
  datagrams = true;
  return ERROR_NO_ERROR;
}

function closeFrame(c: Connection, type: u64, now: f64): u32 {
  const code = readVarint();
  if (type == CONNECTION_CLOSE) readVarint();
  const length = readVarint();
  const reason = readBytes(length);
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  onPeerClose(c, code, reason, <u32>length, now);
  return ERROR_NO_ERROR;
}

/** The peer waits for credit. Only the id is checked: our credit follows what the application reads. */
function blockedFrame(c: Connection): u32 {
  const id = readVarint();
  readVarint();
  return failed ? ERROR_FRAME_ENCODING_ERROR : locate(c, id, true);
}

/** Likewise: slots are freed as streams end. */
function streamsBlockedFrame(): u32 {
  return readVarint() > MAX_STREAM_COUNT ? ERROR_FRAME_ENCODING_ERROR : ERROR_NO_ERROR;
}

function pathFrame(c: Connection, isChallenge: bool, now: f64): u32 {
  const data = readBytes(8);
  if (failed) return ERROR_FRAME_ENCODING_ERROR;
  if (isChallenge) onChallenge(c, load<u64>(data), arrivedOn, arrivedSize, now);
  else onResponse(c, load<u64>(data), now);
  return ERROR_NO_ERROR;
}

function retireFrame(c: Connection): u32 {
  const sequence = readVarint();
  return failed ? ERROR_FRAME_ENCODING_ERROR : onRetire(c, sequence);
}

/** Reads a frame without acting on it; false for an unknown type. */
function skipFrame(type: u64): bool {
  if (type >= STREAM && type <= STREAM_LAST) {
    readVarint();
    if (type & STREAM_OFF) readVarint();
    readBytes(type & STREAM_LEN ? readVarint() : <u64>(end - cursor));
  } else if (type == ACK || type == ACK_ECN) {
    skipAck(type == ACK_ECN);
  } else if (type == PADDING || type == PING) {
    return true;
  } else if (type == DATAGRAM || type == DATAGRAM_LEN) {
    readBytes(type == DATAGRAM_LEN ? readVarint() : <u64>(end - cursor));
  } else if (type == NEW_CONNECTION_ID) {
    readVarint();
    readVarint();
    readBytes(readByte());
    readBytes(16);
  } else if (type == PATH_CHALLENGE || type == PATH_RESPONSE) {
    readBytes(8);
  } else {
    const integers = integersOf(type);
    for (let i = 0; i < integers; i++) readVarint();
    return integers > 0;
  }
  return true;
}

/** Integers after the type, of frames that consist of nothing else; 0 for an unknown type. */
function integersOf(type: u64): i32 {
  if (type == RESET_STREAM) return 3;
  if (type == STOP_SENDING || type == MAX_STREAM_DATA || type == STREAM_DATA_BLOCKED) return 2;
  if ((type >= MAX_DATA && type <= MESSAGES_BLOCKED) || type == RETIRE_CONNECTION_ID) return 1;
  return 0;
}

function skipAck(ecn: bool): void {
  readVarint();
  readVarint();
  const more = readVarint();
  readVarint();
  for (let i: u64 = 0; i < more && !failed; i++) {
    readVarint();
    readVarint();
  }
  if (ecn) for (let i = 0; i < 3; i++) readVarint();
}
