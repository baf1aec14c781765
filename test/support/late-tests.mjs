/**
 * Runs again what the last run of the quick tier listed as late, alone. Fails when one of them is late again: it needs
 * the tag `slow` (`tiers.ts`), or less work.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const late = readList();
if (late.length === 0) process.exit(0);

const names = late.map(({ name }) => name.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
const files = [...new Set(late.map(({ file }) => file))];
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', ...files, '--tags-filter=!slow', '-t', `^(${names.join('|')})$`], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status === 0 && readList().length === 0 ? 0 : 1);

function readList() {
  return JSON.parse(readFileSync(join(root, 'build/late-tests.json'), 'utf8'));
}
