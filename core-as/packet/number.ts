/** Packet numbers on the wire: the low 32 bits, shifted by the mask of the id (aead/mask.ts, PROTOCOL.md §4). */

/**
 * Returns the full number whose low 32 bits are `low`, nearest to `largest` + 1 (RFC 9000 A.3 for 32 bits). `largest`
 * is -1 before the first packet.
 */
export function reconstruct(largest: i64, low: u32): u64 {
  const expected = <u64>(largest + 1);
  const half: u64 = 1 << 31;
  const candidate = (expected & ~(<u64>u32.MAX_VALUE)) | <u64>low;
  if (candidate + half <= expected && candidate < (<u64>1) << 62) return candidate + ((<u64>1) << 32);
  if (candidate > expected + half && candidate >= (<u64>1) << 32) return candidate - ((<u64>1) << 32);
  return candidate;
}
