/**
 * The eight bytes of a PATH_CHALLENGE. The peer must not be able to guess them, or it could answer for an address at
 * which it does not receive (RFC 9000 §8.2.1). ChaCha20 of a counter, under a key that only this module knows; each
 * connection's seed from the caller is mixed into it.
 */
import { chachaBlock } from '../aead';

const KEY = memory.data(32, 16);
const NONCE = memory.data(12, 4);
const BLOCK = memory.data(64, 16);
let counter: u64 = 0;

/** Mixes 32 random bytes in, and wipes them. */
export function seedChallenges(seed: usize): void {
  for (let i: usize = 0; i < 32; i += 8) store<u64>(KEY + i, load<u64>(KEY + i) ^ load<u64>(seed + i));
  memory.fill(seed, 0, 32);
}

export function challengeData(): u64 {
  store<u32>(NONCE, 0);
  store<u64>(NONCE, counter++, 4);
  chachaBlock(KEY, 0, NONCE, BLOCK);
  const data = load<u64>(BLOCK);
  memory.fill(BLOCK, 0, 64);
  return data;
}
