/** What the two tiers leave out: a file with a test of a tier is in it. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesWithout, QUICK, SLOW } from './tiers.ts';

const header = (text: string) => `/** A file. */\n/** ${text} */\ntest('x', () => {});`;

test.each([
  ['a file of quick tests', "test('x', () => {});", [SLOW]],
  ['a slow test', "test('x', { tags: ['slow'] }, () => {});", []],
  ['a tag as a text', "test('x', { tags: 'slow' }, () => {});", []],
  ['a table in both tiers', "tiered(rows, 1)('x', () => {});", []],
  ['a module tag', '/**\n * A file.\n *\n * @module-tag slow\n */', [QUICK]],
  ['a module tag in one line', header('@module-tag slow'), [QUICK]],
  ['a module tag with a reason', header('@module-tag slow (a second each)'), [QUICK]],
  ['a module tag in a line comment', '// @module-tag slow', [QUICK]],
  ['another module tag', header('@module-tag slower'), [SLOW]],
])('%s', (_, text, without) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-tiers-'));
  try {
    mkdirSync(join(root, 'test'));
    writeFileSync(join(root, 'test/one.test.ts'), text);
    expect([QUICK, SLOW].filter((tier) => filesWithout(root, tier as typeof SLOW).length > 0)).toEqual(without);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('only tiered.ts gives tags to tests of other files, whose text would not have them', () => {
  const folder = new URL('..', import.meta.url).pathname;
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /(?<!\.test)\.ts$/.test(file));
  expect(files.filter((file) => /\btags:/.test(readFileSync(join(folder, file), 'utf8')))).toEqual(['support/tiered.ts']);
});
