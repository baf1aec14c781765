/**
 * `npm run test:mutants -- [--part k/n] [--only text] [--jobs N] [--json]`: bundles the runner, which is TypeScript,
 * and runs it with this Node. test/mutants/main.ts says what it does and prints.
 */
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = join(root, 'build/mutants/main.mjs');
await build({
  entryPoints: [join(root, 'test/mutants/main.ts')],
  bundle: true,
  outfile,
  platform: 'node',
  format: 'esm',
  target: 'node20',
});
const { main } = await import(pathToFileURL(outfile).href);
process.exitCode = await main(root, process.argv.slice(2));
