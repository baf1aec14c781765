/** Every block of JavaScript of README and docs is run by a test, which names its page. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { blocksOf } from '../support/document-blocks.ts';
import { root, textOf } from './imports.ts';

/** Page → the test that runs its blocks, and their names; without names the test runs all. */
const RUN_BY: Readonly<Record<string, readonly [test: string, ...names: string[]]>> = {
  'README.md': ['test/e2e/readme.test.ts', 'device', 'client'],
  'docs/sdk.md': ['test/e2e/sdk.test.ts'],
  'docs/errors.md': ['test/e2e/sdk.test.ts', 'codes'],
  'docs/audit.md': ['test/e2e/guides.test.ts', 'audit-log'],
  'docs/device.md': ['test/e2e/guides.test.ts', 'join'],
  'docs/pairing.md': ['test/e2e/guides.test.ts', 'pairing', 'access-control'],
  'docs/trust.md': ['test/e2e/guides.test.ts', 'jwt'],
  'docs/iam.md': ['test/device/iam/endpoints/document.test.ts', 'explain'],
  'docs/paths.md': ['test/cli/documents.test.ts', 'client', 'device'],
};
const BLOCK = /^ *(?:```|~~~) *(?:jsx?|javascript|mjs|tsx?|typescript)\b/im;
const pages = [
  ...readdirSync(root),
  ...['docs', 'bench', 'test'].flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`)),
];
const withBlocks = pages.filter((page) => page.endsWith('.md') && !page.includes('node_modules/') && BLOCK.test(textOf(page)));

it('has a test for each page with blocks, and no other', () => {
  expect(withBlocks.toSorted()).toEqual(Object.keys(RUN_BY).toSorted());
});

it.each(Object.entries(RUN_BY))('the blocks of %s have the names that its test runs', (page, [test, ...names]) => {
  const found = blocksOf(textOf(page)).map(({ name }) => name);
  if (names.length > 0) expect(found.toSorted()).toEqual(names.toSorted());
  expect(textOf(test)).toContain(page === 'README.md' ? page : page.slice('docs/'.length));
});
