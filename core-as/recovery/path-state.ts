/**
 * Recovery state by path (RFC 9000 §9.4): RTT, window, threshold, the controller's model and the packet size of the active path lie in
 * `Connection`; at a switch they are put away in the path's entry, and those of the new path are taken out, or begin anew.
 *
 * A packet in flight remembers its path. Acknowledged or lost, it leaves the bytes in flight of that path; only packets of the active path
 * give RTT samples and move the window.
 */
import { forget } from "../congestion/congestion";
import { modelTime } from "../congestion/model";
import { BOOKKEEPING, releaseChunk } from "../memory/chunks";
import { BASE_PLPMTU } from "../packet/size";
import { Connection, flagged, HAS_RTT, PROBE } from "../records/connection";
import { flightOf, recordOf } from "../records/flight";
import { FRESH, is, MOST_PATHS, NO_PATH, Path, pathAt } from "../records/path";
import { probeTimeout, rttInit } from "../records/rtt";
import { resetSize } from "./mtu";

/** Puts the state of the active path away in its entry. */
export function saveRecovery(c: Connection, p: Path): void {
  p.smoothedRtt = c.smoothedRtt;
  p.rttVariation = c.rttVariation;
  p.minimumRtt = c.minimumRtt;
  p.congestionWindow = c.congestionWindow;
  p.bytesInFlight = c.bytesInFlight;
  p.slowStartThreshold = c.slowStartThreshold;
  p.bytesAcked = c.bytesAcked;
  p.model = c.model;
  p.packetSize = c.packetSize;
  p.maxPlpmtu = c.maxPlpmtu;
  p.searchTime = c.searchTime;
  p.probeCount = c.probeCount;
  p.largeLost = c.largeLost;
  p.lossEstimate = c.lossEstimate;
  p.reorderWindow = c.reorderWindow;
  p.reorderEpisodes = c.reorderEpisodes;
  p.hasRtt = flagged(c, HAS_RTT) ? 1 : 0;
  c.model = 0;
}

/** Takes the state of `p` out, or begins anew; a round trip that a challenge took is then the first guess (RFC 9002 §6.2.2). */
export function restoreRecovery(c: Connection, p: Path, now: f64): void {
  c.flags &= ~HAS_RTT;
  c.bytesInFlight = p.bytesInFlight;
  c.model = p.model;
  p.model = 0;
  if (is(p, FRESH)) {
    rttInit(c, 0);
    if (p.smoothedRtt > 0) guessRtt(c, p.smoothedRtt);
    resetSize(c, BASE_PLPMTU);
    c.lossEstimate = 0;
    c.reorderWindow = 0;
    forget(c);
    return;
  }
  c.smoothedRtt = p.smoothedRtt;
  c.rttVariation = p.rttVariation;
  c.minimumRtt = p.minimumRtt;
  if (p.hasRtt) c.flags |= HAS_RTT;
  c.congestionWindow = p.congestionWindow;
  c.slowStartThreshold = p.slowStartThreshold;
  c.bytesAcked = p.bytesAcked;
  c.packetSize = p.packetSize;
  c.maxPlpmtu = p.maxPlpmtu;
  c.searchTime = p.searchTime;
  c.probeCount = p.probeCount;
  c.largeLost = p.largeLost;
  c.lossEstimate = p.lossEstimate;
  c.reorderWindow = p.reorderWindow;
  c.reorderEpisodes = p.reorderEpisodes;
  if (now >= modelTime(c)) forget(c);
}

/** A round trip without samples. */
export function guessRtt(c: Connection, rtt: f32): void {
  c.smoothedRtt = rtt;
  c.rttVariation = rtt / 2;
}

/** What of the flight is about the path: timers, pacing and recovery start anew. */
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
  flight.sizeProbe = 0;
  flight.largeAcked = c.nextNumber;
  flight.excusedBelow = 0;
  flight.episodeStart = -1;
  flight.unproven = 0;
  flight.lostNext = 0;
  flight.copyTime = Infinity;
  flight.copies = 0;
}

/** All packets in flight of one path are those of another from now on. */
export function moveInFlight(c: Connection, from: u8, to: u8): void {
  if (!c.flight) return;
  for (let number = flightOf(c).base; number < c.nextNumber; number++) {
    const record = recordOf(c, number);
    if (changetype<usize>(record) && record.path == from) record.path = to;
  }
}

/** The index serves another path from now on: its packets in flight count nowhere. */
export function forgetInFlight(c: Connection, index: u8): void {
  moveInFlight(c, index, NO_PATH);
}

/** A packet of another path than the active one leaves the flight. */
export function leavePath(c: Connection, index: u8, size: u32): void {
  if (!c.paths || index >= MOST_PATHS) return;
  const p = pathAt(c, index);
  p.bytesInFlight = p.bytesInFlight > size ? p.bytesInFlight - size : 0;
}

/**
 * When a packet of another path than the active one counts as lost: after a probe timeout of its own path. Packets of the active path that
 * were acknowledged say nothing about it.
 */
export function elsewhereLostAt(c: Connection, index: u8, sent: f64): f64 {
  if (!c.paths || index >= MOST_PATHS) return sent;
  return sent + pathProbeTimeout(c, index);
}

/** PTO of a path without back-off, ms: of one that was never used, the active one's. */
export function pathProbeTimeout(c: Connection, index: u8): f64 {
  if (index == c.activePath) return probeTimeout(c);
  const p = pathAt(c, index);
  if (is(p, FRESH)) return p.smoothedRtt > 0 ? <f64>(3 * p.smoothedRtt) + <f64>c.peerMaxAckDelay : probeTimeout(c);
  return <f64>(p.smoothedRtt + max<f32>(<f32>4 * p.rttVariation, 1) + <f32>c.peerMaxAckDelay);
}

export function releaseSavedModel(p: Path): void {
  if (p.model) releaseChunk(p.model, BOOKKEEPING);
  p.model = 0;
}
