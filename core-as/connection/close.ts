/**
 * Closing (RFC 9000 §10).
 *
 *   we close      CLOSING: one CONNECTION_CLOSE, again for the 1st, 2nd, 4th, 8th … packet that still arrives; 3 PTO
 *   peer closes   DRAINING: nothing goes out; 3 PTO
 *   timeout       at once
 *   then          DRAINED
 *
 * Events for the caller: CLOSED with the code (immediately if the peer closed or a violation was found here, at the end
 * of the closing period if the caller closed), TIMED_OUT, and DRAINED as the last event.
 */
import { releaseModel } from '../congestion/model';
import { APPLICATION_CLOSE, CONNECTION_CLOSE } from '../frames/types';
import { writeVarint } from '../frames/varint';
import { BOOKKEEPING, releaseChunk, takeClearChunk } from '../memory/chunks';
import { CLOSE_DUE, CLOSING, Connection, DRAINED, DRAINING, ON_CLOSED, ON_DRAINED, ON_TIMED_OUT, OPEN } from '../records/connection';
import { endFlight } from '../records/flight';
import { probeTimeout } from '../records/rtt';

/** Most bytes of a reason that are kept and sent. */
export const MAX_REASON: u32 = 512;

/** Fields of the chunk of a connection that closes. */
@unmanaged
class Closure {
  code: u64;
  /** Packets received since we closed. */
  received: u32;
  reasonLength: u32;
  frameType: u32;
  /** 1: the caller closed. */
  ours: u32;
}
const REASON_AT: usize = offsetof<Closure>();

/** Closes on behalf of the application. */
export function close(c: Connection, code: u64, reason: usize, reasonLength: u32, now: f64): void {
  begin(c, CLOSING, APPLICATION_CLOSE, code, reason, reasonLength, now);
  if (c.closing) closingOf(c).ours = 1;
}

/** Closes with a transport error: an authenticated packet broke a rule. */
export function closeOnViolation(c: Connection, error: u32, now: f64): void {
  if (c.state != OPEN) return;
  begin(c, CLOSING, CONNECTION_CLOSE, error, 0, 0, now);
  c.events |= ON_CLOSED;
}

/** Processes the peer's CONNECTION_CLOSE. */
export function onPeerClose(c: Connection, code: u64, reason: usize, reasonLength: u32, now: f64): void {
  if (c.state >= DRAINING) return;
  if (c.state == CLOSING) {
    // Both closed at once: our code counts, and no peer waits for our frame any longer.
    c.state = DRAINING;
    c.flags &= ~CLOSE_DUE;
    return;
  }
  begin(c, DRAINING, APPLICATION_CLOSE, code, reason, reasonLength, now);
  c.events |= ON_CLOSED;
}

/** Ends the connection on idle timeout or an unanswered keep-alive. */
export function timeOut(c: Connection): void {
  c.state = DRAINED;
  c.stateTime = Infinity;
  endFlight(c);
  releaseModel(c);
  c.bytesInFlight = 0;
  c.events |= ON_TIMED_OUT | ON_DRAINED;
}

/** Ends the closing or draining period. */
export function endClosing(c: Connection): void {
  if (c.closing && closingOf(c).ours) c.events |= ON_CLOSED;
  c.state = DRAINED;
  c.stateTime = Infinity;
  c.events |= ON_DRAINED;
}

/** Counts a packet that arrived while closing. */
export function onPacketWhileClosing(c: Connection): void {
  if (c.state != CLOSING || !c.closing) return;
  const count = ++closingOf(c).received;
  if ((count & (count - 1)) == 0) c.flags |= CLOSE_DUE;
}

/** Writes the closing frame; returns the address after it. */
export function writeClose(c: Connection, to: usize, limit: usize): usize {
  const closing = closingOf(c);
  let at = writeVarint(writeVarint(to, closing.frameType), closing.code);
  if (closing.frameType == <u32>CONNECTION_CLOSE) at = writeVarint(at, 0);
  const room = <u32>(limit - at);
  const length = min(closing.reasonLength, room > 4 ? room - 4 : 0);
  at = writeVarint(at, length);
  memory.copy(at, c.closing + REASON_AT, length);
  return at + length;
}

export function closeCode(c: Connection): u64 {
  return c.closing ? closingOf(c).code : 0;
}

/** Copies the reason to `target`; returns its length. */
export function closeReason(c: Connection, target: usize): u32 {
  if (!c.closing) return 0;
  memory.copy(target, c.closing + REASON_AT, closingOf(c).reasonLength);
  return closingOf(c).reasonLength;
}

export function releaseClosing(c: Connection): void {
  if (c.closing) releaseChunk(c.closing, BOOKKEEPING);
  c.closing = 0;
}

function begin(c: Connection, state: u8, frameType: u64, code: u64, reason: usize, reasonLength: u32, now: f64): void {
  if (!c.closing) c.closing = takeClearChunk(BOOKKEEPING);
  if (c.closing) {
    const closing = closingOf(c);
    closing.code = code;
    closing.frameType = <u32>frameType;
    closing.reasonLength = min(reasonLength, MAX_REASON);
    memory.copy(c.closing + REASON_AT, reason, closing.reasonLength);
    if (state == CLOSING) c.flags |= CLOSE_DUE;
  }
  if (state == DRAINING) c.flags &= ~CLOSE_DUE;
  if (c.state == OPEN) c.stateTime = now + 3 * probeTimeout(c);
  c.state = state;
  c.ackTime = Infinity;
  endFlight(c);
  releaseModel(c);
  c.bytesInFlight = 0;
}

function closingOf(c: Connection): Closure {
  return changetype<Closure>(c.closing);
}
