/**
 * The state of loss recovery, congestion control and path MTU discovery for one path (RFC 9000 §9.4).
 *
 * `Connection` begins with the state of the active path, where the hot path reads it; `Path` begins with that of every
 * other path. A change of path copies it as a whole, so a new field belongs here and nowhere else. A path that was
 * never used has zeros until recovery/path-state.ts sets its first estimates.
 */

@unmanaged
export class RecoveryState {
  // ms.
  smoothedRtt: f32;
  rttVariation: f32;
  minimumRtt: f32;
  // Bytes.
  congestionWindow: u32;
  bytesInFlight: u32;
  slowStartThreshold: u32;
  /** NewReno: bytes counted towards the next step of congestion avoidance. */
  bytesAcked: u32;
  /** Chunk with the memory of the congestion controller (congestion/model.ts); 0 = none. Only one state owns it. */
  model: usize;
  /**
   * DPLPMTUD (recovery/mtu.ts): no probe of a larger packet before this time, ms. It gets coarse after months, which
   * does no harm.
   */
  nextMtuProbe: f32;
  /** UDP payload of our packets, Route header included, and its upper limit (recovery/mtu.ts). */
  packetSize: u16;
  maxPlpmtu: u16;
  /** Recent share of lost packets (recovery/path-loss.ts). */
  lossEstimate: u16;
  /** Lost probes of a size; packets above the base size lost in a row; bits: recovery/mtu.ts. */
  probeCount: u8;
  largeLost: u8;
  /**
   * Reordering to tolerate, in parts of a round trip, 0 = none seen; episodes of loss until it shrinks
   * (recovery/reordering.ts).
   */
  reorderWindow: u8;
  reorderEpisodes: u8;
  /** 1: there was an RTT sample. */
  hasRtt: u8;
}

/** Bytes of the fields. */
export const RECOVERY_SIZE: usize = offsetof<RecoveryState>();

/** Moves the state of `from` to `to`; the model goes with it and no longer belongs to `from`. */
export function moveRecovery(to: RecoveryState, from: RecoveryState): void {
  memory.copy(changetype<usize>(to), changetype<usize>(from), RECOVERY_SIZE);
  from.model = 0;
}

/** Resets to the state of a path that was never used. The model must have been released or moved. */
export function resetRecovery(state: RecoveryState): void {
  memory.fill(changetype<usize>(state), 0, RECOVERY_SIZE);
}
