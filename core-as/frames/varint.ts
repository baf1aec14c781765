/** Variable-length integers (RFC 9000 §16): 1, 2, 4 or 8 bytes, the length in the two top bits, network byte order. */

export const MAX_VARINT: u64 = 0x3fff_ffff_ffff_ffff;

/** Bytes that `value` takes. */
export function varintSize(value: u64): u32 {
  if (value < 0x40) return 1;
  if (value < 0x4000) return 2;
  return value < 0x4000_0000 ? 4 : 8;
}

/** Writes `value` (at most MAX_VARINT); returns the address after it. */
export function writeVarint(at: usize, value: u64): usize {
  if (value < 0x40) {
    store<u8>(at, <u8>value);
    return at + 1;
  }
  if (value < 0x4000) {
    store<u16>(at, bswap<u16>(<u16>value | 0x4000));
    return at + 2;
  }
  if (value < 0x4000_0000) {
    store<u32>(at, bswap<u32>(<u32>value | 0x8000_0000));
    return at + 4;
  }
  store<u64>(at, bswap<u64>(value | 0xc000_0000_0000_0000));
  return at + 8;
}

/**
 * Position of the packet reader. One packet is read at a time, so this is module state, and `readVarint` never has to
 * return two values. A read past the end sets `failed` and yields 0.
 */
export let cursor: usize = 0;
export let end: usize = 0;
export let failed: bool = false;

export function startReading(from: usize, to: usize): void {
  cursor = from;
  end = to;
  failed = false;
}

export function atEnd(): bool {
  return cursor >= end;
}

export function readVarint(): u64 {
  if (cursor >= end) return fail();
  const first = load<u8>(cursor);
  const size: usize = 1 << (first >> 6);
  if (cursor + size > end) return fail();
  const at = cursor;
  cursor += size;
  if (size == 1) return first;
  if (size == 2) return bswap<u16>(load<u16>(at)) & 0x3fff;
  if (size == 4) return bswap<u32>(load<u32>(at)) & 0x3fff_ffff;
  return bswap<u64>(load<u64>(at)) & MAX_VARINT;
}

export function readByte(): u32 {
  if (cursor >= end) return <u32>fail();
  return load<u8>(cursor++);
}

/** Address of the next `length` bytes, 0 past the end. */
export function readBytes(length: u64): usize {
  if (length > <u64>(end - cursor)) return <usize>fail();
  const at = cursor;
  cursor += <usize>length;
  return at;
}

function fail(): u64 {
  failed = true;
  cursor = end;
  return 0;
}
