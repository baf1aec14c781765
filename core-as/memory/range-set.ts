/**
 * RangeSet: sorted, disjoint, non-adjacent half-open ranges of offsets.
 *
 * A set is one u32 in its owner: the address of its top chunk (range-leaves.ts), or 0 while it is empty, so a stream
 * without gaps owns none. A chunk holds up to 127 pairs of u32: the low halves of the offsets. All offsets of a set lie
 * within 2^32 above `base`, which every call passes, so comparing `value - base` orders them although the low halves
 * wrap.
 *
 * A set holds 127 ranges, or one for each KiB that it reaches above `base`: packets lost one by one leave half as many,
 * and a peer that sends single bytes with gaps between them takes at most a few hundredths of its window. A full set
 * refuses (`insert`) or swallows the gap to a neighbour (`insertMerging`); the owner knows which is harmless. Finding a
 * range takes O(log n).
 */
import { closePairs, dropLeaf, LEAF_RANGES, leafAt, leafCount, newLeaf, openPair, pairAt, rangesIn, settle } from './range-leaves';

export { freeSet as clear } from './range-leaves';

/** Bytes above the base for each range beyond those of one chunk, as a shift. */
const SPAN_BITS: u32 = 10;

/** Result of `seek`. */
export let outStart: u64 = 0;
export let outEnd: u64 = 0;

/** Position of the range that `locate` found: its leaf and its index in that leaf. */
let leafIndex: u32 = 0;
let leaf: usize = 0;
let index: u32 = 0;

/** Number of ranges. */
export function count(set: usize): u32 {
  const top = load<usize>(set);
  return top ? rangesIn(top) : 0;
}

/** Returns whether a range ends above `offset`; `outStart` and `outEnd` are the first such range. */
export function seek(set: usize, base: u64, offset: u64): bool {
  const top = load<usize>(set);
  if (!top) return false;
  locate(top, <u32>base, <u32>(offset - base));
  if (index == rangesIn(leaf)) return false;
  outStart = absolute(load<u32>(pairAt(leaf, index)), base);
  outEnd = absolute(load<u32>(pairAt(leaf, index), 4), base);
  return true;
}

/** End of the range that contains `offset` or ends there, `offset` if none does; above `base`. */
export function endFrom(set: usize, base: u64, offset: u64): u64 {
  return seek(set, base, offset - 1) && outStart <= offset ? outEnd : offset;
}

/** Sum of the lengths of all ranges. */
export function covered(set: usize): u64 {
  const top = load<usize>(set);
  let sum: u64 = 0;
  if (!top) return sum;
  for (let i: u32 = 0; i < leafCount(top); i++) {
    const chunk = leafAt(top, i);
    for (let j: u32 = 0; j < rangesIn(chunk); j++) sum += <u64>lengthAt(pairAt(chunk, j));
  }
  return sum;
}

/** Adds `start` … `end`; false, with nothing changed, when there is no room or no chunk. */
export function insert(set: usize, base: u64, start: u64, end: u64): bool {
  return add(set, base, <u32>(start - base), <u32>(end - base), false);
}

/** As `insert`, but a full set grows a neighbour over the gap instead: the set then covers more than was added. */
export function insertMerging(set: usize, base: u64, start: u64, end: u64): bool {
  return add(set, base, <u32>(start - base), <u32>(end - base), true);
}

/**
 * Removes `start` … `end`. A split that finds no room leaves the range intact: the set then covers more than it should.
 */
export function remove(set: usize, base: u64, start: u64, end: u64): void {
  const top = load<usize>(set);
  if (!top || start >= end) return;
  const low = <u32>base;
  const from = <u32>(start - base);
  const to = <u32>(end - base);
  locate(top, low, from);
  if (index == rangesIn(leaf)) return;
  const at = pairAt(leaf, index);
  const s = load<u32>(at) - low;
  const e = load<u32>(at, 4) - low;
  if (s < from && e > to) {
    divide(set, low, from, to, e);
    return;
  }
  const first = leafIndex;
  if (s < from) {
    store<u32>(at, from + low, 4);
    index++;
  }
  takeOut(top, low, to);
  if (index < rangesIn(leaf) && load<u32>(pairAt(leaf, index)) - low < to) store<u32>(pairAt(leaf, index), to + low);
  const last = leafIndex;
  settle(set, last);
  if (first < last) settle(set, first);
}

/** Splits the located range, which ends at `end`, in two: up to `from`, and from `to` on. */
function divide(set: usize, low: u32, from: u32, to: u32, end: u32): void {
  const top = load<usize>(set);
  if (!hasRoom(top, reach(top, low))) return;
  const second = openPair(set, leafIndex, index + 1);
  if (!second) return;
  store<u32>(second, to + low);
  store<u32>(second, end + low, 4);
  locate(load<usize>(set), low, from - 1);
  store<u32>(pairAt(leaf, index), from + low, 4);
}

