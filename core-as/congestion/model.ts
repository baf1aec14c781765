/**
 * Storage of a controller's knowledge of the path: one chunk, taken with the first packet in flight.
 *
 * It outlives the flight, because bandwidth and minimum RTT let the next burst start right, but not for long: it is
 * given back after `KEEP_MODEL` without an acknowledgement, and immediately when it has learnt nothing (a keep-alive, a
 * small request). So an idle connection owns none.
 */
import { BOOKKEEPING, releaseChunk, takeClearChunk } from '../memory/chunks';
import { Connection } from '../records/connection';

// RFC 9002 §7.2
const INITIAL_WINDOW_PACKETS: u32 = 10;
const INITIAL_WINDOW_BYTES: u32 = 14_720;

/** Our constant: MinRTTFilterLen of the BBR draft; an older minimum RTT would have to be measured again anyway. ms. */
const KEEP_MODEL: f64 = 10_000;

/** Offset of CUBIC's part in the chunk of a BBR connection, which needs it beside a flow that fills the queue. */
export const CUBIC_IN_BBR: usize = 640;

/** Common fields at the start of every model. */
@unmanaged
export class Model {
  /** When the last packet went out or was acknowledged. */
  used: f64;
}

/** RFC 9002 §7.2, bytes. */
export function initialWindow(c: Connection): u32 {
  return min(INITIAL_WINDOW_PACKETS * <u32>c.packetSize, max(INITIAL_WINDOW_BYTES, 2 * <u32>c.packetSize));
}

/** Takes the chunk, zeroed; false when none is left. */
export function takeModel(c: Connection, now: f64): bool {
  c.model = takeClearChunk(BOOKKEEPING);
  if (!c.model) return false;
  usedModel(c, now);
  return true;
}

export function usedModel(c: Connection, now: f64): void {
  changetype<Model>(c.model).used = now;
}

/** Returns when the model becomes too old to be useful; Infinity while packets are in flight. */
export function modelTime(c: Connection): f64 {
  return c.model && !c.flight ? changetype<Model>(c.model).used + KEEP_MODEL : Infinity;
}

export function releaseModel(c: Connection): void {
  if (c.model) releaseChunk(c.model, BOOKKEEPING);
  c.model = 0;
}
