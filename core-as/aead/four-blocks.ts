/**
 * Four ChaCha20 blocks at once, with Poly1305 interleaved.
 *
 * Vertical layout: x0 … x15 are the 16 words of the state; each vector holds one word of four consecutive blocks. One
 * round is then four quarter rounds (RFC 8439 §2.1) on whole vectors, and nothing is rotated between column and
 * diagonal rounds.
 *
 *   1. Two Poly1305 blocks in each of the 20 rounds while `count` lasts (formula and bounds: poly1305.ts). The integer
 *      units compute them while the vector units work, so up to 40 blocks cost next to nothing.
 *   2. Poly1305 blocks beyond 40.
 *   3. Add the initial state, transpose the 4 × 4 words, XOR them onto the text.
 *
 * The third row, x8 … x11, lives in memory: 16 vectors and a temporary exceed 16 registers, and a row that we choose is
 * cheaper than what compilers spill. The loop is not unrolled: unrolled, V8 spills more and is a third slower.
 */
import { advance, rotate8, rotate16, rotateLeft, STATE } from './chacha';
import { POLY_STATE, polyBlocks, WHOLE } from './poly1305';
import { xorRow } from './xor-row';

/** Poly1305 blocks hidden in one call. */
export const FOUR_HIDES: i32 = 40;

/** The third row of the current state. */
export const ROW_C: usize = memory.data(64, 16);

/**
 * XORs four blocks of key stream onto memory: 64 bytes at `first`, 192 at `rest`; the counter in `STATE` advances by
 * four. First authenticates `count` blocks of 16 bytes from `from` on, which may lie in the text that is about to
 * change.
 */
