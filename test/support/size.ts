/**
 * How much of a large matrix runs. `npm test` runs a slice chosen so that the whole suite stays under 90 s on two
 * cores; `npm run test:long` (SVC_TEST_LONG set) runs the same files with full sizes. The closing lines of a run state
 * which of the two it was.
 */

const long = process.env.SVC_TEST_LONG !== undefined;

/** `full` in a long run, else `slice`. */
export function size(slice: number, full: number): number {
  return long ? full : slice;
}

/** Seeds 1…n for a seeded test; SVC_TEST_SEED=n runs just that one, to replay a failure. */
export function seeds(slice: number, full: number): number[] {
  const replay = process.env.SVC_TEST_SEED;
  if (replay !== undefined) return [Number(replay)];
  return Array.from({ length: size(slice, full) }, (_, index) => index + 1);
}

/**
 * All of `cells` in a long run, else every k-th so that `count` remain, including the first and the last; the last for
 * a count of one.
 */
export function slice<T>(cells: readonly T[], count: number): readonly T[] {
  if (long || cells.length <= count) return cells;
  if (count === 1) return cells.slice(-1);
  const step = (cells.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, index) => cells[Math.round(index * step)] as T);
}
