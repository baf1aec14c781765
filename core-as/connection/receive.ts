/**
 * Receives a datagram.
 *
 *   1. Authenticate and decrypt in the receive slot (packet/protection.ts).
 *   2. Process the frames in order (connection/frames.ts); a violation closes the connection.
 *   3. Without room for a frame's content the packet stays unacknowledged and the peer repeats it. Frames are
 *      idempotent, so processing a part twice does no harm; datagrams, which are not, come last.
 *   4. Mark the number as received, decide about acknowledging.
 */
import { ERROR_AEAD_LIMIT_REACHED } from '../codes.generated';
import { REFUSED } from '../frames/types';
import { receiveSlot } from '../memory/layout';
import { HEADER, OVERHEAD } from '../packet/header';
import { openedError, openedNumber, unprotect } from '../packet/protection';
import { mark } from '../packet/replay-window';
import { arrive, arrivedOn, noteSpeaker } from '../paths/arrival';
import { followed } from '../paths/migration';
import { ACK_NOW, Connection, DRAINING, flagged, OPEN, RESTING } from '../records/connection';
import { onReceived } from '../recovery/ack-policy';
import { closeOnViolation, onPacketWhileClosing } from './close';
import { deliverDatagrams, outElicited, outNonProbing, receiveFrames } from './frames';
import { endRest } from './resting';

/** RFC 9001 §6.6 */
const MAX_FAILURES: u64 = 1 << 36;

/**
 * Our constant, ms: by then data sent in one burst with Complete has arrived, and a quick answer is ready. Not longer,
 * because for an initiator that could not time the handshake this is part of its first RTT sample.
 */
const COMPLETE_ACK_DELAY: f64 = 2;

/**
 * Processes `size` bytes at `start` of the receive slot, which arrived on `path` (paths/arrival.ts); true if they are
 * an authentic, new packet.
 */
export function receive(c: Connection, start: u32, size: u32, path: u32, now: f64): bool {
  if (c.state >= DRAINING) return drop(c);
  const packet = receiveSlot + start;
  if (!unprotect(c, packet, size, now)) {
    if (c.authenticationFailures >= MAX_FAILURES) closeOnViolation(c, ERROR_AEAD_LIMIT_REACHED, now);
    return drop(c);
  }
  c.packetsReceived++;
  c.bytesReceived += <f64>size;
  arrive(c, path, size, now);
  if (c.state != OPEN) onPacketWhileClosing(c);

  if (openedError) {
    closeOnViolation(c, openedError, now);
    return true;
  }
  const number = openedNumber;
  const frames = packet + HEADER;
  const end = packet + size - (OVERHEAD - HEADER);
  c.idleSince = now;
  const error = receiveFrames(c, frames, end, now);
  if (error == REFUSED) {
    c.packetsDropped++;
    return true;
  }
  const before = c.largestReceived;
  mark(c, number);
  if (error) {
    closeOnViolation(c, error, now);
    return true;
  }
  if (c.state != OPEN) return true;
  deliverDatagrams(c, frames, end);
  onReceived(c, number, before, outElicited, now);
  if (outNonProbing) {
    const isNewest = <i64>number > before;
    if (arrivedOn != c.activePath && isNewest) followed(c, arrivedOn, now);
    noteSpeaker(c, isNewest);
  }
  if (flagged(c, RESTING) && arrivedOn == c.activePath) endRest(c, now);
  return true;
}

/**
 * Packet 0 of the initiator, the Complete packet, is verified. It is acknowledged with the answer to the data that
 * follows it; a repeated one immediately, because an acknowledgement was lost.
 */
export function completeReceived(c: Connection, now: f64): void {
  const again = c.largestReceived >= 0;
  mark(c, 0);
  onReceived(c, 0, -1, true, now);
  if (again) c.flags |= ACK_NOW;
  else c.ackTime = min(c.ackTime, now + COMPLETE_ACK_DELAY);
  c.idleSince = now;
}

function drop(c: Connection): bool {
  c.packetsDropped++;
  return false;
}
