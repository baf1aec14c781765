/**
 * Eight ChaCha20 blocks at once, with Poly1305 interleaved: two sets of four in the layout of four-blocks.ts.
 *
 * Four blocks alone leave the vector units waiting for their own results (on a processor whose vector instructions take
 * two cycles, 560 of 680 cycles are one dependency chain); a second, independent set fills the gaps. Only the second
 * row of each set is kept in variables, the rest in memory: 32 vectors exceed the registers anyway, loads and stores
 * have units of their own, and a fixed address keeps compilers from mixing the sets in a way that spills. The Poly1305
 * blocks between the sets help with that too.
 */
import { advance, rotate16, rotate8, rotateLeft, STATE } from "./chacha";
import { POLY_STATE, polyBlocks, WHOLE } from "./poly1305";
import { xorRow } from "./xor-row";

/** Poly1305 blocks hidden in one call. */
export const EIGHT_HIDES: i32 = 40;

/** Rows 1, 3 and 4 of both sets: word n of the state at 16·n of each set. */
export const SETS: usize = memory.data(512, 16);
const SECOND: usize = 256;

/** As `fourBlocks`, for eight: 64 bytes at `first`, 448 at `rest`; the counter in `STATE` advances by eight. */
export function eightBlocks(first: usize, rest: usize, from: usize, count: i32): void {
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

  for (let word: usize = 0; word < 16; word++) {
    const x = v128.load_splat<u32>(STATE + 4 * word);
    v128.store(SETS + 16 * word, x);
    v128.store(SETS + SECOND + 16 * word, x);
  }
  v128.store(SETS, i32x4.add(v128.load(SETS, 192), i32x4(0, 1, 2, 3)), 192);
  v128.store(SETS + SECOND, i32x4.add(v128.load(SETS, 192), i32x4.splat(4)), 192);
  let x4 = v128.load_splat<u32>(STATE, 16);
  let x5 = v128.load_splat<u32>(STATE, 20);
  let x6 = v128.load_splat<u32>(STATE, 24);
  let x7 = v128.load_splat<u32>(STATE, 28);
  let y4 = v128.load_splat<u32>(STATE, 16);
  let y5 = v128.load_splat<u32>(STATE, 20);
  let y6 = v128.load_splat<u32>(STATE, 24);
  let y7 = v128.load_splat<u32>(STATE, 28);

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
    // Column round of the first set
    x4 = quarterRound(SETS, 0, x4, 8, 12);
    x5 = quarterRound(SETS, 1, x5, 9, 13);
    x6 = quarterRound(SETS, 2, x6, 10, 14);
    x7 = quarterRound(SETS, 3, x7, 11, 15);
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
    // Column round of the second set
    y4 = quarterRound(SETS + SECOND, 0, y4, 8, 12);
    y5 = quarterRound(SETS + SECOND, 1, y5, 9, 13);
    y6 = quarterRound(SETS + SECOND, 2, y6, 10, 14);
    y7 = quarterRound(SETS + SECOND, 3, y7, 11, 15);
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
    // Diagonal round of the first set
    x5 = quarterRound(SETS, 0, x5, 10, 15);
    x6 = quarterRound(SETS, 1, x6, 11, 12);
    x7 = quarterRound(SETS, 2, x7, 8, 13);
    x4 = quarterRound(SETS, 3, x4, 9, 14);
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
    // Diagonal round of the second set
    y5 = quarterRound(SETS + SECOND, 0, y5, 10, 15);
    y6 = quarterRound(SETS + SECOND, 1, y6, 11, 12);
    y7 = quarterRound(SETS + SECOND, 2, y7, 8, 13);
    y4 = quarterRound(SETS + SECOND, 3, y4, 9, 14);
  }
  store<u64>(POLY_STATE, h0);
  store<u64>(POLY_STATE, h1, 8);
  store<u64>(POLY_STATE, h2, 16);
  store<u64>(POLY_STATE, h3, 24);
  if (count > 0) polyBlocks(from, count, WHOLE);

  xorRow(first, rest, 0, v128.load(SETS), v128.load(SETS, 16), v128.load(SETS, 32), v128.load(SETS, 48));
  xorRow(first, rest, 16, x4, x5, x6, x7);
  xorRow(first, rest, 32, v128.load(SETS, 128), v128.load(SETS, 144), v128.load(SETS, 160), v128.load(SETS, 176));
  const x12 = i32x4.add(v128.load(SETS, 192), i32x4(0, 1, 2, 3));
  xorRow(first, rest, 48, x12, v128.load(SETS, 208), v128.load(SETS, 224), v128.load(SETS, 240));
  xorRow(rest + 192, rest + 256, 0, v128.load(SETS + SECOND), v128.load(SETS + SECOND, 16), v128.load(SETS + SECOND, 32), v128.load(SETS + SECOND, 48));
  xorRow(rest + 192, rest + 256, 16, y4, y5, y6, y7);
  xorRow(rest + 192, rest + 256, 32, v128.load(SETS + SECOND, 128), v128.load(SETS + SECOND, 144), v128.load(SETS + SECOND, 160), v128.load(SETS + SECOND, 176));
  const y12 = i32x4.add(v128.load(SETS + SECOND, 192), i32x4(4, 5, 6, 7));
  xorRow(rest + 192, rest + 256, 48, y12, v128.load(SETS + SECOND, 208), v128.load(SETS + SECOND, 224), v128.load(SETS + SECOND, 240));
  advance(8);
}

/** One quarter round (RFC 8439 §2.1): words a, c and d in memory, b as a value. Returns the new b. */
// @ts-ignore: decorator
@inline
function quarterRound(set: usize, a: usize, b: v128, c: usize, d: usize): v128 {
  let A = v128.load(set + 16 * a);
  let C = v128.load(set + 16 * c);
  let D = v128.load(set + 16 * d);
  A = i32x4.add(A, b);
  D = rotate16(v128.xor(D, A));
  C = i32x4.add(C, D);
  b = rotateLeft(v128.xor(b, C), 12);
  A = i32x4.add(A, b);
  D = rotate8(v128.xor(D, A));
  C = i32x4.add(C, D);
  b = rotateLeft(v128.xor(b, C), 7);
  v128.store(set + 16 * a, A);
  v128.store(set + 16 * c, C);
  v128.store(set + 16 * d, D);
  return b;
}
