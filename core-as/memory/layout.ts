/**
 * Layout of linear memory, computed once by `layOut` and never changed: no later allocation moves anything.
 *
 *   packet slots · receive slot · transfer area · small tables · connections · replay windows · stream records · stream
 *   buckets · chunk pool
 *
 * Areas are only measured here, not cleared: fresh wasm memory is zero, and untouched pages cost nothing.
 */
import { STATUS_INVALID_ARGUMENT, STATUS_OK, STATUS_OUT_OF_MEMORY } from '../codes.generated';
import { CHUNK, poolInit } from './chunks';

/** Bytes before each packet, where the 9-byte Route header goes without a copy. */
export const HEADROOM: usize = 16;
/** Largest message (PROTOCOL.md §5): 65 chunks of 1 KiB. */
export const MESSAGE_LIMIT: u32 = 66_560;
/** Packets per transmit call. */
export const BATCH: u32 = 32;
/** Bytes of one connection, without its replay window. */
export const CONNECTION_SIZE: usize = 528;
/** Bytes of one replay window (packet/replay-window.ts). */
export const REPLAY_SIZE: usize = 1_024;
/** Bytes of one stream record. */
export const STREAM_SIZE: usize = 384;

const TRANSFER_SIZE: usize = 69_632;
const MAX_SLOTS: u32 = 128;
const RESULTS_SIZE: usize = 256;

export let packetSlots: usize = 0;
export let packetSlotSize: usize = 0;
export let packetSlotCount: u32 = 0;
/** Largest packet, without the Route header. */
export let maxPacketSize: u32 = 0;
export let receiveSlot: usize = 0;
export let receiveSlotSize: usize = 0;
/** Area through which the caller copies in and out. */
export let transfer: usize = 0;
/** `BATCH` u32 each: start and length of the packets of the last transmit call. */
export let packetOffsets: usize = 0;
export let packetLengths: usize = 0;
/** f64 fields: the last event, or statistics. */
export let results: usize = 0;
export let connectionSlab: usize = 0;
export let connectionCount: u32 = 0;
export let replayWindows: usize = 0;
export let streamSlab: usize = 0;
export let streamCount: u32 = 0;
export let streamBuckets: usize = 0;
export let streamBucketMask: u32 = 0;

/**
 * Divides `size` bytes of memory that have already been grown. `streamSegments` is in units of 256 bytes, 0 = as memory
 * allows. Returns OUT_OF_MEMORY when fewer than 256 chunks would be left.
 */
export function layOut(connections: u32, streams: u32, size: usize, streamSegments: u32, packetSize: u32): u32 {
  if (connections == 0 || streams < 16 || packetSize < 1_200 || packetSize > 65_000) return STATUS_INVALID_ARGUMENT;
  let at = align(__heap_base, 64);

  maxPacketSize = packetSize;
  packetSlotSize = align(HEADROOM + packetSize, 64);
  packetSlotCount = min(MAX_SLOTS, max(BATCH, <u32>(size / 8 / packetSlotSize)));
  packetSlots = at;
  at += packetSlotSize * packetSlotCount;

  receiveSlotSize = align(max(packetSize, 2_048) + 64, 64);
  receiveSlot = at;
  at += receiveSlotSize + 64;

  transfer = at;
  packetOffsets = transfer + TRANSFER_SIZE;
  packetLengths = packetOffsets + BATCH * 4;
  results = packetLengths + BATCH * 4;
  at = align(results + RESULTS_SIZE, 64);

  connectionSlab = at;
  connectionCount = connections;
  at += CONNECTION_SIZE * connections;
  replayWindows = at;
  at += REPLAY_SIZE * connections;

  streamSlab = at;
  streamCount = streams;
  at += STREAM_SIZE * streams;

  let buckets: u32 = 16;
  while (buckets < streams * 2) buckets <<= 1;
  streamBuckets = at;
  streamBucketMask = buckets - 1;
  at = align(at + buckets * 4, CHUNK);

  if (at + 256 * CHUNK > size) return STATUS_OUT_OF_MEMORY;
  poolInit(at, size & ~(CHUNK - 1), streamSegments);
  return STATUS_OK;
}

/** Sets result field `index`, which the caller reads. */
export function put(index: i32, value: f64): void {
  store<f64>(results + ((<usize>index) << 3), value);
}

export function transferSize(): u32 {
  return <u32>TRANSFER_SIZE;
}

function align(value: usize, to: usize): usize {
  return (value + to - 1) & ~(to - 1);
}
