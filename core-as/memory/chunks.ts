/**
 * The chunk pool: 1 KiB chunks for everything whose size depends on what a connection does.
 *
 * A free list in front of a bump pointer: advancing the pointer hands out a chunk that was never used, so memory stays
 * untouched until it is needed. Each chunk is charged to one budget, so that no kind of use can starve another:
 *
 * - bytes of streams, sent and received apart: two ends that send to each other cannot fill the room both need to
 *   receive; data behind a gap leaves a quarter of the receiving budget to the data that closes gaps;
 * - messages, sent and received apart, never touched by byte streams;
 * - half of each of these (of received bytes, the last eighth) is for connections that hold little, so that data that
 *   one peer never finishes, reads or acknowledges cannot keep out the other peers; for bytes to send, "little" is a
 *   quarter of what is left;
 * - bookkeeping (directories, ranges, sent packets): whatever is left.
 */
import { abortUnless } from '../abort';

export const CHUNK: usize = 1_024;
export const CHUNK_BITS: u32 = 10;

/**
 * Our constant: least chunks of streams, both directions together. A packet of 1,452 bytes touches three, and a quarter
 * of those for received bytes is for data that closes gaps: with fewer chunks, that data could lack room for ever.
 */
const MIN_STREAMS: u32 = 32;

export const BYTES_OUT: u32 = 0;
export const BYTES_IN: u32 = 1;
export const MESSAGES_OUT: u32 = 2;
export const MESSAGES_IN: u32 = 3;
export const BOOKKEEPING: u32 = 4;
const BUDGETS: u32 = 5;

let freeHead: usize = 0;
let untouched: usize = 0;
let poolStart: usize = 0;
let poolEnd: usize = 0;
/** Chunks that can still be handed out. */
export let freeChunks: u32 = 0;

const used = memory.data(BUDGETS * 4, 4);
const limits = memory.data(BUDGETS * 4, 4);

/** Makes `start` to `end` (both multiples of CHUNK) the pool; `streamSegments` as in `layOut`. */
export function poolInit(start: usize, end: usize, streamSegments: u32): void {
  poolStart = start;
  poolEnd = end;
  untouched = start;
  freeHead = 0;
  freeChunks = <u32>((end - start) >> CHUNK_BITS);
  memory.fill(used, 0, BUDGETS * 4);
  limitStreamSegments(streamSegments);
  setLimit(MESSAGES_OUT, freeChunks / 6);
  setLimit(MESSAGES_IN, freeChunks / 4);
  setLimit(BOOKKEEPING, freeChunks);
}

/**
 * Sets the room for bytes of streams, at any time: bytes above it stay until consumed or acknowledged. `segments` as in
 * `layOut`.
 */
export function limitStreamSegments(segments: u32): void {
  let streams = <u32>((poolEnd - poolStart) >> CHUNK_BITS) / 2;
  if (segments > 0) streams = min(streams, max(MIN_STREAMS, segments / 4));
  setLimit(BYTES_OUT, streams / 2);
  setLimit(BYTES_IN, streams - streams / 2);
}

/** Takes a chunk on `budget`, its content undefined; 0 when the budget or the pool is exhausted. */
export function takeChunk(budget: u32): usize {
  const count = load<u32>(used + (budget << 2));
  if (count >= load<u32>(limits + (budget << 2))) return 0;
  let chunk = freeHead;
  if (chunk) {
    freeHead = load<usize>(chunk);
  } else {
    if (untouched >= poolEnd) return 0;
    chunk = untouched;
    untouched += CHUNK;
  }
  store<u32>(used + (budget << 2), count + 1);
  freeChunks--;
  return chunk;
}

/** Takes a chunk of zeros. */
export function takeClearChunk(budget: u32): usize {
  const chunk = takeChunk(budget);
  if (chunk) memory.fill(chunk, 0, CHUNK);
  return chunk;
}

export function releaseChunk(chunk: usize, budget: u32): void {
  abortUnless(chunk >= poolStart && chunk < untouched);
  store<usize>(chunk, freeHead);
  freeHead = chunk;
  freeChunks++;
  store<u32>(used + (budget << 2), load<u32>(used + (budget << 2)) - 1);
}

/**
 * Returns whether received bytes behind a gap may take another chunk: three quarters of the budget, at least one chunk.
 */
export function roomBehindGap(): bool {
  const limit = load<u32>(limits + (BYTES_IN << 2));
  return load<u32>(used + (BYTES_IN << 2)) < limit - limit / 4;
}

/**
 * Received bytes for which credit may still be given. Three sixteenths of the budget stay free: chunks that are filled
 * in part, and bytes that are on their way, then leave the last eighth alone.
 */
export function roomForUnread(): u64 {
  const limit = load<u32>(limits + (BYTES_IN << 2));
  const most = limit - (limit / 16) * 3;
  const count = load<u32>(used + (BYTES_IN << 2));
  return count < most ? (<u64>(most - count)) << CHUNK_BITS : 0;
}

/** Returns whether half of `budget` is in use. */
export function scarce(budget: u32): bool {
  return load<u32>(used + (budget << 2)) >= load<u32>(limits + (budget << 2)) / 2;
}

/** Bytes until half of `budget` is in use. */
export function bytesUntilScarce(budget: u32): u64 {
  const half = load<u32>(limits + (budget << 2)) / 2;
  const count = load<u32>(used + (budget << 2));
  return count < half ? (<u64>(half - count)) << CHUNK_BITS : 0;
}

/** Returns whether at most an eighth of `budget` is left. */
export function nearlyUsedUp(budget: u32): bool {
  const limit = load<u32>(limits + (budget << 2));
  return load<u32>(used + (budget << 2)) >= limit - limit / 8;
}

/** Bytes that each of `owners` may hold of the half of `budget` that is reserved for connections that hold little. */
export function fairShare(budget: u32, owners: u32): u64 {
  return ((<u64>load<u32>(limits + (budget << 2))) << (CHUNK_BITS - 1)) / owners;
}

/**
 * Bytes that one of `owners` may hold of `budget` when it is scarce: a quarter of what is left (dynamic thresholds,
 * Choudhury and Hahne 1998). So a few owners that never give anything back leave much to the others, however many there
 * are. The last eighth is divided among all.
 */
export function shareOfRest(budget: u32, owners: u32): u64 {
  const limit = load<u32>(limits + (budget << 2));
  const kept = limit / 8;
  const count = load<u32>(used + (budget << 2));
  const left = count < limit - kept ? limit - kept - count : 0;
  return max((<u64>(left / 4)) << CHUNK_BITS, ((<u64>kept) << CHUNK_BITS) / owners);
}

/** Capacity of all chunks of `budget`, bytes. */
export function budgetBytes(budget: u32): u64 {
  return (<u64>load<u32>(limits + (budget << 2))) << CHUNK_BITS;
}

/** Chunks charged to `budget`. */
export function chunksUsed(budget: u32): u32 {
  return load<u32>(used + (budget << 2));
}

/** First address of the pool that was never used. */
export function poolTop(): usize {
  return untouched;
}

function setLimit(budget: u32, chunks: u32): void {
  store<u32>(limits + (budget << 2), max(1, chunks));
}
