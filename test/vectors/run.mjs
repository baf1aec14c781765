/**
 * `npm run vectors`: prints the appendix of PROTOCOL.md with test vectors. Its parts are TypeScript, which is bundled
 * first: test/vectors/generate.ts.
 */
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = join(root, 'build/vectors/generate.mjs');
await build({
  entryPoints: [join(root, 'test/vectors/generate.ts')],
  bundle: true,
  outfile,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
});
const { appendix } = await import(pathToFileURL(outfile).href);
process.stdout.write(await appendix());
