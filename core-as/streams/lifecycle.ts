/**
 * Lifecycle of a stream record: which end may open which id, and when a record is given back.
 *
 * Opening an id opens all lower ids of its kind (RFC 9000 §2.1), so an id below the count without a record has ended. A
 * record is given back when both directions are done and the caller has fetched its events.
 */
import { ERROR_NO_ERROR, ERROR_STREAM_LIMIT_ERROR, ERROR_STREAM_STATE_ERROR } from '../codes.generated';
import { REFUSED } from '../frames/types';
import { remove as unlink } from '../memory/list';
import { at, CONTROL_LIST, Connection, EVENTS_LIST, flagged, INITIATOR, STARVED, WANTS_STREAMS } from '../records/connection';
import {
  address,
  CONTROL_LINK,
  canReceive,
  canSend,
  EVENT_LINK,
  has,
  isMessage,
  MESSAGE,
  ON_OPENED,
  OWN,
  RECEIVE_DONE,
  raiseEvent,
  SEND_DONE,
  Stream,
} from '../records/stream';
import { releaseReceiveBuffers, releaseSendBuffers } from './buffers';
import { afterPeerMessage, afterPeerStream, offerMessages } from './credit';
import { addStream, find, removeStream } from './table';

/** The stream that `locate` found; null (0) when it has ended. */
export let outStream: Stream = changetype<Stream>(0);

/** Opens a byte stream; null (0) when the peer allows no further one or no record is left. */
export function openStream(c: Connection): Stream {
  if (c.openedStreams < c.streamLimit) {
    const s = addStream(c, idOf(c, c.openedStreams, OWN), OWN);
    if (changetype<usize>(s)) {
      c.openedStreams++;
      return s;
    }
    c.flags |= STARVED;
  }
  c.flags |= WANTS_STREAMS;
  return changetype<Stream>(0);
}

/**
 * Finds the stream that a frame of the peer refers to, opening it and all below if it is new; `receiving`: the frame is
 * about the direction towards us. Sets `outStream`; returns a transport error code or REFUSED.
 */
export function locate(c: Connection, id: u64, receiving: bool): u32 {
  const own = (id & 1) == (flagged(c, INITIATOR) ? 0 : 1);
  const message = (id & 2) != 0;
  const index = id >> 2;
  outStream = changetype<Stream>(0);
  if (message && own == receiving) return ERROR_STREAM_STATE_ERROR;
  if (own) {
    if (index >= <u64>(message ? c.openedMessages : c.openedStreams)) return ERROR_STREAM_STATE_ERROR;
  } else {
    const error = openPeers(c, index, message);
    if (error) return error;
  }
  outStream = find(c, id);
  return ERROR_NO_ERROR;
}

/** Gives the record back if it is no longer needed. */
export function maybeFree(c: Connection, s: Stream): void {
  if (s.events != 0 || s.connection == 0) return;
  if (canSend(s) && !has(s, SEND_DONE)) return;
  if (canReceive(s) && !has(s, RECEIVE_DONE)) return;
  freeStream(c, s);
  if (has(s, OWN)) {
    if (isMessage(s)) offerMessages(c);
  } else if (isMessage(s)) afterPeerMessage(c);
  else afterPeerStream(c);
}

/** Gives the record back, whatever its state. */
export function freeStream(c: Connection, s: Stream): void {
  releaseSendBuffers(c, s);
  releaseReceiveBuffers(s);
  unlink(at(c) + CONTROL_LIST, address(s), CONTROL_LINK);
  unlink(at(c) + EVENTS_LIST, address(s), EVENT_LINK);
  removeStream(c, s);
}

/** Stream id of the `index`-th stream with OWN and MESSAGE of `flags`. */
export function idOf(c: Connection, index: u32, flags: u32): u64 {
  const ours = (flags & OWN) != 0;
  const opener: u64 = ours == flagged(c, INITIATOR) ? 0 : 1;
  return ((<u64>index) << 2) | (flags & MESSAGE ? 2 : 0) | opener;
}

function openPeers(c: Connection, index: u64, message: bool): u32 {
  if (index >= <u64>(message ? c.peerMessageLimit : c.peerStreamLimit)) return ERROR_STREAM_LIMIT_ERROR;
  while (<u64>(message ? c.peerMessages : c.peerStreams) <= index) {
    const flags = message ? MESSAGE : 0;
    const s = addStream(c, idOf(c, message ? c.peerMessages : c.peerStreams, flags), flags);
    if (!changetype<usize>(s)) return REFUSED;
    if (message) {
      c.peerMessages++;
    } else {
      c.peerStreams++;
      raiseEvent(c, s, ON_OPENED);
    }
  }
  return ERROR_NO_ERROR;
}
