/**
 * Poly1305 (RFC 8439 §2.5) in radix 2^32: 16 multiplications a block, no branches on secret data.
 *
 * The accumulator is h = h0 + h1·2^32 + h2·2^64 + h3·2^96, each limb in a u64; the top limb also holds the bits above
 * 2^128. Clamping clears the top four bits of each limb of r and the low two of r1, r2 and r3, so r_i < 2^28, and
 * 2^128·r_i = 2^130·(r_i / 4), which is 5·r_i / 4 =: s_i < 1.25·2^28 modulo 2^130 - 5, without a remainder. A product
 * h·r is then
 *
 *   d0 = h0·r0 + h1·s3 + h2·s2 + h3·s1
 *   d1 = h0·r1 + h1·r0 + h2·s3 + h3·s2
 *   d2 = h0·r2 + h1·r1 + h2·r0 + h3·s3
 *   d3 = h0·r3 + h1·r2 + h2·r1 + h3·r0
 *
 * carried once, d0 → d1 → d2 → d3. The bits of d3 from 2^34 up, times five, are added to h0; they are not carried
 * further to h1.
 *
 * Bounds (they hold for this order of carries only). Before the multiplication, with a block and its bit 2^128 added:
 *   h1, h2 < 2·2^32;  h3 < 2^34 + 2^32 + 2^32 = 6·2^32;  h0 ≤ H·2^32 for some H.
 *   d3 < (H + 2 + 2 + 6)·2^60 + 2^32, so the wrapped part is 5·(d3 >> 34) < 5·(10 + H)/64·2^32 + 5,
 *   and H ≤ 1 (carried h0) + 1 (block) + 5·(10 + H)/64, that is H < 3.02.
 *   d0 < (3.02 + 1.25·(2 + 2 + 6))·2^60 = 15.52·2^60 < 2^64: the largest of the four.
 *   d1 < (3.02 + 2 + 2.5 + 7.5)·2^60 + 2^32 < 15.03·2^60;  d2 and d3 are smaller. No sum overflows.
 */

import { wipe } from './xor';

/** h0, h1, h2, h3, r0, r1, r2, r3 as u64, then the 16 bytes of s. */
export const POLY_STATE: usize = memory.data(80, 16);
const POLY_STATE_SIZE: i32 = 80;

const TAIL: usize = memory.data(16, 16);

/** The bit above a complete block of 16 bytes, in units of the top limb. */
export const WHOLE: u64 = 1 << 32;

/** Loads the 32-byte one-time key: clamps r, stores s, and zeroes the accumulator. */
export function polyStart(key: usize): void {
  wipe(POLY_STATE, 32);
  store<u64>(POLY_STATE, <u64>(load<u32>(key) & 0x0fffffff), 32);
  store<u64>(POLY_STATE, <u64>(load<u32>(key, 4) & 0x0ffffffc), 40);
  store<u64>(POLY_STATE, <u64>(load<u32>(key, 8) & 0x0ffffffc), 48);
  store<u64>(POLY_STATE, <u64>(load<u32>(key, 12) & 0x0ffffffc), 56);
  v128.store(POLY_STATE, v128.load(key, 16), 64);
}

/** Adds `count` blocks of 16 bytes; `high` is `WHOLE`, or 0 for a last block that carries its end mark inside. */
export function polyBlocks(from: usize, count: i32, high: u64): void {
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
  let back: u64 = 0; // the part that wraps to h0 joins it with the next block: two additions fewer in the chain from block to block
  for (; count > 0; count--) {
    h0 = h0 + <u64>load<u32>(from) + (back + (back << 2));
    h1 += <u64>load<u32>(from, 4);
    h2 += <u64>load<u32>(from, 8);
    h3 += <u64>load<u32>(from, 12) + high;
    const d0 = h1 * s3 + h2 * s2 + h3 * s1 + h0 * r0;
    const d1 = h1 * r0 + h2 * s3 + h3 * s2 + h0 * r1 + (d0 >> 32);
    const d2 = h1 * r1 + h2 * r0 + h3 * s3 + h0 * r2 + (d1 >> 32);
    const d3 = h1 * r2 + h2 * r1 + h3 * r0 + h0 * r3 + (d2 >> 32);
    back = d3 >> 34;
    h0 = d0 & 0xffffffff;
    h1 = d1 & 0xffffffff;
    h2 = d2 & 0xffffffff;
    h3 = d3 & 0x3ffffffff;
    from += 16;
  }
  h0 += back * 5;
  store<u64>(POLY_STATE, h0);
  store<u64>(POLY_STATE, h1, 8);
  store<u64>(POLY_STATE, h2, 16);
  store<u64>(POLY_STATE, h3, 24);
}

