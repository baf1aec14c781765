/**
 * ChunkMap: a sparse window over an endless byte sequence, from offset to 1 KiB chunk in two loads.
 *
 * A map is 16 directory pointers (64 bytes inside its owner); a directory is a chunk of 256 chunk pointers. Positions
 * wrap: chunk number n lives in directory (n >> 8) & 15, entry n & 255, so the window may span up to 15 directories
 * (3.75 MiB) wherever it starts. The owner knows the start and end of the window; the map does not.
 *
 * Used for send buffers, receive buffers and, keyed by packet number × record size, for sent packets.
 */
import { BOOKKEEPING, CHUNK, CHUNK_BITS, releaseChunk, takeChunk, takeClearChunk } from './chunks';

/** Bytes of a map inside its owner. */
export const MAP_SIZE: usize = 64;
/** Longest window that never overlaps itself, wherever it starts. */
export const MAP_WINDOW: u32 = 15 * 256 * 1_024;

const DIRECTORIES: u32 = 16;
const ENTRIES: u32 = 256;
const OFFSET_MASK: u32 = <u32>CHUNK - 1;

/** Address of the byte at `offset`, 0 when its chunk is missing. Valid to the end of the chunk. */
export function addressOf(map: usize, offset: u64): usize {
  const entry = existingEntry(map, <u32>(offset >> CHUNK_BITS));
  if (!entry) return 0;
  const chunk = load<usize>(entry);
  return chunk ? chunk + (<u32>offset & OFFSET_MASK) : 0;
}

/** As `addressOf`, but takes a missing chunk on `budget`; `clear` zeroes it. Returns 0 when none is left. */
export function reserve(map: usize, offset: u64, budget: u32, clear: bool): usize {
  const entry = entryFor(map, <u32>(offset >> CHUNK_BITS));
  if (!entry) return 0;
  let chunk = load<usize>(entry);
  if (!chunk) {
    chunk = clear ? takeClearChunk(budget) : takeChunk(budget);
    if (!chunk) return 0;
    store<usize>(entry, chunk);
  }
  return chunk + (<u32>offset & OFFSET_MASK);
}

/** Copies `length` bytes in at `offset`; returns how many fit before the chunks ran out. */
export function copyIn(map: usize, offset: u64, source: usize, length: u32, budget: u32): u32 {
  let done: u32 = 0;
  while (done < length) {
    const target = reserve(map, offset + done, budget, false);
    if (!target) break;
    const part = min(length - done, inChunk(offset + done));
    memory.copy(target, source + done, part);
    done += part;
  }
  return done;
}

/** Copies `length` bytes out from `offset`; all of them must be present. */
export function copyOut(map: usize, offset: u64, target: usize, length: u32): void {
  let done: u32 = 0;
  while (done < length) {
    const part = min(length - done, inChunk(offset + done));
    memory.copy(target + done, addressOf(map, offset + done), part);
    done += part;
  }
}

/** Moves the start of the window from `from` to `to`: frees every chunk and directory entirely below. */
export function releaseBelow(map: usize, from: u64, to: u64, budget: u32): void {
  let number = <u32>(from >> CHUNK_BITS);
  const last = <u32>(to >> CHUNK_BITS);
  while (number != last) {
    const directory = load<usize>(slot(map, number));
    if (directory) {
      freeEntry(directory + ((number & (ENTRIES - 1)) << 2), budget);
      if ((number & (ENTRIES - 1)) == ENTRIES - 1) freeDirectory(map, number);
    }
    number++;
  }
}

/** Call when the window is empty and stands at `at`: frees the chunk and the directory that were kept for it. */
export function releaseRest(map: usize, at: u64, budget: u32): void {
  const number = <u32>(at >> CHUNK_BITS);
  const directory = load<usize>(slot(map, number));
  if (!directory) return;
  freeEntry(directory + ((number & (ENTRIES - 1)) << 2), budget);
  freeDirectory(map, number);
}

/** Frees everything. */
export function releaseAll(map: usize, budget: u32): void {
  for (let i: u32 = 0; i < DIRECTORIES; i++) {
    const directory = load<usize>(map + (i << 2));
    if (!directory) continue;
    for (let entry: u32 = 0; entry < ENTRIES; entry++) freeEntry(directory + (entry << 2), budget);
    freeDirectory(map, i << 8);
  }
}

/** Bytes from `offset` to the end of its chunk. */
export function inChunk(offset: u64): u32 {
  return <u32>CHUNK - (<u32>offset & OFFSET_MASK);
}

function slot(map: usize, number: u32): usize {
  return map + (((number >> 8) & (DIRECTORIES - 1)) << 2);
}

function existingEntry(map: usize, number: u32): usize {
  const directory = load<usize>(slot(map, number));
  return directory ? directory + ((number & (ENTRIES - 1)) << 2) : 0;
}

function entryFor(map: usize, number: u32): usize {
  const at = slot(map, number);
  let directory = load<usize>(at);
  if (!directory) {
    directory = takeClearChunk(BOOKKEEPING);
    if (!directory) return 0;
    store<usize>(at, directory);
  }
  return directory + ((number & (ENTRIES - 1)) << 2);
}

function freeEntry(entry: usize, budget: u32): void {
  const chunk = load<usize>(entry);
  if (!chunk) return;
  releaseChunk(chunk, budget);
  store<usize>(entry, 0);
}

function freeDirectory(map: usize, number: u32): void {
  const at = slot(map, number);
  releaseChunk(load<usize>(at), BOOKKEEPING);
  store<usize>(at, 0);
}
