/**
 * Times of which only differences matter: whole milliseconds modulo 2^32 (49 days), half the size of an f64.
 * Subtracting two as u32 gives the time between them.
 */

export function ticksOf(now: f64): u32 {
  return <u32>(<u64>now);
}
