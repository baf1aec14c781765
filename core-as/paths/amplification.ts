/**
 * The anti-amplification limit: at most three times the bytes received from an unvalidated address are sent to it (RFC
 * 9000 §8.1, §9.3).
 */
import { frameSpace } from '../packet/size';
import { Connection, flagged, LIMITED } from '../records/connection';
import { is, OURS, Path, pathAt, VALIDATED } from '../records/path';

const AMPLIFICATION: f64 = 3;

/** Bytes that may be sent on the path now. */
export function allowance(p: Path): f64 {
  return p.state == VALIDATED || is(p, OURS) ? Infinity : max(AMPLIFICATION * p.bytesReceived - p.bytesSent, 0);
}

/** Returns whether a full-size packet may be sent on the active path; called while LIMITED is set. */
export function mayAmplify(c: Connection): bool {
  return allowance(pathAt(c, c.activePath)) >= <f64>c.packetSize;
}

/** Bytes of frames in the closing packet of a connection: fewer while LIMITED is set, perhaps none. */
export function closeSpace(c: Connection): u32 {
  const space = frameSpace(c);
  if (!flagged(c, LIMITED)) return space;
  const left = allowance(pathAt(c, c.activePath)) - <f64>(c.packetSize - space);
  return left > 0 ? min(space, <u32>left) : 0;
}

/** Counts `size` bytes sent on the active path. */
export function countSent(c: Connection, size: u32): void {
  const p = pathAt(c, c.activePath);
  p.bytesSent += <f64>size;
  p.packetsSent++;
}
