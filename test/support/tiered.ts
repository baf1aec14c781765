/** Tables of tests in two tiers (`tiers.ts`), and their seeds. */
import { describe, test } from 'vitest';

/** Seeds `first` to `last` of a seeded test. `SVC_TEST_SEED=n` runs just that one, to replay a failure. */
export function seeds(first: number, last: number): number[] {
  const replay = process.env.SVC_TEST_SEED;
  if (replay !== undefined) return [Number(replay)];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

type Run<Row extends readonly unknown[]> = (...row: { -readonly [K in keyof Row]: Row[K] }) => Promise<void> | void;

/**
 * `test.each(cells)` with `count` of the cells, spread over all, in the quick tier, and the others in the slow one. The
 * first and the last cell are quick; the last, for a count of one. The parameters are the values of a row.
 */
export function tiered<const T extends readonly unknown[]>(cells: readonly T[], count: number): (title: string, run: Run<T>) => void;
export function tiered<const T>(cells: readonly T[], count: number): (title: string, run: Run<[T]>) => void;
export function tiered(cells: readonly unknown[], count: number): (title: string, run: Run<unknown[]>) => void {
  return inTiers(test, cells, count);
}

/** The same for `describe.each`. */
export function tieredSuites<const T>(cells: readonly T[], count: number): (title: string, run: (cell: T) => void) => void {
  return inTiers(describe, cells, count);
}

function inTiers(kind: typeof test | typeof describe, cells: readonly unknown[], count: number) {
  const last = cells.length - 1;
  const places = Array.from({ length: count }, (_, index) => (count === 1 ? last : Math.round((index * last) / (count - 1))));
  const quick = new Set(places);
  return (title: string, run: (...row: never[]) => void): void => {
    kind.each(cells.filter((_, index) => quick.has(index)))(title, run as () => void);
    kind.each(cells.filter((_, index) => !quick.has(index)))(title, { tags: ['slow'] }, run as () => void);
  };
}
