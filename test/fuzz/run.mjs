/**
 * `npm run fuzz -- [--seconds N] [--seed S] [--count C] [target…]`: bundles the fuzzer, whose parts are TypeScript,
 * into build/fuzz and runs it with this Node. Its options and output: test/fuzz/main.ts.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = join(root, 'build/fuzz/main.mjs');
await build({
  entryPoints: [join(root, 'test/fuzz/main.ts')],
  bundle: true,
  outfile,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
});
const options = ['--expose-gc', '--enable-source-maps', outfile, ...process.argv.slice(2)];
const { status } = spawnSync(process.execPath, options, { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
