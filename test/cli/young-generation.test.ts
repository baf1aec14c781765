/**
 * The young generation of a process of its own, filled with surviving objects, which makes V8 enlarge it.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { TestProcess } from '../support/process.ts';

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
  // During a collection, pages of the previous one count, too (Node 26).
  gc({ type: 'minor' });
  console.log(getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size);
`;

async function megabytes(kind: string): Promise<number> {
  const measured = new TestProcess(process.execPath, ['--expose-gc', '--input-type=module', '--eval', MEASURE, kind]);
  return Number(await measured.succeeded()) / 2 ** 20;
}

test('the young generation stays as small as at the start, and grows without the setting', async () => {
  expect(await megabytes('small')).toBeLessThanOrEqual(2);
  expect(await megabytes('as it is')).toBeGreaterThan(8);
});
