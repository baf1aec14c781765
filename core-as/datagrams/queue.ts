/**
 * DATAGRAM frames (RFC 9221): a bounded queue in each direction. The one of received datagrams drops its oldest; the
 * outgoing one takes nothing further, so that its caller can count what had no room, and drop all parts of a datagram.
 *
 * A datagram lies in a chain of chunks: next chunk (u32); in the first chunk also next datagram (u32) and length (u32);
 * then bytes. One chunk holds the heads of both queues; a connection without datagrams does not own it.
 */
import { BOOKKEEPING, CHUNK, MESSAGES_IN, MESSAGES_OUT, releaseChunk, scarce, takeChunk, takeClearChunk } from '../memory/chunks';
import { Connection } from '../records/connection';

/**
 * Our constants: most datagrams that wait for the reader, and to be sent: all parts of four of the largest. When half
 * of the budget is in use fewer may wait to be sent, so that messages keep the other half.
 */
const MAX_RECEIVED: u32 = 64;
const MAX_OUTGOING: u32 = 256;
const MAX_WHEN_SCARCE: u32 = 16;

@unmanaged
export class Queue {
  head: usize;
  tail: usize;
  count: u32;
  /** Received datagrams not yet reported to the caller. */
  unreported: u32;
  dropped: u32;
  /** Bytes received, up to 2^31, since we last asked the peer whether more are on their way (connection/stall.ts). */
  bytes: u32;
  /** Sent in packets that were declared lost. */
  lost: u32;
}

const QUEUE_SIZE: usize = 32;
const NEXT_CHUNK: usize = 0;
const NEXT: usize = 4;
const LENGTH: usize = 8;
const BYTES: usize = 12;
const ROOM: u32 = <u32>CHUNK - <u32>BYTES;

/** The queue of datagrams to send (true) or received; null (0) when there is none. */
export function queueOf(c: Connection, outgoing: bool): Queue {
  return changetype<Queue>(c.datagrams ? c.datagrams + (outgoing ? 0 : QUEUE_SIZE) : 0);
}

/** Number of datagrams that the outgoing queue still takes, as far as there are chunks. */
export function outgoingRoom(c: Connection): u32 {
  const most = scarce(budgetOf(true)) ? MAX_WHEN_SCARCE : MAX_OUTGOING;
  const count = waiting(c, true);
  return count < most ? most - count : 0;
}

/** Appends `length` bytes; false when no chunk is left, or the outgoing queue is full. */
export function enqueue(c: Connection, outgoing: bool, source: usize, length: u32): bool {
  if (!c.datagrams) c.datagrams = takeClearChunk(BOOKKEEPING);
  if (!c.datagrams) return false;
  const queue = queueOf(c, outgoing);
  if (outgoing && outgoingRoom(c) == 0) return false;
  if (!outgoing && queue.count >= MAX_RECEIVED) {
    drop(c, false);
    queue.dropped++;
  }
  const first = chainOf(source, length, budgetOf(outgoing));
  if (!first) return false;
  if (queue.tail) store<usize>(queue.tail, first, NEXT);
  else queue.head = first;
  queue.tail = first;
  queue.count++;
  queue.unreported++;
  queue.bytes = min(queue.bytes + length, 1 << 31);
  return true;
}

/** Bytes of datagrams received since `forgetDatagramBytes`. */
export function datagramBytes(c: Connection): u32 {
  return c.datagrams ? queueOf(c, false).bytes : 0;
}

export function forgetDatagramBytes(c: Connection): void {
  if (c.datagrams) queueOf(c, false).bytes = 0;
}

/** Length of the oldest datagram; call only when there is one. */
export function headLength(c: Connection, outgoing: bool): u32 {
  return load<u32>(queueOf(c, outgoing).head, LENGTH);
}

/** Copies the oldest datagram to `target` and drops it; returns its length. */
export function dequeue(c: Connection, outgoing: bool, target: usize): u32 {
  let chunk = queueOf(c, outgoing).head;
  const length = load<u32>(chunk, LENGTH);
  let done: u32 = 0;
  while (done < length) {
    const part = min(length - done, ROOM);
    memory.copy(target + done, chunk + BYTES, part);
    done += part;
    chunk = load<usize>(chunk, NEXT_CHUNK);
  }
  drop(c, outgoing);
  return length;
}

export function waiting(c: Connection, outgoing: bool): u32 {
  return c.datagrams ? queueOf(c, outgoing).count : 0;
}

/** Frees both queues. */
export function releaseDatagrams(c: Connection): void {
  if (!c.datagrams) return;
  while (queueOf(c, true).count) drop(c, true);
  while (queueOf(c, false).count) drop(c, false);
  releaseChunk(c.datagrams, BOOKKEEPING);
  c.datagrams = 0;
}

/** Counts the datagrams of a lost packet. */
export function noteLost(c: Connection, count: u32): void {
  if (c.datagrams) queueOf(c, true).lost += count;
}

/** Drops the oldest datagram. */
export function drop(c: Connection, outgoing: bool): void {
  const queue = queueOf(c, outgoing);
  const first = queue.head;
  queue.head = load<usize>(first, NEXT);
  if (!queue.head) queue.tail = 0;
  queue.count--;
  if (queue.unreported > queue.count) queue.unreported = queue.count;
  releaseChain(first, budgetOf(outgoing));
}

/** Copies the bytes into a chain; returns 0 when the chunks ran out. */
function chainOf(source: usize, length: u32, budget: u32): usize {
  let first: usize = 0;
  let last: usize = 0;
  let done: u32 = 0;
  do {
    const chunk = takeChunk(budget);
    if (!chunk) {
      releaseChain(first, budget);
      return 0;
    }
    store<usize>(chunk, 0, NEXT_CHUNK);
    if (last) store<usize>(last, chunk, NEXT_CHUNK);
    else first = chunk;
    last = chunk;
    const part = min(length - done, ROOM);
    memory.copy(chunk + BYTES, source + done, part);
    done += part;
  } while (done < length);
  store<usize>(first, 0, NEXT);
  store<u32>(first, length, LENGTH);
  return first;
}

function releaseChain(first: usize, budget: u32): void {
  while (first) {
    const following = load<usize>(first, NEXT_CHUNK);
    releaseChunk(first, budget);
    first = following;
  }
}

function budgetOf(outgoing: bool): u32 {
  return outgoing ? MESSAGES_OUT : MESSAGES_IN;
}
