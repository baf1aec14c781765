/**
 * Recovery state per path (RFC 9000 §9.4): `Connection` holds the active path's. A switch saves it in the path's entry
 * and restores the new path's, or initializes it (records/recovery-state.ts).
 *
 * A packet in flight remembers its path. Acknowledged or lost, it leaves the bytes in flight of that path; only packets
 * of the active path give RTT samples and change the window.
 */
import { forget } from '../congestion/congestion';
import { modelTime } from '../congestion/model';
import { BOOKKEEPING, releaseChunk } from '../memory/chunks';
import { BASE_PLPMTU } from '../packet/size';
import { Connection, PROBE } from '../records/connection';
import { flightOf, recordOf } from '../records/flight';
import { FRESH, is, MAX_PATHS, NO_PATH, Path, pathAt } from '../records/path';
import { moveRecovery } from '../records/recovery-state';
import { probeTimeout, rttInit, timeoutOf } from '../records/rtt';
import { resetSize } from './mtu';

/** Restores the state of `p`; one that was never used begins with initial estimates. */
export function restoreRecovery(c: Connection, p: Path, now: f64): void {
  const size = c.packetSize;
  moveRecovery(c, p);
  if (is(p, FRESH)) beginRecovery(c, size);
  else if (now >= modelTime(c)) forget(c);
}

/**
 * Initializes the state for a path that leads elsewhere: packets of `size`, that of the previous path; a challenge's
 * round trip is the first RTT estimate (RFC 9002 §6.2.2).
 */
export function beginRecovery(c: Connection, size: u16): void {
  const rtt = c.smoothedRtt;
  rttInit(c, 0);
  if (rtt > 0) guessRtt(c, rtt);
  c.packetSize = size;
  resetSize(c, BASE_PLPMTU);
  forget(c);
}

/** Sets an RTT estimate without samples. */
export function guessRtt(c: Connection, rtt: f32): void {
  c.smoothedRtt = rtt;
  c.rttVariation = rtt / 2;
}

/** Resets the part of the flight that concerns the path: timers, pacing, recovery. */
export function restartFlight(c: Connection, now: f64): void {
  c.flags &= ~PROBE;
  if (!c.flight) return;
  const flight = flightOf(c);
  flight.lossTime = Infinity;
  flight.lastEliciting = now;
  flight.recoveryStart = -1;
  flight.firstSample = -1;
  flight.pacedAt = -Infinity;
  flight.pacingTime = Infinity;
  flight.pacingTokens = 0;
  flight.latestRtt = 0;
  flight.ptoCount = 0;
  flight.probes = 0;
  flight.mtuProbe = 0;
  flight.largeAcked = c.nextNumber;
  flight.excusedBelow = 0;
  flight.episodeStart = -1;
  flight.unconfirmed = 0;
  flight.lostNext = 0;
  flight.copyTime = Infinity;
  flight.copies = 0;
}

/** Moves all packets in flight from one path to another. */
export function moveInFlight(c: Connection, from: u8, to: u8): void {
  if (!c.flight) return;
  for (let number = flightOf(c).base; number < c.nextNumber; number++) {
    const record = recordOf(c, number);
    if (changetype<usize>(record) && record.path == from) record.path = to;
  }
}

/** The index serves another path from now on: packets in flight under it count for no path. */
export function forgetInFlight(c: Connection, index: u8): void {
  moveInFlight(c, index, NO_PATH);
}

/** Removes a packet of an inactive path from its bytes in flight. */
export function leavePath(c: Connection, index: u8, size: u32): void {
  if (!c.paths || index >= MAX_PATHS) return;
  const p = pathAt(c, index);
  p.bytesInFlight = p.bytesInFlight > size ? p.bytesInFlight - size : 0;
}

/**
 * Returns when a packet of an inactive path counts as lost: after a probe timeout of its own path. Acknowledged packets
 * of the active path say nothing about it.
 */
export function elsewhereLostAt(c: Connection, index: u8, sent: f64): f64 {
  if (!c.paths || index >= MAX_PATHS) return sent;
  return sent + pathProbeTimeout(c, index);
}

/** A path's PTO without back-off, ms; the active one's for a path that was never used. */
export function pathProbeTimeout(c: Connection, index: u8): f64 {
  if (index == c.activePath) return probeTimeout(c);
  const p = pathAt(c, index);
  if (is(p, FRESH)) return p.smoothedRtt > 0 ? <f64>(3 * p.smoothedRtt) + <f64>c.peerMaxAckDelay : probeTimeout(c);
  return timeoutOf(p, c.peerMaxAckDelay);
}

export function releaseSavedModel(p: Path): void {
  if (p.model) releaseChunk(p.model, BOOKKEEPING);
  p.model = 0;
}
