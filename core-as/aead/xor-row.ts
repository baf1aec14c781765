/** XORs key stream onto text: the end of the block functions. */
import { STATE } from "./chacha";
import { xorVector } from "./xor";

/**
 * Finishes one row of the state of four blocks held vertically (word `offset / 4 + n` of each block in `wN`): adds the
 * initial state (RFC 8439 §2.3), transposes, and XORs 16 bytes of key stream of each block onto memory: block 0 at
 * `first`, blocks 1 to 3 at `rest`. The caller has already added the distance of each lane of word 12 to the first
 * counter.
 */
// @ts-ignore: decorator
@inline
export function xorRow(first: usize, rest: usize, offset: usize, w0: v128, w1: v128, w2: v128, w3: v128): void {
  const a = i32x4.add(w0, v128.load_splat<u32>(STATE + offset));
  const b = i32x4.add(w1, v128.load_splat<u32>(STATE + offset, 4));
  const c = i32x4.add(w2, v128.load_splat<u32>(STATE + offset, 8));
  const d = i32x4.add(w3, v128.load_splat<u32>(STATE + offset, 12));
  const ab = v128.shuffle<u32>(a, b, 0, 4, 1, 5);
  const cd = v128.shuffle<u32>(c, d, 0, 4, 1, 5);
  xorVector(first + offset, v128.shuffle<u64>(ab, cd, 0, 2));
  xorVector(rest + offset, v128.shuffle<u64>(ab, cd, 1, 3));
  const AB = v128.shuffle<u32>(a, b, 2, 6, 3, 7);
  const CD = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
  xorVector(rest + 64 + offset, v128.shuffle<u64>(AB, CD, 0, 2));
  xorVector(rest + 128 + offset, v128.shuffle<u64>(AB, CD, 1, 3));
}
