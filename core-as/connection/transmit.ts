/**
 * Builds outgoing packets. One call fills up to 32 slots; each packet is built in its slot in this order
 * (docs/transport.md §2):
 *
 *   1. is anything due, and do window, pacer and chunks allow more than an acknowledgement?
 *   2. ACK   3. credit and stream control   4. stream bytes: lost, messages, datagrams, byte streams; blocked frames
 *   5. PING   6. number, header, encryption; record of the content
 *
 * The initiator's Complete packet precedes everything else, with the bytes that the caller gave.
 */
import { onAppLimited, onOutOfCredit, onWindowFull, windowLeft } from '../congestion/congestion';
import { mayPace, onPaced, pacingIdle, refill } from '../congestion/pacing';
import { waiting } from '../datagrams/queue';
import { PING } from '../frames/types';
import { writeVarint } from '../frames/varint';
import { BATCH } from '../memory/layout';
import { freeSlots, releaseSlot, takeSlot } from '../memory/packet-slots';
import { HEADER } from '../packet/header';
import { maybeUpdateSendKey } from '../packet/key-update';
import { protect } from '../packet/protection';
import { frameSpaceNow, spaceIn } from '../packet/size';
import { eliciting, stageAck, stageComplete, stageMtuProbe, stageSent } from '../packet/staging';
import { closeSpace, mayAmplify } from '../paths/amplification';
import {
  ACK_NOW,
  ACK_OWED,
  APP_LIMITED,
  CLOSE_DUE,
  CLOSING,
  Connection,
  flagged,
  LIMITED,
  OPEN,
  PROBE,
  RESTING,
  SEND_COMPLETE,
  SEND_PING,
  STARVED,
} from '../records/connection';
import { ensureFlight, flightIsFull, flightOf, newRecord, recordOf } from '../records/flight';
import { ACKS_UNTIL_PING, onAckSent, writeAck } from '../recovery/ack-policy';
import { armEarlyCopy } from '../recovery/early-copy';
import { mtuProbeDue } from '../recovery/mtu';
import { commitSent, commitSkipped } from '../recovery/sent';
import { noteOutOfCredit } from '../streams/credit';
import { fillStreams, hasStreamData } from '../streams/scheduler';
import { writeClose } from './close';
import { fillControl, fillPing, fillStreamControl } from './control-frames';
import { beginBatch, emit, written, writtenBytes } from './emit';
import { transmitProbe } from './path-probes';
import { skipIsDue } from './skip';

/** Our constant: after this long a starved writer is offered room again, ms. */
const RETRY_AFTER: f64 = 20;

/** Our constant: bytes of the ACK frame in a closing packet; the close frame needs the rest. */
const ACK_IN_CLOSE: u32 = 128;
/** Bytes of a closing frame without a reason: type, code, frame type, length. */
const MIN_CLOSE: u32 = 1 + 8 + 1 + 2;

/** Our constant: encrypted packets should still be in a processor cache of 512 KiB when the kernel copies them. */
const BATCH_BYTES: u32 = 3 << 16;

/** Index of the path that the packets go to. */
export let outTransmitPath: u32 = 0;

/**
 * Writes up to `most` packets, fewer if they are large, at 0 only a path challenge or response; returns how many. The
 * tables of memory/layout.ts hold their addresses.
 */
export function transmit(c: Connection, now: f64, most: u32): u32 {
  beginBatch();
  if (c.state == OPEN && c.paths) {
    outTransmitPath = transmitProbe(c, now);
    if (written > 0) {
      // The peer may not know the connection: then the challenge means nothing to it without Complete.
      if (c.complete && flagged(c, RESTING) && outTransmitPath == c.activePath) transmitComplete(c, now);
      return written;
    }
  }
  outTransmitPath = c.activePath;
  if (most == 0 || (c.state == OPEN && flagged(c, RESTING))) return 0;
  if (c.state == OPEN) transmitOpen(c, now, min(most, BATCH));
  else if (c.state == CLOSING && flagged(c, CLOSE_DUE)) transmitClose(c, now);
  return written;
}

function transmitOpen(c: Connection, now: f64, most: u32): void {
  if (flagged(c, STARVED) && c.stateTime == Infinity) c.stateTime = now + RETRY_AFTER;
  if (flagged(c, SEND_COMPLETE) && !transmitComplete(c, now)) return;
  refill(c, now);
  while (written < most && writtenBytes < BATCH_BYTES) if (!transmitPacket(c, now)) break;
}

/** Writes one packet; false when there is nothing to send or nothing may be sent. */
function transmitPacket(c: Connection, now: f64): bool {
  if (flagged(c, LIMITED) && !mayAmplify(c)) {
    pacingIdle(c);
    return false;
  }
  if (c.ackOnly >= ACKS_UNTIL_PING) c.pending |= SEND_PING;
  const wanted = hasData(c) || noteOutOfCredit(c);
  const more = wanted && mayElicit(c, now);
  if (!wanted) noteIdle(c);
  if (!more && !flagged(c, ACK_NOW)) return false;
  if (more && transmitMtuProbe(c, now)) return true;
  const packet = takeSlot();
  if (!packet) return false;

  if (more && flightOf(c).outstanding > 0 && skipIsDue(c)) commitSkipped(c, c.nextNumber++);
  const canTrack = more && changetype<usize>(newRecord(c, c.nextNumber)) != 0;
  maybeUpdateSendKey(c, now);
  stageSent();
  const start = packet + HEADER;
  const limit = start + frameSpaceNow(c);
  const ackEnd = flagged(c, ACK_NOW) || (canTrack && flagged(c, ACK_OWED)) ? writeAck(c, start, limit, now) : start;
  const end = canTrack ? fillFrames(c, ackEnd, limit, now) : ackEnd;
  if (end == start) {
    releaseSlot(packet);
    c.flags &= ~ACK_NOW;
    return false;
  }
  if (ackEnd > start) {
    stageAck(c.largestReceived);
    onAckSent(c);
  }
  send(c, packet, <u32>(end - start), now);
  return true;
}

