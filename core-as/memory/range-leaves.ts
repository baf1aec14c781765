/**
 * Storage of a RangeSet (range-set.ts): one chunk, or several under a root.
 *
 *   leaf:  u32 ranges · u32 0 · up to 127 pairs of u32
 *   root:  u32 ranges in all · u32 leaves · up to 254 addresses of leaves, in the order of their ranges
 *
 * The top of a set is a leaf while one is enough. Two neighbouring leaves that hold few ranges are joined, so leaves
 * hold at least 48 ranges on average, whatever the order of insertions and removals.
 */
import { BOOKKEEPING, releaseChunk, takeChunk } from './chunks';

/** Ranges per leaf. */
export const LEAF_RANGES: u32 = 127;
/** Bytes in front of the pairs, and of a pair. */
const FIRST: usize = 8;
const PAIR: u32 = 8;

const MAX_LEAVES: u32 = 254;
/** Our constant: neighbours with at most this many ranges together are joined. */
const JOINED: u32 = 96;

/** An empty leaf as the top of a set; 0 when no chunk is left. */
export function newLeaf(): usize {
  const leaf = takeChunk(BOOKKEEPING);
  if (leaf) store<u64>(leaf, 0);
  return leaf;
}

/** Ranges of a leaf, or under a root. */
export function rangesIn(chunk: usize): u32 {
  return load<u32>(chunk);
}

export function leafCount(top: usize): u32 {
  return max<u32>(load<u32>(top, 4), 1);
}

export function leafAt(top: usize, index: u32): usize {
  return load<u32>(top, 4) ? load<usize>(top + FIRST + (index << 2)) : top;
}

/** Address of a pair. */
export function pairAt(leaf: usize, index: u32): usize {
  return leaf + FIRST + index * PAIR;
}

/**
 * Makes room for a pair at `index` of leaf `at`, content undefined; returns its address, or 0 with nothing changed when
 * no chunk is left. The top may be another chunk afterwards.
 */
export function openPair(set: usize, at: u32, index: u32): usize {
  let leaf = leafAt(load<usize>(set), at);
  if (rangesIn(leaf) == LEAF_RANGES) {
    // Ranges mostly come in rising order: appending leaves full leaves behind.
    const isAppended = at + 1 == leafCount(load<usize>(set)) && index == LEAF_RANGES;
    const kept = isAppended ? LEAF_RANGES : LEAF_RANGES / 2;
    if (!split(set, at, kept)) return 0;
    if (index > kept || isAppended) {
      leaf = leafAt(load<usize>(set), at + 1);
      index -= kept;
    }
  }
  const pair = pairAt(leaf, index);
  const n = rangesIn(leaf);
  memory.copy(pair + PAIR, pair, (n - index) * PAIR);
  setRanges(load<usize>(set), leaf, n + 1);
  return pair;
}

/** Removes the pairs from index `from` up to `to` from a leaf; call `settle` afterwards. */
export function closePairs(top: usize, leaf: usize, from: u32, to: u32): void {
  if (from == to) return;
  const n = rangesIn(leaf);
  memory.copy(pairAt(leaf, from), pairAt(leaf, to), (n - to) * PAIR);
  setRanges(top, leaf, n + from - to);
}

/** Joins leaf `at` with its neighbours when they hold little, and frees it when it is empty. */
export function settle(set: usize, at: u32): void {
  const top = load<usize>(set);
  if (!top) return;
  if (rangesIn(top) == 0) {
    freeSet(set);
    return;
  }
  if (at + 1 < leafCount(top)) join(top, at);
  if (at > 0 && at < leafCount(top)) join(top, at - 1);
  if (load<u32>(top, 4) != 1) return;
  store<usize>(set, leafAt(top, 0));
  releaseChunk(top, BOOKKEEPING);
}

/** Frees every chunk. */
export function freeSet(set: usize): void {
  const top = load<usize>(set);
  if (!top) return;
  for (let i: u32 = 0; i < load<u32>(top, 4); i++) releaseChunk(leafAt(top, i), BOOKKEEPING);
  releaseChunk(top, BOOKKEEPING);
  store<usize>(set, 0);
}

/** Frees leaf `at`, which is empty and not the only one. */
export function dropLeaf(top: usize, at: u32): void {
  releaseChunk(leafAt(top, at), BOOKKEEPING);
  const slot = top + FIRST + (at << 2);
  const leaves = load<u32>(top, 4) - 1;
  memory.copy(slot, slot + 4, (leaves - at) << 2);
  store<u32>(top, leaves, 4);
}

/** Moves the pairs of leaf `at` from index `kept` on to a new leaf after it; false when no chunk is left. */
function split(set: usize, at: u32, kept: u32): bool {
  const leaf = newLeaf();
  if (!leaf) return false;
  if (!ensureRoot(set)) {
    releaseChunk(leaf, BOOKKEEPING);
    return false;
  }
  const top = load<usize>(set);
  const leaves = load<u32>(top, 4);
  const slot = top + FIRST + ((at + 1) << 2);
  memory.copy(slot + 4, slot, (leaves - at - 1) << 2);
  store<usize>(slot, leaf);
  store<u32>(top, leaves + 1, 4);
  moveEnd(leafAt(top, at), kept, leaf);
  return true;
}

/** Makes the top a root with room for another leaf. */
function ensureRoot(set: usize): bool {
  const top = load<usize>(set);
  if (load<u32>(top, 4)) return load<u32>(top, 4) < MAX_LEAVES;
  const root = takeChunk(BOOKKEEPING);
  if (!root) return false;
  store<u32>(root, rangesIn(top));
  store<u32>(root, 1, 4);
  store<usize>(root + FIRST, top);
  store<usize>(set, root);
  return true;
}

/** Joins leaves `at` and `at + 1` if they hold little. */
function join(top: usize, at: u32): void {
  const leaf = leafAt(top, at);
  const following = leafAt(top, at + 1);
  if (rangesIn(leaf) + rangesIn(following) > JOINED) return;
  moveEnd(following, 0, leaf);
  dropLeaf(top, at + 1);
}

/** Moves the pairs of `from` from index `kept` on to the end of `to`. */
function moveEnd(from: usize, kept: u32, to: usize): void {
  const moved = rangesIn(from) - kept;
  memory.copy(pairAt(to, rangesIn(to)), pairAt(from, kept), moved * PAIR);
  store<u32>(to, rangesIn(to) + moved);
  store<u32>(from, kept);
}

function setRanges(top: usize, leaf: usize, n: u32): void {
  if (top != leaf) store<u32>(top, rangesIn(top) + n - rangesIn(leaf));
  store<u32>(leaf, n);
}
