/** NewReno (RFC 9002 §7 and B). No growth while the application does not fill the window (§7.8). */
import { APP_LIMITED, Connection, flagged } from '../records/connection';
import { flightOf } from '../records/flight';

// RFC 9002 §7.2, B.1
const MINIMUM_WINDOW_PACKETS: u32 = 2;

export function newRenoAcked(c: Connection, size: u32, sentTime: f64, inFlight: u32): void {
  if (sentTime <= flightOf(c).recoveryStart || flagged(c, APP_LIMITED) || inFlight < c.congestionWindow / 2) return;
  if (c.congestionWindow < c.slowStartThreshold) {
    c.congestionWindow += size;
    return;
  }
  c.bytesAcked += size;
  if (c.bytesAcked < c.congestionWindow) return;
  c.bytesAcked -= c.congestionWindow;
  c.congestionWindow += c.packetSize;
}

export function newRenoLost(c: Connection, sentTime: f64, now: f64): void {
  const flight = flightOf(c);
  if (sentTime <= flight.recoveryStart) return;
  flight.recoveryStart = now;
  c.slowStartThreshold = max(c.congestionWindow / 2, minimumWindow(c));
  c.congestionWindow = c.slowStartThreshold;
  c.bytesAcked = 0;
}

/** The loss was spurious; packets sent meanwhile still count. */
export function newRenoUndo(c: Connection): void {
  const flight = flightOf(c);
  c.congestionWindow = max(c.congestionWindow, flight.undoWindow);
  c.slowStartThreshold = flight.undoThreshold;
  flight.recoveryStart = -1;
}

export function newRenoPersistent(c: Connection): void {
  c.congestionWindow = minimumWindow(c);
  flightOf(c).recoveryStart = -1;
}

/** kMinimumWindow, bytes. */
export function minimumWindow(c: Connection): u32 {
  return MINIMUM_WINDOW_PACKETS * <u32>c.packetSize;
}
