/**
 * The two tiers of tests. A test that takes more than 200 ms carries the tag `slow`, or its whole file does, with
 * `@module-tag slow` in the header. `npm test` runs the other tests, `npm run test:slow` those.
 *
 * Vitest deselects tests by their tags only after it has loaded their file. This plugin leaves out the files that have
 * nothing to run.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vitest/config';

/** The expressions of `--tags-filter` with which the scripts of package.json select a tier. */
export const QUICK = '!slow';
export const SLOW = 'slow';

/** As vitest finds it. */
const MODULE_TAG = /(\/\/|\*)\s*@module-tag\s+slow\b/;

/** The plugin for a configuration whose tests are below `root`/test. */
export function tiers(root: string): Plugin {
  return {
    name: 'svc-tiers',
    configureVitest({ vitest, project }) {
      const [filter] = vitest.config.tagsFilter ?? [];
      if (filter === QUICK || filter === SLOW) project.config.exclude.push(...filesWithout(root, filter));
    },
  };
}

/** @returns the test files without a test of the tier `filter`, relative to `root` */
export function filesWithout(root: string, filter: typeof QUICK | typeof SLOW): string[] {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'));
  return files
    .map((file) => join('test', file))
    .filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const isSlow = MODULE_TAG.test(text);
      return filter === QUICK ? isSlow : !isSlow && !/\btags\b|\btiered(Suites)?\(/.test(text);
    });
}
