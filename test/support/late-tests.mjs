/**
 * Runs again what the last run of the quick tier listed as late, alone. Fails when one of them is late again: it needs
 * the tag `slow` (`tiers.ts`), or less work.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
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
const again = readList();
for (const { file, name } of again) console.error(`late again: ${file} ${name}: give it { tags: ['slow'] }, or less work`);
process.exit(status === 0 && again.length === 0 ? 0 : 1);

function readList() {
  const path = join(root, 'build/late-tests.json');
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'));
  console.error('there is no list of late tests: npm test writes it');
  process.exit(2);
}
