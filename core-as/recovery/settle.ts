/** Consequences of an acknowledged or lost packet for its content: settled, or queued again. */
import { noteLost } from '../datagrams/queue';
import { BOOKKEEPING, releaseChunk } from '../memory/chunks';
import { Connection, ON_COMPLETED, SEND_COMPLETE } from '../records/connection';
import {
  flightOf,
  offsetOf,
  REF_DATA,
  REF_MAX_STREAM_DATA,
  REF_RESET_STREAM,
  REF_STOP_SENDING,
  REF_STREAM_DATA_BLOCKED,
  RESOLVED,
  Reference,
  referenceOf,
  SentPacket,
} from '../records/flight';
import { Stream } from '../records/stream';
import { onBlockedLost, onMaxStreamDataLost, onStopSendingLost } from '../streams/credit';
import { onResetAcked, onResetLost, onSendAcked, onSendLost } from '../streams/send';
import { leavePath } from './path-state';

/** The packet of `record` arrived: settles its content. */
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

/** The packet of `record` is lost: its content goes out again. An MTU probe carried nothing and is no lost packet. */
export function settleLost(c: Connection, record: SentPacket): void {
  leaveFlight(c, record);
  if (record.mtuProbe) return;
  c.packetsLost++;
  if (record.datagrams) noteLost(c, record.datagrams);
  sendAgain(c, record);
}

/** Queues the content of `record` again; the packet itself stays in flight if it was (a probe). */
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

/** The stream of a reference, null (0) when its record now serves another stream. */
function streamOf(reference: Reference): Stream {
  const s = changetype<Stream>(reference.stream);
  return (s.generation & 0xffff) == <u32>(reference.offsetAndGeneration >> 48) && s.connection != 0 ? s : changetype<Stream>(0);
}
