/**
 * ChaCha20-Poly1305 (RFC 8439 §2.8), in place, in one pass.
 *
 *   1. The first blocks of key stream: block 0 gives the one-time Poly1305 key (§2.6), the rest go onto the text.
 *   2. Groups of eight or four blocks, each interleaved with Poly1305 of the ciphertext at hand.
 *   3. The rest of the ciphertext, both lengths, the tag.
 *
 * `seal` starts wide and ends narrow, because Poly1305 of the last group has nothing left to hide behind. `open` starts
 * narrow, because all ciphertext is there and can hide behind everything but the first group; the key stream of that
 * group waits until Poly1305 has read the text that it will change.
 *
 * Scratch areas are static memory, zero between calls: secrets in them are wiped before a call returns. Nothing here
 * chooses a nonce or counts messages: the caller must never use a pair of key and nonce twice for sealing.
 */
import { chachaBlock, loadState, STATE } from './chacha';
import { EIGHT_HIDES, eightBlocks, SETS } from './eight-blocks';
import { FOUR_HIDES, fourBlocks, ROW_C } from './four-blocks';
import { polyFinish, polyLengths, polyPadded, polyStart } from './poly1305';
import { wipe, xorBytes } from './xor';

export { chachaBlock };

/** Text bytes beside the key in the first four and the first eight blocks. */
const FIRST_FOUR: i32 = 3 * 64;
const FIRST_EIGHT: i32 = 7 * 64;

/** Key stream: block 0, the blocks after it, and an incomplete last group. */
const KEY: usize = memory.data(64, 16);
const HEAD: usize = memory.data(448, 16);
const TAIL: usize = memory.data(512, 16);

const TAG: usize = memory.data(16, 16);

/**
 * Encrypts `length` bytes at `text` in place and writes the 16-byte tag to `tag`.
 *
 * `key` points to 32 bytes, `nonce` to 12, `ad` to `adLength` bytes. The tag may follow the text directly; apart from
 * that no two areas may overlap.
 */
export function seal(key: usize, nonce: usize, ad: usize, adLength: i32, text: usize, length: i32, tag: usize): void {
  loadState(key, nonce);
  const wide = length > FIRST_FOUR;
  const size = wide ? FIRST_EIGHT : FIRST_FOUR;
  const rest = length < size ? HEAD : text;
  if (wide) eightBlocks(KEY, rest, 0, 0);
  else fourBlocks(KEY, rest, 0, 0);
  if (length < size) {
    xorBytes(text, HEAD, length);
    wipe(HEAD, size);
  }
  polyStart(KEY);
  polyPadded(ad, adLength);

  const end = text + length;
  let at = text + min(length, size); // end of the ciphertext so far
  let from = text; // end of the authenticated part
  while (at < end) {
    const left = <i32>(end - at);
    const ready = <i32>(at - from) >> 4;
    if (left > 256) {
      const target = left < 512 ? TAIL : at;
      const count = min(ready, EIGHT_HIDES);
      eightBlocks(target, target + 64, from, count);
      from += count << 4;
      if (left < 512) xorTail(at, left, 512);
      at += min(left, 512);
    } else {
      const target = left < 256 ? TAIL : at;
      const count = min(ready, FOUR_HIDES);
      fourBlocks(target, target + 64, from, count);
      from += count << 4;
      if (left < 256) xorTail(at, left, 256);
      at += left;
    }
  }
  polyPadded(from, <i32>(end - from));
  polyLengths(adLength, length);
  polyFinish(tag);
  wipeState(wide);
}

/**
 * Decrypts `length` bytes at `text` in place and returns true if the 16 bytes at `tag` match; else zeroes the text and
 * returns false. The comparison takes the same time wherever the tags differ. Areas as for `seal`.
 */
export function open(key: usize, nonce: usize, ad: usize, adLength: i32, text: usize, length: i32, tag: usize): bool {
  loadState(key, nonce);
  fourBlocks(KEY, HEAD, 0, 0);
  polyStart(KEY);
  polyPadded(ad, adLength);

  const end = text + length;
  let at = text + min(length, FIRST_FOUR); // end of the plaintext, or of the text whose key stream is in HEAD or TAIL
  let from = text; // end of the authenticated part
  while (<i32>(end - at) >= 512) {
    const count = <i32>(at + 512 - from) >> 4;
    eightBlocks(at, at + 64, from, count);
    from += count << 4;
    at += 512;
  }
  const left = <i32>(end - at);
  if (left > 0) {
    const count = <i32>(end - from) >> 4;
    if (left > 256) eightBlocks(TAIL, TAIL + 64, from, count);
    else fourBlocks(TAIL, TAIL + 64, from, count);
    from += count << 4;
  }
  polyPadded(from, <i32>(end - from));
  polyLengths(adLength, length);
  polyFinish(TAG);

  const holds = !v128.any_true(v128.xor(v128.load(TAG), v128.load(tag)));
  if (holds) {
    xorBytes(text, HEAD, min(length, FIRST_FOUR));
    if (left > 0) xorTail(at, left, left > 256 ? 512 : 256);
  } else {
    memory.fill(text, 0, length);
    wipe(TAIL, 512);
  }
  wipe(TAG, 16);
  wipe(HEAD, FIRST_FOUR);
  wipeState(length > FIRST_FOUR);
  return holds;
}

/** XORs the key stream of an incomplete last group of `size` bytes onto `length` bytes of text, and wipes it. */
function xorTail(text: usize, length: i32, size: i32): void {
  xorBytes(text, TAIL, length);
  wipe(TAIL, size);
}

/** Zeroes the key and the working memory of the block functions; `wide`: eight blocks were taken at once. */
function wipeState(wide: bool): void {
  wipe(STATE, 64);
  wipe(KEY, 64);
  wipe(ROW_C, 64);
  if (wide) wipe(SETS, 512);
}