/** Adds `length` bytes, zero-padded to a multiple of 16 (RFC 8439 §2.8, pad16). */
export function polyPadded(from: usize, length: i32): void {
  polyBlocks(from, length >> 4, WHOLE);
  const rest = length & 15;
  if (rest == 0) return;
  const at = from + (length & ~15);
  store<u64>(TAIL, rest < 8 ? partialWord(at, rest) : load<u64>(at));
  store<u64>(TAIL, rest < 8 ? 0 : partialWord(at + 8, rest - 8), 8);
  polyBlocks(TAIL, 1, WHOLE);
  v128.store(TAIL, i64x2.splat(0));
}

/**
 * Returns the first `count` < 8 bytes as a word. Assembled here because a block stored byte by byte is slow to load
 * again.
 */
function partialWord(at: usize, count: i32): u64 {
  let word: u64 = 0;
  let bits: u64 = 0;
  if (count & 4) {
    word = <u64>load<u32>(at);
    bits = 32;
    at += 4;
  }
  if (count & 2) {
    word |= (<u64>load<u16>(at)) << bits;
    bits += 16;
    at += 2;
  }
  if (count & 1) word |= (<u64>load<u8>(at)) << bits;
  return word;
}

/** Adds the two lengths that end the authenticated data of the AEAD (RFC 8439 §2.8). */
export function polyLengths(adLength: i32, length: i32): void {
  store<u64>(TAIL, adLength);
  store<u64>(TAIL, length, 8);
  polyBlocks(TAIL, 1, WHOLE);
  v128.store(TAIL, i64x2.splat(0));
}

/** Reduces the accumulator fully, adds s, writes the 16-byte tag and wipes all secrets of this computation. */
export function polyFinish(tag: usize): void {
  let h0 = load<u64>(POLY_STATE);
  let h1 = load<u64>(POLY_STATE, 8) + (h0 >> 32);
  let h2 = load<u64>(POLY_STATE, 16) + (h1 >> 32);
  let h3 = load<u64>(POLY_STATE, 24) + (h2 >> 32);
  // The bits from 2^130 up wrap, times five. A carry that this makes at the top stays in h3, where the next step finds
  // it.
  h0 = (h0 & 0xffffffff) + (h3 >> 34) * 5;
  h1 = (h1 & 0xffffffff) + (h0 >> 32);
  h2 = (h2 & 0xffffffff) + (h1 >> 32);
  h3 = (h3 & 0x3ffffffff) + (h2 >> 32);
  h0 &= 0xffffffff;
  h1 &= 0xffffffff;
  h2 &= 0xffffffff;
  // Now h < 2^130 + 2^3 < 2·p. h ≥ p = 2^130 - 5 exactly when h + 5 reaches 2^130; then h + 5 modulo 2^130 is h - p.
  // Only the low 128 bits count in the tag, so adding 5 or 0 is enough.
  let carry = (h0 + 5) >> 32;
  carry = (h1 + carry) >> 32;
  carry = (h2 + carry) >> 32;
  const beyond = (h3 + carry) >> 34;
  h0 += 5 * beyond;
  h1 += h0 >> 32;
  h2 += h1 >> 32;
  h3 += h2 >> 32;
  // tag = (h + s) modulo 2^128
  h0 = (h0 & 0xffffffff) + <u64>load<u32>(POLY_STATE, 64);
  h1 = (h1 & 0xffffffff) + <u64>load<u32>(POLY_STATE, 68) + (h0 >> 32);
  h2 = (h2 & 0xffffffff) + <u64>load<u32>(POLY_STATE, 72) + (h1 >> 32);
  h3 = (h3 & 0xffffffff) + <u64>load<u32>(POLY_STATE, 76) + (h2 >> 32);
  const low = (h0 & 0xffffffff) | (h1 << 32);
  const high = (h2 & 0xffffffff) | (h3 << 32);
  v128.store(tag, i64x2.replace_lane(i64x2.splat(low), 1, high));
  wipe(POLY_STATE, POLY_STATE_SIZE);
}