/**
 * Writes a probe of a larger size: PING and PADDING (recovery/mtu.ts). False when it is not due, or there is no room.
 */
function transmitMtuProbe(c: Connection, now: f64): bool {
  const size = mtuProbeDue(c, now);
  if (!size || !changetype<usize>(newRecord(c, c.nextNumber))) return false;
  const packet = takeSlot();
  if (!packet) return false;
  stageSent();
  stageMtuProbe();
  const length = spaceIn(c, size);
  memory.fill(packet + HEADER, 0, length);
  writeVarint(packet + HEADER, PING);
  flightOf(c).mtuProbe = c.nextNumber;
  send(c, packet, length, now);
  return true;
}

/** Writes ack-eliciting frames, in order of urgency. */
function fillFrames(c: Connection, to: usize, limit: usize, now: f64): usize {
  let end = fillControl(c, to, limit, now);
  end = fillStreams(c, end, limit);
  end = fillStreamControl(c, end, limit, now);
  if (eliciting) {
    c.pending &= ~SEND_PING;
    return end;
  }
  return fillPing(c, end, limit);
}

/** Encrypts the packet, emits it and records its content. */
function send(c: Connection, packet: usize, length: u32, now: f64): void {
  const number = c.nextNumber++;
  const size = emit(c, packet, protect(c, packet, length, number));
  if (!eliciting) {
    c.ackOnly++;
    return;
  }
  c.ackOnly = 0;
  if (flightOf(c).outstanding == 0) c.idleSince = now;
  commitSent(c, number, size, now);
  onPaced(c, size);
  onProbeSent(c);
}

/** Writes the Complete packet; false when no slot or chunk is left. */
function transmitComplete(c: Connection, now: f64): bool {
  const first = c.flight == 0;
  if (!ensureFlight(c)) return false;
  if (first) refill(c, now);
  const flight = flightOf(c);
  if (first) flight.base = 0;
  if (!changetype<usize>(newRecord(c, 0)) || freeSlots == 0) return false;
  const size = emitComplete(c);
  if (first) {
    stageSent();
    stageComplete();
    commitSent(c, 0, size, now);
  } else {
    const record = recordOf(c, 0);
    record.time = now;
    record.complete = 2;
    flight.lastEliciting = now;
    onProbeSent(c);
  }
  return true;
}

function emitComplete(c: Connection): u32 {
  const packet = takeSlot();
  const length = load<u32>(c.complete);
  memory.copy(packet, c.complete + 4, length);
  c.flags &= ~SEND_COMPLETE;
  return emit(c, packet, length);
}

function transmitClose(c: Connection, now: f64): void {
  const space = closeSpace(c);
  if (freeSlots < 2 || space < MIN_CLOSE) return;
  if (flagged(c, SEND_COMPLETE) && c.complete) emitComplete(c);
  const packet = takeSlot();
  c.flags &= ~CLOSE_DUE;
  const start = packet + HEADER;
  const limit = start + space;
  // The peer counts what arrived before the close: a stream that had ended is not reported as cut off.
  const end = writeClose(
    c,
    flagged(c, ACK_OWED) && space >= 2 * ACK_IN_CLOSE ? writeAck(c, start, start + ACK_IN_CLOSE, now) : start,
    limit,
  );
  emit(c, packet, protect(c, packet, <u32>(end - start), c.nextNumber++));
}

function hasData(c: Connection): bool {
  return c.pending != 0 || c.controlHead != 0 || hasStreamData(c) || waiting(c, true) > 0;
}

/** Returns whether an ack-eliciting packet may go now. */
function mayElicit(c: Connection, now: f64): bool {
  const fresh = c.flight == 0;
  if (flightIsFull(c) || !ensureFlight(c)) return false;
  if (fresh) refill(c, now);
  if (flagged(c, PROBE)) return true;
  if (windowLeft(c) < <u32>c.packetSize) {
    c.flags &= ~APP_LIMITED;
    onWindowFull(c);
    pacingIdle(c);
    return false;
  }
  if (mayPace(c, now)) return true;
  c.flags &= ~APP_LIMITED;
  return false;
}

/** Everything was sent: the window may not grow if it was far from full (RFC 9002 §7.8). */
function noteIdle(c: Connection): void {
  pacingIdle(c);
  armEarlyCopy(c);
  onAppLimited(c);
  if (c.bytesHead || c.messagesHead) onOutOfCredit(c);
  const far = c.congestionWindow < c.slowStartThreshold ? c.congestionWindow / 2 : 3 * <u32>c.packetSize;
  if (windowLeft(c) > far) c.flags |= APP_LIMITED;
  else c.flags &= ~APP_LIMITED;
}

/** Counts a probe against those that go out regardless of the window. */
function onProbeSent(c: Connection): void {
  if (!flagged(c, PROBE)) return;
  const flight = flightOf(c);
  if (flight.probes > 0) flight.probes--;
  if (flight.probes == 0) c.flags &= ~PROBE;
}
