/**
 * Building the record of the packet under construction, and resolving a record when its packet is acknowledged or lost.
 *
 * While a packet is built its references gather in a staging record; `commitSent` copies it into the flight once the packet is
 * complete and eliciting. Packets that elicit no acknowledgement leave no record.
 */
import { Connection, ON_COMPLETED, SEND_COMPLETE } from "../records/connection";
import { onCongestionSent } from "../congestion/congestion";
import { BOOKKEEPING, releaseChunk } from "../memory/chunks";
import { onResetAcked, onResetLost, onSendAcked, onSendLost } from "../streams/send";
import { onBlockedLost, onMaxStreamDataLost, onStopSendingLost } from "../streams/credit";
import { leavePath } from "./path-state";
import { Stream } from "../records/stream";
import { onTailSent } from "./early-copy";
import {
  MOST_REFERENCES, OUTSTANDING, REFERENCES_AT, REFERENCE_SIZE, REF_DATA, REF_MAX_STREAM_DATA, REF_RESET_STREAM, REF_STOP_SENDING, REF_STREAM_DATA_BLOCKED, RESOLVED,
  Reference, SKIPPED, SentPacket, flightOf, newRecord, referenceOf,
} from "../records/flight";

const OFFSET_MASK: u64 = 0x0000_ffff_ffff_ffff;
const stagingAt = memory.data(128, 16);

/** Whether the packet under construction asks for an acknowledgement. */
export let eliciting: bool = false;

function staging(): SentPacket {
  return changetype<SentPacket>(stagingAt);
}

/** A new packet begins. */
export function stageSent(): void {
  for (let at: usize = 0; at < REFERENCES_AT; at += 16) v128.store(stagingAt + at, i64x2.splat(0));
  staging().ackLargest = -1;
  eliciting = false;
}

/** Whether one more reference fits. */
export function canStage(): bool {
  return staging().references < MOST_REFERENCES;
}

/** The packet carries `length` bytes of `s` from `offset`, or a control frame of it. */
export function stageReference(s: Stream, kind: u8, offset: u64, length: u32, fin: bool): void {
  const record = staging();
  const reference = referenceOf(record, record.references++);
  reference.offsetAndGeneration = (offset & OFFSET_MASK) | (<u64>s.generation << 48);
  reference.stream = changetype<usize>(s);
  reference.length = <u16>length;
  reference.kind = kind;
  reference.fin = fin ? 1 : 0;
  eliciting = true;
}

/** The packet carries connection-wide control frames (bits of Connection.pending). */
export function stageControl(bits: u8): void {
  staging().control |= bits;
  eliciting = true;
}

/** The packet elicits an acknowledgement without anything to repeat. */
export function stageEliciting(): void {
  eliciting = true;
}

/** The packet is a probe of a larger size. */
export function stageSizeProbe(): void {
  staging().sizeProbe = 1;
  eliciting = true;
}

export function stageAck(largest: i64): void {
  staging().ackLargest = largest;
}

export function stageComplete(): void {
  staging().complete = 1;
  eliciting = true;
}

/** The staged packet went out as `number`. Its record exists already (`newRecord`) and the flight too. */
export function commitSent(c: Connection, number: u64, size: u32, now: f64): void {
  const record = newRecord(c, number);
  const used = REFERENCES_AT + staging().references * REFERENCE_SIZE;
  for (let at: usize = 0; at < used; at += 16) v128.store(changetype<usize>(record) + at, v128.load(stagingAt + at));
  record.time = now;
  record.size = <u16>size;
  record.state = OUTSTANDING;
  record.path = c.activePath;
  const flight = flightOf(c);
  flight.outstanding++;
  flight.lastEliciting = now;
  onTailSent(flight);
  c.bytesInFlight += size;
  onCongestionSent(c, record, now);
}

/** Leaves `number` out: whoever acknowledges it has not received what it acknowledges. */
export function commitSkipped(c: Connection, number: u64): void {
  const record = newRecord(c, number);
  if (changetype<usize>(record)) record.state = SKIPPED;
}

/** The packet of `record` arrived: its content is settled. */
export function settleAcked(c: Connection, record: SentPacket): void {
  leaveFlight(c, record);
  if (record.ackLargest >= 0) c.ackFloor = max(c.ackFloor, <u64>record.ackLargest + 1);
  if (record.complete) completeAcked(c);
  for (let i: u32 = 0; i < record.references; i++) {
    const reference = referenceOf(record, i);
    const s = streamOf(reference);
    if (!changetype<usize>(s)) continue;
    if (reference.kind == REF_DATA) onSendAcked(c, s, offsetOf(reference), reference.length, reference.fin != 0);
    else if (reference.kind == REF_RESET_STREAM) onResetAcked(c, s);
  }
}

/** The packet of `record` is lost: what it carried goes out again. A size probe carried nothing and is no lost packet. */
export function settleLost(c: Connection, record: SentPacket): void {
  leaveFlight(c, record);
  if (record.sizeProbe) return;
  c.packetsLost++;
  sendAgain(c, record);
}

/** Queues the content of `record` once more; the packet itself stays in flight if it was (a probe). */
export function sendAgain(c: Connection, record: SentPacket): void {
  c.pending |= record.control;
  if (record.complete && c.complete) c.flags |= SEND_COMPLETE;
  for (let i: u32 = 0; i < record.references; i++) {
    const reference = referenceOf(record, i);
    const s = streamOf(reference);
    if (!changetype<usize>(s)) continue;
    if (reference.kind == REF_DATA) onSendLost(c, s, offsetOf(reference), reference.length, reference.fin != 0);
    else if (reference.kind == REF_RESET_STREAM) onResetLost(c, s);
    else if (reference.kind == REF_MAX_STREAM_DATA) onMaxStreamDataLost(c, s);
    else if (reference.kind == REF_STOP_SENDING) onStopSendingLost(c, s);
    else if (reference.kind == REF_STREAM_DATA_BLOCKED) onBlockedLost(c, s, offsetOf(reference));
  }
}

function leaveFlight(c: Connection, record: SentPacket): void {
  record.state = RESOLVED;
  if (record.path == c.activePath) c.bytesInFlight -= record.size;
  else leavePath(c, record.path, record.size);
  flightOf(c).outstanding--;
}

function completeAcked(c: Connection): void {
  if (!c.complete) return;
  releaseChunk(c.complete, BOOKKEEPING);
  c.complete = 0;
  c.flags &= ~SEND_COMPLETE;
  c.events |= ON_COMPLETED;
}

function offsetOf(reference: Reference): u64 {
  return reference.offsetAndGeneration & OFFSET_MASK;
}

/** The stream of a reference, null (0) when its record serves another stream by now. */
function streamOf(reference: Reference): Stream {
  const s = changetype<Stream>(reference.stream);
  return (s.generation & 0xffff) == <u32>(reference.offsetAndGeneration >> 48) && s.connection != 0 ? s : changetype<Stream>(0);
}
