/**
 * The record of the packet under construction: it collects references, and recovery/sent.ts copies it into the flight
 * once the packet is complete and ack-eliciting. Packets that elicit no acknowledgement leave no record.
 */
import { MAX_REFERENCES, OFFSET_MASK, REFERENCE_SIZE, REFERENCES_AT, referenceOf, SentPacket } from '../records/flight';
import { Stream } from '../records/stream';

const stagingAt = memory.data(128, 16);

/** Whether the packet under construction is ack-eliciting. */
export let eliciting: bool = false;

/** Begins a new packet. */
export function stageSent(): void {
  for (let at: usize = 0; at < REFERENCES_AT; at += 16) v128.store(stagingAt + at, i64x2.splat(0));
  staging().ackLargest = -1;
  eliciting = false;
}

/** Returns whether another reference fits. */
export function canStage(): bool {
  return staging().references < MAX_REFERENCES;
}

/** Stages a reference: the packet carries `length` bytes of `s` from `offset`, or a control frame of it. */
export function stageReference(s: Stream, kind: u8, offset: u64, length: u32, fin: bool): void {
  const record = staging();
  const reference = referenceOf(record, record.references++);
  reference.offsetAndGeneration = (offset & OFFSET_MASK) | ((<u64>s.generation) << 48);
  reference.stream = changetype<usize>(s);
  reference.length = <u16>length;
  reference.kind = kind;
  reference.fin = fin ? 1 : 0;
  eliciting = true;
}

/** Stages connection-wide control frames (bits of Connection.pending). */
export function stageControl(bits: u8): void {
  staging().control |= bits;
  eliciting = true;
}

/** Marks the packet as ack-eliciting without anything to repeat. */
export function stageEliciting(): void {
  eliciting = true;
}

/** Counts a datagram: nothing repeats it, but its loss is counted. */
export function stageDatagram(): void {
  staging().datagrams++;
  eliciting = true;
}

/** Marks the packet as a probe of a larger size. */
export function stageMtuProbe(): void {
  staging().mtuProbe = 1;
  eliciting = true;
}

export function stageAck(largest: i64): void {
  staging().ackLargest = largest;
}

export function stageComplete(): void {
  staging().complete = 1;
  eliciting = true;
}

/** Copies the staged record into `record`, by vectors: a call of the engine costs more. */
export function copyStaged(record: SentPacket): void {
  const used = REFERENCES_AT + staging().references * REFERENCE_SIZE;
  for (let at: usize = 0; at < used; at += 16) v128.store(changetype<usize>(record) + at, v128.load(stagingAt + at));
}

function staging(): SentPacket {
  return changetype<SentPacket>(stagingAt);
}