/**
 * Removes all ranges from the located position on that end at or below `to`; the position is then the one after them.
 */
function takeOut(top: usize, low: u32, to: u32): void {
  for (;;) {
    const n = rangesIn(leaf);
    let end = index;
    while (end < n && load<u32>(pairAt(leaf, end), 4) - low <= to) end++;
    closePairs(top, leaf, index, end);
    if (end < n) return;
    const isLast = leafIndex + 1 == leafCount(top);
    if (index == 0 && leafCount(top) > 1) {
      dropLeaf(top, leafIndex);
      if (isLast) leafIndex--;
    } else if (!isLast) leafIndex++;
    leaf = leafAt(top, leafIndex);
    index = isLast ? rangesIn(leaf) : 0;
    if (isLast) return;
  }
}

function add(set: usize, base: u64, from: u32, to: u32, merge: bool): bool {
  let top = load<usize>(set);
  if (!top) {
    top = newLeaf();
    if (!top) return false;
    store<usize>(set, top);
  }
  const low = <u32>base;
  // The first range that touches or lies above from…to.
  locate(top, low, from > 0 ? from - 1 : 0);
  if (index == rangesIn(leaf) || load<u32>(pairAt(leaf, index)) - low > to) return addNew(set, low, from, to, merge);
  join(set, low, from, to);
  return true;
}

/**
 * Extends the located range, which touches `from` … `to`, by that, and merges the following ranges that it then
 * touches.
 */
function join(set: usize, low: u32, from: u32, to: u32): void {
  const top = load<usize>(set);
  const first = leafIndex;
  const at = pairAt(leaf, index);
  const end = max(to, load<u32>(at, 4) - low);
  store<u32>(at, min(from, load<u32>(at) - low) + low);
  store<u32>(at, end + low, 4);
  index++;
  takeOut(top, low, end);
  if (index < rangesIn(leaf)) {
    const following = pairAt(leaf, index);
    if (load<u32>(following) - low <= end) {
      store<u32>(at, load<u32>(following, 4), 4);
      closePairs(top, leaf, index, index + 1);
      if (rangesIn(leaf) == 0) dropLeaf(top, leafIndex);
    }
  }
  settle(set, first);
}

/** Inserts a range that touches no other, before the located one. */
function addNew(set: usize, low: u32, from: u32, to: u32, merge: bool): bool {
  const top = load<usize>(set);
  let pair: usize = hasRoom(top, max(reach(top, low), to)) ? openPair(set, leafIndex, index) : 0;
  if (pair) {
    store<u32>(pair, from + low);
    store<u32>(pair, to + low, 4);
    return true;
  }
  if (!merge || rangesIn(leaf) == 0) return false;
  pair = pairAt(leaf, min(index, rangesIn(leaf) - 1));
  store<u32>(pair, min(from, load<u32>(pair) - low) + low);
  store<u32>(pair, max(to, load<u32>(pair, 4) - low) + low, 4);
  return true;
}

/** Locates the first range that ends above `value`, relative to the base, or the position after all. */
function locate(top: usize, low: u32, value: u32): void {
  let left: u32 = 0;
  let right = leafCount(top) - 1;
  while (left < right) {
    const middle = (left + right) >> 1;
    if (lastEnd(leafAt(top, middle), low) > value) right = middle;
    else left = middle + 1;
  }
  leafIndex = left;
  leaf = leafAt(top, left);
  left = 0;
  right = rangesIn(leaf);
  while (left < right) {
    const middle = (left + right) >> 1;
    if (load<u32>(pairAt(leaf, middle), 4) - low > value) right = middle;
    else left = middle + 1;
  }
  index = left;
}

/** Returns whether a set that reaches `span` bytes above its base may take another range. */
function hasRoom(top: usize, span: u32): bool {
  return rangesIn(top) < max(LEAF_RANGES, span >> SPAN_BITS);
}

/** Bytes from the base to the end of the last range. */
function reach(top: usize, low: u32): u32 {
  return rangesIn(top) ? lastEnd(leafAt(top, leafCount(top) - 1), low) : 0;
}

function lengthAt(pair: usize): u32 {
  return load<u32>(pair, 4) - load<u32>(pair);
}

function lastEnd(chunk: usize, low: u32): u32 {
  return load<u32>(pairAt(chunk, rangesIn(chunk) - 1), 4) - low;
}

/** The offset at or above `base` whose low half is `low`. */
function absolute(low: u32, base: u64): u64 {
  return base + <u64>(low - <u32>base);
}
