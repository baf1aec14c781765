/** The mask of packet numbers: constant per connection id, so that ids cannot be linked (PROTOCOL.md §4). */
import { chachaBlock } from './chacha';

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
