/**
 * Skips a packet number now and then (RFC 9000 §21.4): a peer that acknowledges it acknowledges blindly, and the
 * connection closes. The randomness comes from the caller's seed; it need only be unknown to the peer.
 */
import { Connection, nextRandom } from '../records/connection';

/** The next gap comes 32 to 1,055 packets from now. */
const LEAST: u32 = 32;
const SPREAD: u32 = 1_024;

/** Draws when the next number is skipped. */
export function drawSkip(c: Connection): void {
  c.untilSkip = <u16>(LEAST + (nextRandom(c) & (SPREAD - 1)));
}

/** Counts one packet; true when the number after it is to be skipped. */
export function skipIsDue(c: Connection): bool {
  if (c.untilSkip > 0) {
    c.untilSkip--;
    return false;
  }
  drawSkip(c);
  return true;
}
