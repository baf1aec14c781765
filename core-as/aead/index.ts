/**
 * ChaCha20-Poly1305 (RFC 8439 §2.8), in place.
 *
 *   1. key stream block 0 gives the one-time Poly1305 key
 *   2. the text is encrypted (decrypted) with the blocks from 1 on
 *   3. the tag covers additional data, ciphertext and both lengths
 *
 * Scratch space is static memory and wiped after use. Nothing here chooses a nonce or counts messages: a pair of key and nonce must
 * never be used twice, which is the caller's duty.
 */
import { chachaBlock } from "./chacha";
import { polyFinish, polyLengths, polyPadded, polyStart } from "./poly1305";

export { chachaBlock };

const BLOCK: usize = memory.data(64, 16);
const TAG: usize = memory.data(16, 16);

/**
 * Encrypts `length` bytes at `text` in place and writes the 16-byte tag to `tag`.
 *
 * `key` points to 32 bytes, `nonce` to 12, `ad` to `adLength` bytes. The tag may follow the text directly; apart from that no two
 * areas may overlap.
 */
export function seal(key: usize, nonce: usize, ad: usize, adLength: i32, text: usize, length: i32, tag: usize): void {
  start(key, nonce, ad, adLength);
  cipher(key, nonce, text, length);
  polyPadded(text, length);
  polyLengths(adLength, length);
  polyFinish(tag);
}

/**
 * Decrypts `length` bytes at `text` in place and returns true if the 16 bytes at `tag` hold. If not, the text is zeroed and false is
 * returned. The comparison takes the same time wherever the tags differ.
 */
export function open(key: usize, nonce: usize, ad: usize, adLength: i32, text: usize, length: i32, tag: usize): bool {
  start(key, nonce, ad, adLength);
  polyPadded(text, length);
  polyLengths(adLength, length);
  polyFinish(TAG);
  const difference = v128.any_true(v128.xor(v128.load(TAG), v128.load(tag)));
  v128.store(TAG, i64x2.splat(0));
  if (difference) {
    memory.fill(text, 0, length);
    return false;
  }
  cipher(key, nonce, text, length);
  return true;
}

function start(key: usize, nonce: usize, ad: usize, adLength: i32): void {
  chachaBlock(key, 0, nonce, BLOCK);
  polyStart(BLOCK);
  memory.fill(BLOCK, 0, 64);
  polyPadded(ad, adLength);
}

function cipher(key: usize, nonce: usize, text: usize, length: i32): void {
  for (let counter: u32 = 1; length > 0; counter++) {
    chachaBlock(key, counter, nonce, BLOCK);
    const size = min(length, 64);
    for (let i = 0; i < size; i++) store<u8>(text + i, load<u8>(text + i) ^ load<u8>(BLOCK + i));
    text += 64;
    length -= 64;
  }
  memory.fill(BLOCK, 0, 64);
}
