/** XORs key stream onto text: a vector, and the last bytes of a message. */

/** XORs `length` bytes of key stream onto text. */
export function xorBytes(text: usize, stream: usize, length: i32): void {
  for (; length >= 16; length -= 16) {
    xorVector(text, v128.load(stream));
    text += 16;
    stream += 16;
  }
  if (length & 8) {
    store<u64>(text, load<u64>(text) ^ load<u64>(stream));
    text += 8;
    stream += 8;
  }
  if (length & 4) {
    store<u32>(text, load<u32>(text) ^ load<u32>(stream));
    text += 4;
    stream += 4;
  }
  if (length & 2) {
    store<u16>(text, load<u16>(text) ^ load<u16>(stream));
    text += 2;
    stream += 2;
  }
  if (length & 1) store<u8>(text, load<u8>(text) ^ load<u8>(stream));
}

/** Zeroes `length` bytes, a multiple of 16. For short areas, a call of the engine's `memory.fill` would cost more. */
export function wipe(area: usize, length: i32): void {
  for (; length > 0; length -= 16) {
    v128.store(area, i64x2.splat(0));
    area += 16;
  }
}

/** XORs 16 bytes of key stream onto text. */
export function xorVector(at: usize, stream: v128): void {
  v128.store(at, v128.xor(v128.load(at), stream));
}
