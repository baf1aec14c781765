/**
 * The last 8,192 packet numbers received, one bit each (1 KiB): the replay window, and also the set from which ACK
 * frames are built.
 *
 * Bit n & 8191 stands for number n while n lies in (largest - 8192, largest]. Moving `largest` up clears the bits it
 * passes. `isNew` is called before decryption; `mark` only after the tag matched and the packet was processed.
 *
 * In memory a window is 16 blocks of 64 bytes, and the same block of all connections is contiguous: a connection that
 * has received fewer than 512 packets, as most idle ones have, uses only the first, and the pages of further blocks
 * stay untouched. A window is not cleared for the next connection of its slot: `advance` clears what it passes.
 */
import { connectionCount, REPLAY_SIZE, replayWindows } from '../memory/layout';
import { Connection, slotOf } from '../records/connection';

export const WINDOW: u64 = 8_192;
const BLOCK: usize = 64;
const BLOCKS: usize = REPLAY_SIZE / BLOCK;
/** Numbers per block, as a shift. */
const BLOCK_SHIFT: u64 = 9;

/** Returns whether `number` was not received and is not too old. */
export function isNew(c: Connection, number: u64): bool {
  if (<i64>number > c.largestReceived) return true;
  if (<u64>c.largestReceived - number >= WINDOW) return false;
  return !isMarked(c, number);
}

/** Marks `number`; false if it is already marked or too old. */
export function mark(c: Connection, number: u64): bool {
  if (!isNew(c, number)) return false;
  if (<i64>number > c.largestReceived) advance(c, number);
  const word = wordOf(c, number);
  store<u64>(word, load<u64>(word) | ((<u64>1) << (number & 63)));
  return true;
}

/** Returns whether `number`, inside the window, was received. */
export function isMarked(c: Connection, number: u64): bool {
  return ((load<u64>(wordOf(c, number)) >> (number & 63)) & 1) != 0;
}

/**
 * The largest number in [floor, from] that was received (`wanted` true) or was not (false); floor - 1 if there is none.
 * Whole words are skipped, so a run of any length costs a step per 64 numbers.
 */
export function scanDown(c: Connection, from: i64, floor: i64, wanted: bool): i64 {
  let number = from;
  while (number >= floor) {
    const bit = <u64>number & 63;
    let word = load<u64>(wordOf(c, <u64>number));
    if (!wanted) word = ~word;
    word <<= 63 - bit;
    if (word) {
      number -= <i64>clz<u64>(word);
      return number >= floor ? number : floor - 1;
    }
    number -= <i64>bit + 1;
  }
  return floor - 1;
}

/** Lowest number the window still covers. */
export function windowFloor(c: Connection): u64 {
  const above = c.largestReceived + 1;
  return above > <i64>WINDOW ? <u64>above - WINDOW : 0;
}

function advance(c: Connection, number: u64): void {
  const step = <u64>(<i64>number - c.largestReceived);
  if (step >= WINDOW) {
    for (let block: usize = 0; block < BLOCKS; block++) memory.fill(blockAt(c, block), 0, BLOCK);
  } else {
    for (let n = <u64>(c.largestReceived + 1); n <= number; ) {
      if ((n & 63) == 0 && n + 63 <= number) {
        store<u64>(wordOf(c, n), 0);
        n += 64;
      } else {
        const word = wordOf(c, n);
        store<u64>(word, load<u64>(word) & ~((<u64>1) << (n & 63)));
        n++;
      }
    }
  }
  c.largestReceived = <i64>number;
}

function wordOf(c: Connection, number: u64): usize {
  const bit = number & (WINDOW - 1);
  return blockAt(c, <usize>(bit >> BLOCK_SHIFT)) + ((<usize>((bit >> 6) & 7)) << 3);
}

function blockAt(c: Connection, block: usize): usize {
  return replayWindows + (block * connectionCount + slotOf(c)) * BLOCK;
}
