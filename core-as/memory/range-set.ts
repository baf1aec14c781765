/**
 * RangeSet: sorted, disjoint, non-adjacent half-open ranges of offsets.
 *
 * A set is one u32 in its owner: the address of a chunk, or 0 while the set is empty, so a stream without gaps owns none. A
 * chunk holds up to 127 pairs of u32: the low halves of the offsets. All offsets of a set lie within 2^32 above `base`, which
 * every call passes, so comparing `value - base` orders them although the low halves wrap.
 *
 * A full set refuses (`insert`) or swallows the gap to a neighbour (`insertMerging`); the owner knows which is harmless.
 */
import { BOOKKEEPING, releaseChunk, takeChunk } from "./chunks";

/** Ranges a set can hold. */
export const RANGES: u32 = 127;

const FIRST: usize = 8;
const PAIR: u32 = 8;

/** Number of ranges. */
export function count(set: usize): u32 {
  const chunk = load<usize>(set);
  return chunk ? load<u32>(chunk) : 0;
}

export function startOf(set: usize, index: u32, base: u64): u64 {
  return absolute(load<u32>(pair(set, index)), base);
}

export function endOf(set: usize, index: u32, base: u64): u64 {
  return absolute(load<u32>(pair(set, index), 4), base);
}

/** Adds `start` … `end`; false, and nothing changed, when there is no room or no chunk. */
export function insert(set: usize, base: u64, start: u64, end: u64): bool {
  return add(set, base, <u32>(start - base), <u32>(end - base), false);
}

/** As `insert`, but a full set grows a neighbour over the gap instead: the set then covers more than was added. */
export function insertMerging(set: usize, base: u64, start: u64, end: u64): bool {
  return add(set, base, <u32>(start - base), <u32>(end - base), true);
}

/** Takes `start` … `end` out. A split that finds no room leaves the range whole: the set then covers more than it should. */
export function remove(set: usize, base: u64, start: u64, end: u64): void {
  const chunk = load<usize>(set);
  if (!chunk || start >= end) return;
  const low = <u32>base;
  const from = <u32>(start - base);
  const to = <u32>(end - base);
  let n = load<u32>(chunk);
  let i = firstEndingAfter(chunk, low, from);
  while (i < n) {
    const at = chunk + FIRST + i * PAIR;
    const s = load<u32>(at) - low;
    const e = load<u32>(at, 4) - low;
    if (s >= to) break;
    if (s < from && e > to) {
      if (n < RANGES) {
        openGap(chunk, i + 1, n++);
        store<u32>(at, from + low, 4);
        store<u32>(at + PAIR, to + low);
        store<u32>(at + PAIR, e + low, 4);
      }
      break;
    }
    if (s < from) {
      store<u32>(at, from + low, 4);
      i++;
    } else if (e > to) {
      store<u32>(at, to + low);
      break;
    } else {
      closeGap(chunk, i, i + 1, n--);
    }
  }
  settle(set, chunk, n);
}

/** Frees the chunk. */
export function clear(set: usize): void {
  const chunk = load<usize>(set);
  if (chunk) settle(set, chunk, 0);
}

function add(set: usize, base: u64, from: u32, to: u32, merge: bool): bool {
  let chunk = load<usize>(set);
  if (!chunk) {
    chunk = takeChunk(BOOKKEEPING);
    if (!chunk) return false;
    store<u32>(chunk, 0);
    store<usize>(set, chunk);
  }
  const low = <u32>base;
  let n = load<u32>(chunk);
  // Every range that touches from…to is [i, j).
  const i = from > 0 ? firstEndingAfter(chunk, low, from - 1) : 0;
  let j = i;
  let s = from;
  let e = to;
  while (j < n) {
    const at = chunk + FIRST + j * PAIR;
    if (load<u32>(at) - low > to) break;
    s = min(s, load<u32>(at) - low);
    e = max(e, load<u32>(at, 4) - low);
    j++;
  }
  if (j == i) {
    if (n == RANGES) {
      if (!merge) return false;
      const near = chunk + FIRST + min(i, n - 1) * PAIR;
      store<u32>(near, min(from, load<u32>(near) - low) + low);
      store<u32>(near, max(to, load<u32>(near, 4) - low) + low, 4);
      return true;
    }
    openGap(chunk, i, n++);
  } else if (j > i + 1) {
    closeGap(chunk, i + 1, j, n);
    n -= j - i - 1;
  }
  const at = chunk + FIRST + i * PAIR;
  store<u32>(at, s + low);
  store<u32>(at, e + low, 4);
  store<u32>(chunk, n);
  return true;
}

/** Index of the first range whose end lies above `value`, all relative to the base. */
function firstEndingAfter(chunk: usize, low: u32, value: u32): u32 {
  let left: u32 = 0;
  let right = load<u32>(chunk);
  while (left < right) {
    const middle = (left + right) >> 1;
    if (load<u32>(chunk + FIRST + middle * PAIR, 4) - low > value) right = middle;
    else left = middle + 1;
  }
  return left;
}

function openGap(chunk: usize, index: u32, n: u32): void {
  const at = chunk + FIRST + index * PAIR;
  memory.copy(at + PAIR, at, (n - index) * PAIR);
}

function closeGap(chunk: usize, from: u32, to: u32, n: u32): void {
  memory.copy(chunk + FIRST + from * PAIR, chunk + FIRST + to * PAIR, (n - to) * PAIR);
}

function settle(set: usize, chunk: usize, n: u32): void {
  if (n > 0) {
    store<u32>(chunk, n);
    return;
  }
  releaseChunk(chunk, BOOKKEEPING);
  store<usize>(set, 0);
}

/** The offset at or above `base` whose low half is `low`. */
function absolute(low: u32, base: u64): u64 {
  return base + <u64>(low - <u32>base);
}

function pair(set: usize, index: u32): usize {
  return load<usize>(set) + FIRST + index * PAIR;
}
