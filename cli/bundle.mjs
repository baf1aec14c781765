/**
 * Makes the command `svc` out of its sources: `dist/svc/main.cjs`, which starts it, one bundle for each file of `bundles/`, and `LICENSES.txt` of the packages in
 * them.
 *
 * CommonJS, because it loads faster and V8's code for it can be kept (`frame/code-cache.ts`). With that code `import()` fails, so none is left: esbuild turns it
 * into `require`. Node's own modules and packages with native code stay outside.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { licencesOf } from './licences.mjs';

/** Packages that are looked for when they are needed: native code, and what a user may install beside us. */
export const EXTERNAL = ['@achingbrain/nat-port-mapper', 'koffi', 'libsql'];

/** Builds `dist/svc`. @param root of the repository */
export async function bundleCommand(root) {
  const folder = join(root, 'dist/svc');
  rmSync(folder, { recursive: true, force: true });
  const entries = readdirSync(join(root, 'cli/bundles')).map((file) => basename(file, '.ts'));
  const metafiles = await Promise.all([
    bundle(root, join(folder, 'main.cjs'), { entryPoints: ['cli/main.ts'] }),
    ...entries.map((name) => bundle(root, join(folder, `${name}.cjs`), { stdin: entry(root, name) })),
  ]);
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(root, metafiles));
}

function entry(root, name) {
  const contents = `
    import { commands } from './cli/bundles/${name}.ts';
    import { run as runOne } from './cli/frame/run.ts';
    export const run = (argv) => runOne(commands, argv);`;
  return { contents, resolveDir: root, sourcefile: `${name}.entry.ts`, loader: 'ts' };
}

async function bundle(root, outfile, source) {
  const { metafile } = await build({
    ...source,
    absWorkingDir: root,
    outfile,
    bundle: true,
    metafile: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    supported: { 'dynamic-import': false },
    external: EXTERNAL,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  return metafile;
}
