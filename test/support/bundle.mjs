/** Bundles programs of the tests, whose parts are TypeScript, so that Node runs them. */
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bundles test/`folder`/`name`.ts. Returns the path of the bundle in build/`folder`. */
export async function bundled(folder, name, options = {}) {
  const outfile = join(root, 'build', folder, `${name}.mjs`);
  const entryPoints = [join(root, 'test', folder, `${name}.ts`)];
  const node = { bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external' };
  await build({ entryPoints, outfile, ...node, ...options });
  return outfile;
}

/** Runs the `main` of test/`folder`/main.ts with the arguments of this process. */
export async function runMain(folder) {
  const { main } = await import(pathToFileURL(await bundled(folder, 'main')).href);
  process.exitCode = await main(root, process.argv.slice(2));
}
