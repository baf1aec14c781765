/**
 * Seeds `first` … `last` of a seeded test. `SVC_TEST_SEED=n` runs just that one, to replay a failure.
 *
 * A test has one size. Where a few seeds of many are worth having in the quick tier, the others are a second test with
 * the tag `slow`: `seeds(1, 4)` and `seeds(5, 40)`.
 */
export function seeds(first: number, last: number): number[] {
  const replay = process.env.SVC_TEST_SEED;
  if (replay !== undefined) return [Number(replay)];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
