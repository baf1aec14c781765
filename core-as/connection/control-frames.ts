/** Control frames that we write (RFC 9000 §19). Each is built from state when it goes out; none is stored. */
import {
  DATA_BLOCKED,
  MAX_DATA,
  MAX_MESSAGES,
  MAX_STREAM_DATA,
  MAX_STREAMS,
  PING,
  RESET_STREAM,
  STOP_SENDING,
  STREAM_DATA_BLOCKED,
} from '../frames/types';
import { writeVarint } from '../frames/varint';
import { head, remove } from '../memory/list';
import { canStage, stageControl, stageEliciting, stageReference } from '../packet/staging';
import { fillNewIds } from '../paths/local-ids';
import { fillRetirements } from '../paths/retirement';
import {
  at,
  CONTROL_LIST,
  Connection,
  flagged,
  OUT_OF_CREDIT,
  SEND_DATA_BLOCKED,
  SEND_IDS,
  SEND_MAX_DATA,
  SEND_MAX_MESSAGES,
  SEND_MAX_STREAMS,
  SEND_PING,
} from '../records/connection';
import { REF_MAX_STREAM_DATA, REF_RESET_STREAM, REF_STOP_SENDING, REF_STREAM_DATA_BLOCKED } from '../records/flight';
import {
  address,
  CONTROL_LINK,
  SEND_MAX_STREAM_DATA,
  SEND_RESET_STREAM,
  SEND_STOP_SENDING,
  SEND_STREAM_DATA_BLOCKED,
  Stream,
} from '../records/stream';
import { tuneConnection, tuneStream } from '../streams/window';

/** No control frame is longer: a type and three integers. */
const LONGEST: usize = 25;

/** Writes pending frames from `to` up to `limit`; returns the address after the last. */
export function fillControl(c: Connection, to: usize, limit: usize, now: f64): usize {
  let end = to;
  if (c.pending & SEND_MAX_DATA && end + LONGEST <= limit) end = maxData(c, end, now);
  if (c.pending & SEND_MAX_STREAMS && end + LONGEST <= limit) end = maxStreams(c, end);
  if (c.pending & SEND_MAX_MESSAGES && end + LONGEST <= limit) end = maxMessages(c, end);
  if (c.pending & SEND_DATA_BLOCKED && end + LONGEST <= limit) end = dataBlocked(c, end);
  if (c.pending & SEND_IDS) end = idFrames(c, end, limit);
  return fillStreamControl(c, end, limit, now);
}

/**
 * Writes those of streams; called again after stream bytes, which may have been the last that the peer's window
 * allows.
 */
export function fillStreamControl(c: Connection, to: usize, limit: usize, now: f64): usize {
  let end = to;
  const list = at(c) + CONTROL_LIST;
  while (head(list) && end + LONGEST <= limit && canStage()) {
    const s = changetype<Stream>(head(list));
    end = streamControl(c, s, end, now);
    if (s.pending == 0) remove(list, address(s), CONTROL_LINK);
  }
  return end;
}

/** Writes a PING if one is pending. */
export function fillPing(c: Connection, to: usize, limit: usize): usize {
  if (!(c.pending & SEND_PING) || to >= limit) return to;
  c.pending &= ~SEND_PING;
  stageEliciting();
  return writeVarint(to, PING);
}

function maxData(c: Connection, to: usize, now: f64): usize {
  tuneConnection(c, now);
  c.pending &= ~SEND_MAX_DATA;
  c.dataReceiveLimit = max(c.dataReceiveLimit, c.dataConsumed + c.dataWindow + c.dataLent);
  stageControl(SEND_MAX_DATA);
  return writeVarint(writeVarint(to, MAX_DATA), c.dataReceiveLimit);
}

function maxStreams(c: Connection, to: usize): usize {
  c.pending &= ~SEND_MAX_STREAMS;
  c.peerStreamLimit = max(c.peerStreamLimit, c.finishedPeerStreams + c.maxStreams);
  stageControl(SEND_MAX_STREAMS);
  return writeVarint(writeVarint(to, MAX_STREAMS), c.peerStreamLimit);
}

function maxMessages(c: Connection, to: usize): usize {
  c.pending &= ~SEND_MAX_MESSAGES;
  c.peerMessageLimit = max(c.peerMessageLimit, c.finishedPeerMessages + c.maxMessages);
  stageControl(SEND_MAX_MESSAGES);
  return writeVarint(writeVarint(to, MAX_MESSAGES), c.peerMessageLimit);
}

/** Writes DATA_BLOCKED; nothing if a lost one is due but credit has arrived. */
function dataBlocked(c: Connection, to: usize): usize {
  c.pending &= ~SEND_DATA_BLOCKED;
  if (!flagged(c, OUT_OF_CREDIT)) return to;
  stageControl(SEND_DATA_BLOCKED);
  return writeVarint(writeVarint(to, DATA_BLOCKED), c.dataSendLimit);
}

/** Writes NEW_CONNECTION_ID and RETIRE_CONNECTION_ID into the packet that gets the next number. */
function idFrames(c: Connection, to: usize, limit: usize): usize {
  c.pending &= ~SEND_IDS;
  if (!c.ids) return to;
  const end = fillRetirements(c, fillNewIds(c, to, limit, c.nextNumber), limit, c.nextNumber);
  if (end > to) stageControl(SEND_IDS);
  return end;
}

/** Writes one pending frame of a stream. */
function streamControl(c: Connection, s: Stream, to: usize, now: f64): usize {
  if (s.pending & SEND_RESET_STREAM) {
    s.pending &= ~SEND_RESET_STREAM;
    stageReference(s, REF_RESET_STREAM, 0, 0, false);
    return writeVarint(writeVarint(writeVarint(writeVarint(to, RESET_STREAM), s.id), s.resetCode), s.sentHighest);
  }
  if (s.pending & SEND_STOP_SENDING) {
    s.pending &= ~SEND_STOP_SENDING;
    stageReference(s, REF_STOP_SENDING, 0, 0, false);
    return writeVarint(writeVarint(writeVarint(to, STOP_SENDING), s.id), s.stopCode);
  }
  if (s.pending & SEND_STREAM_DATA_BLOCKED) {
    s.pending &= ~SEND_STREAM_DATA_BLOCKED;
    stageReference(s, REF_STREAM_DATA_BLOCKED, s.sendLimit, 0, false);
    return writeVarint(writeVarint(writeVarint(to, STREAM_DATA_BLOCKED), s.id), s.sendLimit);
  }
  s.pending &= ~SEND_MAX_STREAM_DATA;
  tuneStream(c, s, now);
  s.receiveLimit = max(s.receiveLimit, s.readBase + s.window);
  stageReference(s, REF_MAX_STREAM_DATA, 0, 0, false);
  return writeVarint(writeVarint(writeVarint(to, MAX_STREAM_DATA), s.id), s.receiveLimit);
}
