/** The young generation of a process of its own, filled with what survives: that makes V8 enlarge it. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const MODULE = new URL('../../dist/cli/frame/young-generation.js', import.meta.url).href;
const MEASURE = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { keepYoungGenerationSmall } from '${MODULE}';
  if (process.argv[1] === 'small') keepYoungGenerationSmall();
  let kept = [];
  for (let i = 0; i < 1_000_000; i++) {
    if (kept.length === 200_000) kept = [];
    kept.push({ i });
  }
  // In the middle of one, pages of the collection before count too (Node 26).
  gc({ type: 'minor' });
  console.log(getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size);
`;

const megabytes = (kind: string): number =>
  Number(execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '--eval', MEASURE, kind], { encoding: 'utf8' })) / 2 ** 20;

test('stays as small as it was at the start, and grows without', () => {
  expect(megabytes('small')).toBeLessThanOrEqual(2);
  expect(megabytes('as it is')).toBeGreaterThan(8);
});
