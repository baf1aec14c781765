/**
 * Exports of streams and messages. Stream ids cross the module boundary as f64: they reach 2^62 on the wire, and a
 * BigInt per call would cost more than the call. A stream that has ended is not an error: the call does nothing and its
 * result says so.
 */
import { MESSAGE_LIMIT, transfer } from '../memory/layout';
import { Connection, OPEN } from '../records/connection';
import { the } from '../records/slab';
import { canReceive, canSend, isMessage, Stream } from '../records/stream';
import { raiseWindow } from '../streams/credit';
import * as life from '../streams/lifecycle';
import { isWhole, sendMessage, takeMessage } from '../streams/messages';
import { AT_END, read, stop } from '../streams/receive';
import { finish, reset, write } from '../streams/send';
import { connectionFigures, streamFigures } from '../streams/stats';
import { find } from '../streams/table';

/** Opens a byte stream; returns its id, -1 when the peer allows no further one or no record is left. */
export function streamOpen(handle: u32): f64 {
  const c = the(handle);
  if (c.state != OPEN) return -1;
  const s = life.openStream(c);
  return changetype<usize>(s) ? <f64>s.id : -1;
}

/** Takes up to `length` bytes from the transfer area; returns how many. */
export function streamWrite(handle: u32, id: f64, length: u32): u32 {
  const c = the(handle);
  const s = byteStream(c, id);
  return changetype<usize>(s) && c.state == OPEN ? write(c, s, transfer, length) : 0;
}

export function streamFinish(handle: u32, id: f64): void {
  const c = the(handle);
  const s = byteStream(c, id);
  if (changetype<usize>(s)) finish(c, s);
}

export function streamReset(handle: u32, id: f64, code: f64): void {
  const c = the(handle);
  const s = find(c, <u64>id);
  if (changetype<usize>(s) && canSend(s)) reset(c, s, <u64>code);
}

export function streamStop(handle: u32, id: f64, code: f64): void {
  const c = the(handle);
  const s = find(c, <u64>id);
  if (changetype<usize>(s) && canReceive(s)) stop(c, s, <u64>code);
}

/**
 * Copies up to `most` bytes to the transfer area; returns how many, 0 = none yet, -1 = the end was reached (or the
 * stream is gone).
 */
export function streamRead(handle: u32, id: f64, most: u32): i32 {
  const c = the(handle);
  const s = byteStream(c, id);
  if (!changetype<usize>(s)) return -1;
  const length = read(c, s, transfer, most);
  return length == AT_END ? -1 : <i32>length;
}

/** Raises our receive window of the stream to at least `bytes`. */
export function streamRaiseWindow(handle: u32, id: f64, bytes: u32): void {
  const c = the(handle);
  const s = byteStream(c, id);
  if (changetype<usize>(s)) raiseWindow(c, s, bytes);
}

/** Sets the stream's weight among byte streams, 1 … 256. */
export function streamSetWeight(handle: u32, id: f64, weight: u32): void {
  const s = byteStream(the(handle), id);
  if (changetype<usize>(s)) s.weight = <u8>(min(max(weight, 1), 256) - 1);
}

/** Fills the results with the statistics of a byte stream; false when it is gone. */
export function streamStats(handle: u32, id: f64): bool {
  const s = byteStream(the(handle), id);
  if (!changetype<usize>(s)) return false;
  streamFigures(s);
  return true;
}

/** The same for all streams of the connection together. */
export function connectionStreamStats(handle: u32): void {
  connectionFigures(the(handle));
}

/** Queues `length` bytes of the transfer area as a message; returns its id, -1 when there is no room yet. */
export function messageSend(handle: u32, length: u32): f64 {
  const c = the(handle);
  if (c.state != OPEN || length > MESSAGE_LIMIT) return -1;
  const s = sendMessage(c, transfer, length);
  return changetype<usize>(s) ? <f64>s.id : -1;
}

/**
 * Copies a complete message to the transfer area and frees it; returns its length, -1 when there is no such message.
 */
export function messageRead(handle: u32, id: f64): i32 {
  const c = the(handle);
  const s = find(c, <u64>id);
  return changetype<usize>(s) && isWhole(s) ? <i32>takeMessage(c, s, transfer) : -1;
}

function byteStream(c: Connection, id: f64): Stream {
  const s = find(c, <u64>id);
  return changetype<usize>(s) && !isMessage(s) ? s : changetype<Stream>(0);
}
