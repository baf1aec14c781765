/** Exports of one connection, by handle. A handle that `connectionOpen` did not return, or that was freed, traps. */
import { bandwidth, congestionState, pacingRate } from '../congestion/congestion';
import { close, closeReason } from '../connection/close';
import { nextEvent } from '../connection/events';
import { free, openedHandle } from '../connection/open';
import { completeReceived, receive } from '../connection/receive';
import { handleTimeout } from '../connection/timeouts';
import { nextTimer } from '../connection/timers';
import { outTransmitPath, transmit } from '../connection/transmit';
import { dequeue, enqueue, outgoingRoom, queueOf, waiting } from '../datagrams/queue';
import { varintSize } from '../frames/varint';
import { put, transfer } from '../memory/layout';
import { frameSpace } from '../packet/size';
import { arrivedOn } from '../paths/arrival';
import { Connection, flagged, OPEN, PHASE_ACKED, RESTING, ROUTED, SEND_PING, UPDATE_WANTED } from '../records/connection';
import { UNKNOWN } from '../records/path';
import { the } from '../records/slab';
import { allowSize, resetSize } from '../recovery/mtu';

export { open as connectionOpen } from '../connection/open';

export function connectionHandle(): u32 {
  return openedHandle;
}

export function connectionFree(handle: u32): void {
  free(the(handle));
}

/**
 * `size` bytes at `start` of the receive slot arrived on `path`: an index, or UNKNOWN or UNKNOWN_PORT of
 * records/path.ts. Returns 0 unless they are an authentic, new packet; else 1 + the index of their path, UNKNOWN when
 * there is no room for that path.
 */
export function connectionReceive(handle: u32, start: u32, size: u32, path: u32, now: f64): u32 {
  return receive(the(handle), start, size, path, now) ? 1 + min(<u32>arrivedOn, UNKNOWN) : 0;
}

/** Returns the number of packets written; the bits above 8 hold the index of the path that all of them go to. */
export function connectionTransmit(handle: u32, now: f64, most: u32): u32 {
  return transmit(the(handle), now, most) | (outTransmitPath << 8);
}

export function connectionNextTimeout(handle: u32): f64 {
  return nextTimer(the(handle));
}

export function connectionHandleTimeout(handle: u32, now: f64): void {
  handleTimeout(the(handle), now);
}

/** Returns the kind of the next event; stream id and value are the first two results. */
export function connectionNextEvent(handle: u32): u32 {
  return nextEvent(the(handle));
}

/** Sets or clears the route. `present`: the route id is the first 8 bytes of the transfer area. */
export function connectionSetRoute(handle: u32, present: bool): void {
  const c = the(handle);
  c.route = present ? load<u64>(transfer) : 0;
  c.flags = present ? c.flags | ROUTED : c.flags & ~ROUTED;
}

/** The connection is on another path, whose packets may have up to `ceiling` bytes: packet sizes start small again. */
export function connectionResetSize(handle: u32, ceiling: u32): void {
  resetSize(the(handle), ceiling);
}

/** Allows packets of up to `ceiling` bytes on the active path, if that is more than before. */
export function connectionAllowSize(handle: u32, ceiling: u32): void {
  allowSize(the(handle), ceiling);
}

/** Sets keep-alive; interval 0 = none. */
export function connectionSetKeepAlive(handle: u32, interval: f64, retry: f64, most: u32, now: f64): void {
  const c = the(handle);
  c.keepAliveInterval = <u32>interval;
  c.keepAliveRetry = <u32>retry;
  c.keepAliveMost = <u16>min(most, <u32>u16.MAX_VALUE);
  c.keepAliveCount = 0;
  c.keepAliveSince = max(c.keepAliveSince, now);
}

export function connectionCompleteReceived(handle: u32, now: f64): void {
  const c = the(handle);
  if (c.state == OPEN) completeReceived(c, now);
}

export function connectionPing(handle: u32): void {
  the(handle).pending |= SEND_PING;
}

/** Requests the next sending key; false when the peer has not yet confirmed the current one. */
export function connectionUpdateKey(handle: u32): bool {
  const c = the(handle);
  if (!flagged(c, PHASE_ACKED)) return false;
  c.flags |= UPDATE_WANTED;
  return true;
}

/** Closes. The reason is the first `length` bytes of the transfer area. */
export function connectionClose(handle: u32, code: f64, length: u32, now: f64): void {
  const c = the(handle);
  if (c.state == OPEN) close(c, <u64>code, transfer, length, now);
}

/** Copies the close reason to the transfer area; returns its length. */
export function connectionCloseReason(handle: u32): u32 {
  return closeReason(the(handle), transfer);
}

/**
 * Queues the first `length` bytes of the transfer area as a datagram; false when they fit no packet, the peer accepts
 * none, or there is no room. A connection that rests takes none: they would be old when it continues.
 */
export function connectionSendDatagram(handle: u32, length: u32): bool {
  const c = the(handle);
  if (c.state != OPEN || flagged(c, RESTING) || <i32>length > datagramSize(c)) return false;
  return enqueue(c, true, transfer, length);
}

/** Bytes of the largest datagram that a packet carries now and the peer accepts; -1: none. */
export function connectionDatagramSize(handle: u32): i32 {
  return datagramSize(the(handle));
}

/** Number of datagrams that can be queued now. */
export function connectionDatagramRoom(handle: u32): u32 {
  return outgoingRoom(the(handle));
}

/** Copies the oldest received datagram to the transfer area; returns its length + 1, 0 when there is none. */
export function connectionReadDatagram(handle: u32): u32 {
  const c = the(handle);
  return waiting(c, false) ? dequeue(c, false, transfer) + 1 : 0;
}

function datagramSize(c: Connection): i32 {
  if (c.peerMaxDatagram == 0) return -1;
  const space = frameSpace(c);
  return min<i32>(c.peerMaxDatagram, space - 1 - varintSize(space));
}

/** Fills the results; bindings/stats.ts names them in this order. */
export function connectionStats(handle: u32): void {
  const c = the(handle);
  put(0, c.smoothedRtt);
  put(1, c.minimumRtt);
  put(2, c.congestionWindow);
  put(3, c.bytesInFlight);
  put(4, c.packetsSent);
  put(5, c.packetsReceived);
  put(6, c.bytesSent);
  put(7, c.bytesReceived);
  put(8, c.packetSize);
  put(9, c.packetsLost);
  put(10, c.packetsDropped);
  put(11, c.datagrams ? queueOf(c, true).dropped + queueOf(c, false).dropped : 0);
  put(12, <f64>c.authenticationFailures);
  put(13, congestionState(c));
  put(14, <f64>pacingRate(c) * 1_000);
  put(15, bandwidth(c) * 1_000);
  put(16, c.datagrams ? queueOf(c, true).lost : 0);
}
