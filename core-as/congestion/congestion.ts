/**
 * The interface between recovery and a congestion controller. One controller so far, NewReno; BBR and CUBIC will stand beside it,
 * chosen by a field of the connection, with what they need to remember in a chunk of their own.
 *
 * A controller sets `congestionWindow` (bytes) and `slowStartThreshold`; pacing.ts turns the window into a rate.
 */
import { Connection } from "../connection/record";
import { newRenoAcked, newRenoInit, newRenoLost, newRenoPersistent } from "./new-reno";

export function congestionInit(c: Connection): void {
  newRenoInit(c);
}

/** `size` bytes went out. */
export function onCongestionSent(_c: Connection, _size: u32): void {}

/** A packet of `size` bytes sent at `sentTime` was acknowledged; `inFlight` bytes were before its ACK frame. */
export function onCongestionAcked(c: Connection, size: u32, sentTime: f64, inFlight: u32): void {
  newRenoAcked(c, size, sentTime, inFlight);
}

/** Packets were lost, the newest of them sent at `sentTime`. */
export function onCongestionLost(c: Connection, sentTime: f64, now: f64): void {
  newRenoLost(c, sentTime, now);
}

export function onPersistentCongestion(c: Connection): void {
  newRenoPersistent(c);
}

/** Bytes that may go out now. */
export function windowLeft(c: Connection): u32 {
  return c.congestionWindow > c.bytesInFlight ? c.congestionWindow - c.bytesInFlight : 0;
}
