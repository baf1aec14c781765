/** Exports of the cipher for its own tests; the engine's exports do not include them. */
import { advance, loadState } from './chacha';
import { eightBlocks } from './eight-blocks';
import { fourBlocks } from './four-blocks';
import { polyBlocks, polyFinish, polyStart, WHOLE } from './poly1305';
import { wipe } from './xor';

export { chachaBlock, open as aeadOpen, seal as aeadSeal } from './index';

const LAST: usize = memory.data(16, 16);
const SINK: usize = memory.data(512, 16);

/** Poly1305 alone (RFC 8439 §2.5.1); a short last block carries its end mark inside. */
export function poly1305(key: usize, message: usize, length: i32, tag: usize): void {
  polyStart(key);
  polyBlocks(message, length >> 4, WHOLE);
  const rest = length & 15;
  if (rest > 0) {
    memory.fill(LAST, 0, 16);
    memory.copy(LAST, message + (length & ~15), rest);
    store<u8>(LAST + rest, 1);
    polyBlocks(LAST, 1, 0);
  }
  polyFinish(tag);
}

/** Writes the key stream blocks `counter` to `counter` + 3 (256 bytes), as the four-block function computes them. */
export function chachaFour(key: usize, counter: u32, nonce: usize, out: usize): void {
  loadState(key, nonce);
  advance(counter);
  wipe(out, 256);
  fourBlocks(out, out + 64, 0, 0);
}

/** Writes the key stream blocks `counter` to `counter` + 7 (512 bytes), as the eight-block function computes them. */
export function chachaEight(key: usize, counter: u32, nonce: usize, out: usize): void {
  loadState(key, nonce);
  advance(counter);
  wipe(out, 512);
  eightBlocks(out, out + 64, 0, 0);
}

/**
 * Poly1305 of `count` complete blocks by the code interleaved with the four-block (`wide` false) or eight-block
 * function.
 */
export function poly1305Woven(key: usize, message: usize, count: i32, tag: usize, wide: bool): void {
  polyStart(key);
  if (wide) eightBlocks(SINK, SINK + 64, message, count);
  else fourBlocks(SINK, SINK + 64, message, count);
  polyFinish(tag);
}

/** End of the cipher's static memory when it is compiled alone. */
export function staticEnd(): usize {
  return __heap_base;
}
