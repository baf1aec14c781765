/**
 * Packet numbers on the wire: low 32 bits, shifted by a mask that is constant per id, so that a new id unlinks (PROTOCOL.md §2).
 */
import { chachaBlock } from "../aead";

const NONCE = memory.data(12, 4);
const BLOCK = memory.data(64, 16);

/** Mask of an id: first 4 bytes of ChaCha20 block 0 under the mask key, nonce = 4 zero bytes ‖ id. */
export function maskOf(maskKey: usize, id: u64): u32 {
  store<u32>(NONCE, 0);
  store<u64>(NONCE, id, 4);
  chachaBlock(maskKey, 0, NONCE, BLOCK);
  const mask = bswap<u32>(load<u32>(BLOCK));
  memory.fill(BLOCK, 0, 64);
  return mask;
}

/**
 * The full number whose low 32 bits are `low`, nearest to `largest` + 1 (RFC 9000 A.3 for 32 bits). `largest` is -1 before the
 * first packet.
 */
export function reconstruct(largest: i64, low: u32): u64 {
  const expected = <u64>(largest + 1);
  const half: u64 = 1 << 31;
  const candidate = (expected & ~(<u64>u32.MAX_VALUE)) | <u64>low;
  if (candidate + half <= expected && candidate < (<u64>1 << 62)) return candidate + (<u64>1 << 32);
  if (candidate > expected + half && candidate >= <u64>1 << 32) return candidate - (<u64>1 << 32);
  return candidate;
}
