/**
 * Header of a Data packet (PROTOCOL.md §2), 13 bytes, all of them associated data:
 *
 *   0      first byte: 0xC0, or 0xE0 in the other key phase
 *   1…8    destination id
 *   9…12   low 32 bits of the packet number + mask, mod 2^32, network byte order
 *   13…    AEAD(frames), then the tag
 *
 * A Route header may precede it, in a slot's headroom: 0x88 and the 8-byte route id.
 */

export const DATA: u8 = 0xc0;
export const PHASE_BIT: u8 = 0x20;
export const ROUTE: u8 = 0x88;

export const ID_AT: usize = 1;
export const NUMBER_AT: usize = 9;
export const HEADER: u32 = 13;
export const TAG: u32 = 16;
export const OVERHEAD: u32 = HEADER + TAG;
export const ROUTE_HEADER: u32 = 9;

export function writeHeader(packet: usize, phase: bool, id: u64, masked: u32): void {
  store<u8>(packet, phase ? DATA | PHASE_BIT : DATA);
  store<u64>(packet + ID_AT, id);
  store<u32>(packet + NUMBER_AT, bswap<u32>(masked));
}

export function isData(first: u8): bool {
  return (first & ~PHASE_BIT) == DATA;
}

export function destinationOf(packet: usize): u64 {
  return load<u64>(packet + ID_AT);
}

export function maskedNumberOf(packet: usize): u32 {
  return bswap<u32>(load<u32>(packet + NUMBER_AT));
}

/** Writes the Route header in front of `packet`; returns the new start. */
export function writeRoute(packet: usize, route: u64): usize {
  const start = packet - ROUTE_HEADER;
  store<u8>(start, ROUTE);
  store<u64>(start + 1, route);
  return start;
}

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
