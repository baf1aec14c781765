/** Every block of JavaScript of README and docs is run by a test, which names its page. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root, textOf } from './imports.ts';

/** Page → the test that runs its blocks. */
const RUN_BY: Readonly<Record<string, string>> = {
  'README.md': 'test/e2e/readme.test.ts',
  'docs/sdk.md': 'test/e2e/sdk.test.ts',
  'docs/errors.md': 'test/e2e/sdk.test.ts',
  'docs/access-control.md': 'test/e2e/guides.test.ts',
  'docs/audit.md': 'test/e2e/guides.test.ts',
  'docs/device.md': 'test/e2e/guides.test.ts',
  'docs/pairing.md': 'test/e2e/guides.test.ts',
  'docs/trust.md': 'test/e2e/guides.test.ts',
  'docs/iam.md': 'test/device/iam/endpoints/document.test.ts',
  'docs/paths.md': 'test/cli/documents.test.ts',
};
const pages = ['README.md', ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${name}`)];
const withBlocks = pages.filter((page) => page.endsWith('.md') && /^ *```(?:js|javascript|mjs|ts|typescript)\b/m.test(textOf(page)));

it('has a test for each page with blocks, and no other', () => {
  expect(withBlocks.toSorted()).toEqual(Object.keys(RUN_BY).toSorted());
});

it.each(Object.entries(RUN_BY))('the blocks of %s have names, and %s reads the page', (page, test) => {
  expect(textOf(page).match(/^ *```(?:js|javascript|mjs|ts|typescript)\s*$/gm)).toBeNull();
  expect(textOf(test)).toContain(page === 'README.md' ? page : page.slice('docs/'.length));
});
