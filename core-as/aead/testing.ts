/** Exports of the cipher for its own tests; the engine's exports do not include them. */
import { polyBlocks, polyFinish, polyStart, WHOLE } from "./poly1305";

export { chachaBlock, open as aeadOpen, seal as aeadSeal } from "./index";

const LAST: usize = memory.data(16, 16);

/** Poly1305 alone (RFC 8439 §2.5.1), with the end mark inside the last block where that one is short. */
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
