/**
 * `npm run conformance [-- --json]`: bundles the check, whose parts are TypeScript, and runs it with this Node. Its
 * output: test/conformance/main.ts.
 */
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = join(root, 'build/conformance/main.mjs');
await build({
  entryPoints: [join(root, 'test/conformance/main.ts')],
  bundle: true,
  outfile,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
});
const { main } = await import(pathToFileURL(outfile).href);
process.exitCode = await main(root, process.argv.slice(2));
