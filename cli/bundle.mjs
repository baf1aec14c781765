/**
 * Builds the command `svc` from its sources: `dist/svc/main.cjs`, which starts it, one bundle for each file of
 * `bundles/`, and `LICENSES.txt` of the packages in them.
 *
 * CommonJS, because it loads faster and V8's code for it can be cached (`frame/code-cache.ts`). Cached code cannot use
 * `import()`, so esbuild turns each into `require`. Node's own modules and packages with native code stay outside.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { licencesOf } from './licences.mjs';

/** Packages resolved at run time: native code, and packages that a user may install in addition. */
export const EXTERNAL = ['@koromix/*', 'libsql'];

/** `frame/code-cache.ts` runs a bundle and passes this function what Node's loader passes to a module. */
const WRAPPED = { banner: { js: '(function (exports, require, module, __filename, __dirname) {' }, footer: { js: '})' } };
const CORE_FILE = {
  name: 'core from its file',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/embedded\.ts$/ }, () => ({ path: fileURLToPath(new URL('frame/embedded.ts', import.meta.url)) })),
};

/** What all bundles have in common, for esbuild. */
export const SETTINGS = {
  bundle: true,
  metafile: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  supported: { 'dynamic-import': false },
  external: EXTERNAL,
  plugins: [CORE_FILE],
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
};

/** Builds `dist/svc`. @param root of the repository */
export async function bundleCommand(root) {
  const folder = join(root, 'dist/svc');
  rmSync(folder, { recursive: true, force: true });
  const entries = readdirSync(join(root, 'cli/bundles')).map((file) => basename(file, '.ts'));
  const metafiles = await Promise.all([
    ...entries.map((name) => bundle(root, join(folder, `${name}.cjs`), { stdin: entry(root, name), ...WRAPPED })),
  ]);
  const digests = Object.fromEntries(entries.map((name) => [name, digestOf(join(folder, `${name}.cjs`))]));
  const define = { BUNDLE_DIGESTS: JSON.stringify(digests) };
  metafiles.push(await bundle(root, join(folder, 'main.cjs'), { entryPoints: ['cli/main.ts'], define }));
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(root, metafiles));
}

function entry(root, name) {
  const contents = `
    import { commands } from './cli/bundles/${name}.ts';
    import { run as runOne } from './cli/frame/run.ts';
    export const run = (argv) => runOne(commands, argv);`;
  return { contents, resolveDir: root, sourcefile: `${name}.entry.ts`, loader: 'ts' };
}

/** Digest of the content, the key of V8's cached code. */
function digestOf(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 16);
}

async function bundle(root, outfile, source) {
  const { metafile } = await build({ ...SETTINGS, ...source, absWorkingDir: root, outfile });
  return metafile;
}
