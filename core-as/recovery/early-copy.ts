/**
 * Early repetition of a lone small packet where the path has recently lost packets: nothing follows that would reveal
 * its loss, so otherwise the probe timeout would repeat it, more than a round trip later.
 *
 *   armEarlyCopy   everything is sent: the copy is due a quarter of a round trip after the last packet
 *   onEarlyCopy    it is due: the content of the last packets is queued again, as for a PTO probe (RFC 9002 §6.2.4)
 *
 * A copy is an ordinary packet, subject to window and pacer. It is made once, on very lossy paths twice. Packets
 * without stream data are not repeated. On a path that has not lost one of its last 150 packets nothing happens.
 */
import { Connection } from '../records/connection';
import { Flight, flightOf, OUTSTANDING, RESOLVED, recordOf } from '../records/flight';
import { GRANULARITY } from '../records/rtt';
import { pathLoss } from './path-loss';
import { sendAgain } from './settle';

/**
 * Our constants: share of losses from which there is one copy, and two: with 5 % lost, a third loss is one in 8,000.
 */
const MIN_LOSS: f32 = 0.0025;
const LOSS_FOR_TWO: f32 = 0.02;

/**
 * Our constant: part of a round trip between packet and copies. Soon enough to matter, far enough apart to outlast a
 * short burst.
 */
const PART: f32 = 0.25;

/** Our constants: bytes of packets that are repeated together, and how many numbers are searched for them. */
const MAX_BYTES: u32 = 1_200;
const MAX_NUMBERS: u32 = 8;

/** Arms the copy: everything was sent. */
export function armEarlyCopy(c: Connection): void {
  if (!c.flight) return;
  const flight = flightOf(c);
  const loss = pathLoss(c);
  flight.copyTime = Infinity;
  if (loss < MIN_LOSS || flight.copies >= (loss < LOSS_FOR_TWO ? 1 : 2) || !isTailOpen(c, flight)) return;
  flight.copyTime = flight.lastEliciting + <f64>max(PART * c.smoothedRtt, GRANULARITY);
}

/** Returns when the next copy is due, Infinity when none is. */
export function earlyCopyTime(c: Connection): f64 {
  return c.flight ? flightOf(c).copyTime : Infinity;
}

export function onEarlyCopy(c: Connection): void {
  const flight = flightOf(c);
  flight.copyTime = Infinity;
  // Counted now: if none of it is left to send, the timer does not start over.
  flight.copies++;
  let bytes: u32 = 0;
  const end = lowest(c, flight);
  for (let number = c.nextNumber; number-- > end; ) {
    const record = recordOf(c, number);
    if (!changetype<usize>(record) || record.state != OUTSTANDING || record.references == 0) continue;
    bytes += record.size;
    if (bytes > MAX_BYTES) break;
    sendAgain(c, record);
    flight.isCopy = 1;
  }
}

/** An ack-eliciting packet goes out. */
export function onTailSent(flight: Flight): void {
  if (!flight.isCopy) flight.copies = 0;
  flight.isCopy = 0;
  flight.copyTime = Infinity;
}

/** Returns whether the last packet waits for its acknowledgement and is small enough. */
function isTailOpen(c: Connection, flight: Flight): bool {
  const end = lowest(c, flight);
  for (let number = c.nextNumber; number-- > end; ) {
    const record = recordOf(c, number);
    if (!changetype<usize>(record) || (record.state != OUTSTANDING && record.state != RESOLVED)) continue;
    return record.state == OUTSTANDING && record.references > 0 && record.size <= MAX_BYTES;
  }
  return false;
}

function lowest(c: Connection, flight: Flight): u64 {
  return max(flight.base, c.nextNumber > MAX_NUMBERS ? c.nextNumber - MAX_NUMBERS : 0);
}
