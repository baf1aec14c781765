/** The connection's generator, seeded by the caller. */
import { Connection } from './connection';

/** Returns the next number of the connection's generator (xorshift32). */
export function nextRandom(c: Connection): u32 {
  let x = c.random ? c.random : 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  c.random = x;
  return x;
}
