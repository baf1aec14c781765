/** The files that CI runs again in full: a file missing here would never run its large matrices there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sizedFiles } from './sized-files.ts';

const ROOT = join(import.meta.dirname, '../..');
const files = sizedFiles(ROOT);

test('each file that asks for a size is listed', () => {
  const all = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.test.ts'));
  const asking = all.filter((path) => /support\/size\.ts'/.test(readFileSync(join(ROOT, 'test', path), 'utf8')));
  expect(asking.length).toBeGreaterThan(90);
  expect(files).toEqual(expect.arrayContaining(asking.map((path) => join('test', path))));
});

test('so is one that asks through its imports, and none that does not ask', () => {
  expect(files).toContain(join('test', 'e2e', 'three-processes.test.ts'));
  expect(files).not.toContain(join('test', 'policy', 'conformance.test.ts'));
});
