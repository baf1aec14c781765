/**
 * What loss recovery, congestion control and path MTU discovery know about one path (RFC 9000 §9.4).
 *
 * `Connection` begins with that of the active path, where the hot path reads it; `Path` begins with that of every other path. A change of
 * path copies it as a whole, so a new field belongs here and nowhere else. Zeros are the state of a path that was never used, before
 * recovery/path-state.ts gives it its first guesses.
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
  /** NewReno: counts towards the next avoidance step. */
  bytesAcked: u32;
  /** What the congestion controller remembers, a chunk (congestion/model.ts); 0 = none. It belongs to one state only. */
  model: usize;
  /** DPLPMTUD (recovery/mtu.ts): no probe of a larger packet before this time, ms. After months it is coarse, which does no harm. */
  nextMtuProbe: f32;
  /** UDP payload of our packets, Route header included, and what it may grow to (recovery/mtu.ts). */
  packetSize: u16;
  maxPlpmtu: u16;
  /** Share of packets lost lately (recovery/path-loss.ts). */
  lossEstimate: u16;
  /** Probes of a size that were lost, packets above the base size lost in a row; bits: recovery/mtu.ts. */
  probeCount: u8;
  largeLost: u8;
  /** Reordering to be tolerated, in parts of a round trip, 0 = none was seen; episodes of loss until it shrinks (recovery/reordering.ts). */
  reorderWindow: u8;
  reorderEpisodes: u8;
  /** 1: there was an RTT sample. */
  hasRtt: u8;
}

/** Bytes of the fields. */
export const RECOVERY_SIZE: usize = offsetof<RecoveryState>();

/** Moves the state of `from` to `to`; the model goes along and is no longer that of `from`. */
export function moveRecovery(to: RecoveryState, from: RecoveryState): void {
  memory.copy(changetype<usize>(to), changetype<usize>(from), RECOVERY_SIZE);
  from.model = 0;
}

/** Makes it the state of a path that was never used. The model must have been released or moved. */
export function resetRecovery(state: RecoveryState): void {
  memory.fill(changetype<usize>(state), 0, RECOVERY_SIZE);
}