export function fourBlocks(first: usize, rest: usize, from: usize, count: i32): void {
  let h0 = load<u64>(POLY_STATE);
  let h1 = load<u64>(POLY_STATE, 8);
  let h2 = load<u64>(POLY_STATE, 16);
  let h3 = load<u64>(POLY_STATE, 24);
  const r0 = load<u64>(POLY_STATE, 32);
  const r1 = load<u64>(POLY_STATE, 40);
  const r2 = load<u64>(POLY_STATE, 48);
  const r3 = load<u64>(POLY_STATE, 56);
  const s1 = r1 + (r1 >> 2);
  const s2 = r2 + (r2 >> 2);
  const s3 = r3 + (r3 >> 2);
  let d0: u64;
  let d1: u64;
  let d2: u64;
  let d3: u64;

  let x0 = v128.load_splat<u32>(STATE, 0);
  let x1 = v128.load_splat<u32>(STATE, 4);
  let x2 = v128.load_splat<u32>(STATE, 8);
  let x3 = v128.load_splat<u32>(STATE, 12);
  let x4 = v128.load_splat<u32>(STATE, 16);
  let x5 = v128.load_splat<u32>(STATE, 20);
  let x6 = v128.load_splat<u32>(STATE, 24);
  let x7 = v128.load_splat<u32>(STATE, 28);
  v128.store(ROW_C, v128.load_splat<u32>(STATE, 32), 0);
  v128.store(ROW_C, v128.load_splat<u32>(STATE, 36), 16);
  v128.store(ROW_C, v128.load_splat<u32>(STATE, 40), 32);
  v128.store(ROW_C, v128.load_splat<u32>(STATE, 44), 48);
  let x12 = i32x4.add(v128.load_splat<u32>(STATE, 48), i32x4(0, 1, 2, 3));
  let x13 = v128.load_splat<u32>(STATE, 52);
  let x14 = v128.load_splat<u32>(STATE, 56);
  let x15 = v128.load_splat<u32>(STATE, 60);
  let c: v128;

  for (let round = 0; round < 20; round += 2) {
    if (count > 0) {
      h0 += <u64>load<u32>(from);
      h1 += <u64>load<u32>(from, 4);
      h2 += <u64>load<u32>(from, 8);
      h3 += <u64>load<u32>(from, 12) + WHOLE;
      d0 = h0 * r0 + h1 * s3 + h2 * s2 + h3 * s1;
      d1 = h0 * r1 + h1 * r0 + h2 * s3 + h3 * s2 + (d0 >> 32);
      d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s3 + (d1 >> 32);
      d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + (d2 >> 32);
      h0 = (d0 & 0xffffffff) + (d3 >> 34) * 5;
      h1 = d1 & 0xffffffff;
      h2 = d2 & 0xffffffff;
      h3 = d3 & 0x3ffffffff;
      from += 16;
      count--;
    }
    // Column round
    c = v128.load(ROW_C, 0);
    x0 = i32x4.add(x0, x4);
    x12 = rotate16(v128.xor(x12, x0));
    c = i32x4.add(c, x12);
    x4 = rotateLeft(v128.xor(x4, c), 12);
    x0 = i32x4.add(x0, x4);
    x12 = rotate8(v128.xor(x12, x0));
    c = i32x4.add(c, x12);
    x4 = rotateLeft(v128.xor(x4, c), 7);
    v128.store(ROW_C, c, 0);
    c = v128.load(ROW_C, 16);
    x1 = i32x4.add(x1, x5);
    x13 = rotate16(v128.xor(x13, x1));
    c = i32x4.add(c, x13);
    x5 = rotateLeft(v128.xor(x5, c), 12);
    x1 = i32x4.add(x1, x5);
    x13 = rotate8(v128.xor(x13, x1));
    c = i32x4.add(c, x13);
    x5 = rotateLeft(v128.xor(x5, c), 7);
    v128.store(ROW_C, c, 16);
    if (count > 0) {
      h0 += <u64>load<u32>(from);
      h1 += <u64>load<u32>(from, 4);
      h2 += <u64>load<u32>(from, 8);
      h3 += <u64>load<u32>(from, 12) + WHOLE;
      d0 = h0 * r0 + h1 * s3 + h2 * s2 + h3 * s1;
      d1 = h0 * r1 + h1 * r0 + h2 * s3 + h3 * s2 + (d0 >> 32);
      d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s3 + (d1 >> 32);
      d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + (d2 >> 32);
      h0 = (d0 & 0xffffffff) + (d3 >> 34) * 5;
      h1 = d1 & 0xffffffff;
      h2 = d2 & 0xffffffff;
      h3 = d3 & 0x3ffffffff;
      from += 16;
      count--;
    }
    c = v128.load(ROW_C, 32);
    x2 = i32x4.add(x2, x6);
    x14 = rotate16(v128.xor(x14, x2));
    c = i32x4.add(c, x14);
    x6 = rotateLeft(v128.xor(x6, c), 12);
    x2 = i32x4.add(x2, x6);
    x14 = rotate8(v128.xor(x14, x2));
    c = i32x4.add(c, x14);
    x6 = rotateLeft(v128.xor(x6, c), 7);
    v128.store(ROW_C, c, 32);
    c = v128.load(ROW_C, 48);
    x3 = i32x4.add(x3, x7);
    x15 = rotate16(v128.xor(x15, x3));
    c = i32x4.add(c, x15);
    x7 = rotateLeft(v128.xor(x7, c), 12);
    x3 = i32x4.add(x3, x7);
    x15 = rotate8(v128.xor(x15, x3));
    c = i32x4.add(c, x15);
    x7 = rotateLeft(v128.xor(x7, c), 7);
    v128.store(ROW_C, c, 48);
    if (count > 0) {
      h0 += <u64>load<u32>(from);
      h1 += <u64>load<u32>(from, 4);
      h2 += <u64>load<u32>(from, 8);
      h3 += <u64>load<u32>(from, 12) + WHOLE;
      d0 = h0 * r0 + h1 * s3 + h2 * s2 + h3 * s1;
      d1 = h0 * r1 + h1 * r0 + h2 * s3 + h3 * s2 + (d0 >> 32);
      d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s3 + (d1 >> 32);
      d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + (d2 >> 32);
      h0 = (d0 & 0xffffffff) + (d3 >> 34) * 5;
      h1 = d1 & 0xffffffff;
      h2 = d2 & 0xffffffff;
      h3 = d3 & 0x3ffffffff;
      from += 16;
      count--;
    }
    // Diagonal round
    c = v128.load(ROW_C, 32);
    x0 = i32x4.add(x0, x5);
    x15 = rotate16(v128.xor(x15, x0));
    c = i32x4.add(c, x15);
    x5 = rotateLeft(v128.xor(x5, c), 12);
    x0 = i32x4.add(x0, x5);
    x15 = rotate8(v128.xor(x15, x0));
    c = i32x4.add(c, x15);
    x5 = rotateLeft(v128.xor(x5, c), 7);
    v128.store(ROW_C, c, 32);
    c = v128.load(ROW_C, 48);
    x1 = i32x4.add(x1, x6);
    x12 = rotate16(v128.xor(x12, x1));
    c = i32x4.add(c, x12);
    x6 = rotateLeft(v128.xor(x6, c), 12);
    x1 = i32x4.add(x1, x6);
    x12 = rotate8(v128.xor(x12, x1));
    c = i32x4.add(c, x12);
    x6 = rotateLeft(v128.xor(x6, c), 7);
    v128.store(ROW_C, c, 48);
    if (count > 0) {
      h0 += <u64>load<u32>(from);
      h1 += <u64>load<u32>(from, 4);
      h2 += <u64>load<u32>(from, 8);
      h3 += <u64>load<u32>(from, 12) + WHOLE;
      d0 = h0 * r0 + h1 * s3 + h2 * s2 + h3 * s1;
      d1 = h0 * r1 + h1 * r0 + h2 * s3 + h3 * s2 + (d0 >> 32);
      d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s3 + (d1 >> 32);
      d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + (d2 >> 32);
      h0 = (d0 & 0xffffffff) + (d3 >> 34) * 5;
      h1 = d1 & 0xffffffff;
      h2 = d2 & 0xffffffff;
      h3 = d3 & 0x3ffffffff;
      from += 16;
      count--;
    }
    c = v128.load(ROW_C, 0);
    x2 = i32x4.add(x2, x7);
    x13 = rotate16(v128.xor(x13, x2));
    c = i32x4.add(c, x13);
    x7 = rotateLeft(v128.xor(x7, c), 12);
    x2 = i32x4.add(x2, x7);
    x13 = rotate8(v128.xor(x13, x2));
    c = i32x4.add(c, x13);
    x7 = rotateLeft(v128.xor(x7, c), 7);
    v128.store(ROW_C, c, 0);
    c = v128.load(ROW_C, 16);
    x3 = i32x4.add(x3, x4);
    x14 = rotate16(v128.xor(x14, x3));
    c = i32x4.add(c, x14);
    x4 = rotateLeft(v128.xor(x4, c), 12);
    x3 = i32x4.add(x3, x4);
    x14 = rotate8(v128.xor(x14, x3));
    c = i32x4.add(c, x14);
    x4 = rotateLeft(v128.xor(x4, c), 7);
    v128.store(ROW_C, c, 16);
  }
  store<u64>(POLY_STATE, h0);
  store<u64>(POLY_STATE, h1, 8);
  store<u64>(POLY_STATE, h2, 16);
  store<u64>(POLY_STATE, h3, 24);
  if (count > 0) polyBlocks(from, count, WHOLE);

  xorRow(first, rest, 0, x0, x1, x2, x3);
  xorRow(first, rest, 16, x4, x5, x6, x7);
  xorRow(first, rest, 32, v128.load(ROW_C), v128.load(ROW_C, 16), v128.load(ROW_C, 32), v128.load(ROW_C, 48));
  xorRow(first, rest, 48, i32x4.add(x12, i32x4(0, 1, 2, 3)), x13, x14, x15);
  advance(4);
}
