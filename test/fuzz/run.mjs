/**
 * `npm run fuzz -- [--seconds N] [--seed S] [--count C] [target…]`: bundles the fuzzer, whose parts are TypeScript,
 * into build/fuzz and runs it with this Node. Its options and output: test/fuzz/main.ts.
 */
import { spawnSync } from 'node:child_process';
import { bundled, root } from '../support/bundle.mjs';

const bundle = await bundled('fuzz', 'main', { sourcemap: true, logLevel: 'warning' });
const options = ['--expose-gc', '--enable-source-maps', bundle, ...process.argv.slice(2)];
const { status } = spawnSync(process.execPath, options, { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
