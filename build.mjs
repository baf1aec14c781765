/**
 * Builds what is missing or stale, and nothing else, so that `npm ci --ignore-scripts` followed by any `npm run` works.
 *
 *   1. codes      core-as/codes.json          → core-as/codes.generated.ts, bindings/codes.generated.ts
 *   2. wasm       core-as/**                  → dist/core.wasm; for unit tests of the core build/core.test.wasm, and of
 *                                              its cipher, optimized as in a release, build/aead.test.wasm; with
 *                                              --debug also build/core.debug.wasm
 *   3. embed      dist/core.wasm              → bindings/core-wasm.generated.ts
 *   4. TypeScript every project of tsconfig.json → dist/**  (incremental, `tsc -b`)
 *   5. command    cli/bundles/*.ts and all they import → dist/svc/**  (esbuild, `cli/bundle.mjs`)
 *
 * A step is skipped when the digest of its inputs equals the one kept in build/stamps.json. `--force` forgets the
 * digests, `--wasm` stops after step 3, `--wasm=release` and `--wasm=test` do that and leave the others out.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { embedCore, generateCodes } from './bindings/embed.mjs';

const root = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const stampFile = join(root, 'build/stamps.json');
const flags = new Set(process.argv.slice(2));
const stamps = !flags.has('--force') && existsSync(stampFile) ? JSON.parse(readFileSync(stampFile, 'utf8')) : {};

process.chdir(root);
mkdirSync('build', { recursive: true });
mkdirSync('dist', { recursive: true });

generateCodes();
const core = [...files('core-as'), 'asconfig.json', require.resolve('assemblyscript/package.json')];
if (!flags.has('--wasm=test')) await step('wasm release', core, ['dist/core.wasm'], () => asc('release'));
if (!flags.has('--wasm=release')) {
  await step('wasm test', core, ['build/core.test.wasm'], () => asc('test'));
  await step('wasm aead', core, ['build/aead.test.wasm'], () => asc('aead'));
}
if (flags.has('--debug')) await step('wasm debug', core, ['build/core.debug.wasm'], () => asc('debug'));
await step('embed', ['dist/core.wasm'], ['bindings/core-wasm.generated.ts'], embedCore);
if (!['--wasm', '--wasm=release', '--wasm=test'].some((flag) => flags.has(flag))) {
  const projects = ['bindings', 'protocol', 'platform', 'runtime', 'testing', 'device', 'client', 'server', 'cli', 'bench'];
  const sources = projects.flatMap((folder) => files(folder));
  await step('TypeScript', [...sources, 'tsconfig.base.json', 'package.json'], ['dist/cli/program.js'], () => {
    for (const project of projects) removeOutputsWithoutSource(project);
    node('typescript/bin/tsc', ['-b', ...projects]);
  });
  await step('command', [...sources, 'package-lock.json'], ['dist/svc/main.cjs'], bundle);
}

/** Runs `action` when an output is missing or the digest of the inputs has changed since the last success. */
async function step(name, inputs, outputs, action) {
  const hash = createHash('sha256');
  for (const file of inputs) hash.update(`${relative(root, file)}\0`).update(readFileSync(file));
  const digest = hash.digest('hex');
  if (stamps[name] === digest && outputs.every((file) => existsSync(file))) return;
  const start = performance.now();
  await action();
  stamps[name] = digest;
  writeFileSync(stampFile, `${JSON.stringify(stamps, null, 2)}\n`);
  process.stderr.write(`build: ${name} ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
}

/**
 * asc takes no entry from a target of asconfig.json, so it is named here. Warning 112 is about vectors exchanged with
 * the host; it counts every exported function of a file, and ours pass vectors to other files only.
 */
function asc(target) {
  const entry = { test: 'core-as/testing.ts', aead: 'core-as/aead/testing.ts' }[target] ?? 'core-as/index.ts';
  node('assemblyscript/bin/asc.js', [entry, '--config', 'asconfig.json', '--target', target, '--disableWarning', '112']);
}

/** esbuild is loaded when it is needed. */
async function bundle() {
  const { bundleCommand } = await import('./cli/bundle.mjs');
  await bundleCommand(root);
}

/** Runs a package's script with this very Node; stops the build with the tool's own messages when it fails. */
function node(script, args) {
  const [scope] = script.split('/');
  const path = join(dirname(require.resolve(`${scope}/package.json`)), script.slice(scope.length + 1));
  const { status } = spawnSync(process.execPath, [path, ...args], { stdio: ['ignore', 2, 2] });
  if (status !== 0) {
    process.stderr.write(`build: ${script} ${args.join(' ')} failed\n`);
    process.exit(1);
  }
}

/** tsc leaves the outputs of a deleted source, and the package would have them. */
function removeOutputsWithoutSource(project) {
  if (!existsSync(join('dist', project))) return;
  for (const file of readdirSync(join('dist', project), { recursive: true, encoding: 'utf8' })) {
    const [, stem] = /^(.*?)\.(?:js|d\.ts)(?:\.map)?$/.exec(file) ?? [];
    if (stem !== undefined && !existsSync(join(project, `${stem}.ts`))) rmSync(join('dist', project, file));
  }
}

/** Source files below a folder, sorted; folders of other packages and generated folders are left out. */
function files(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs|json)$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((file) => !/node_modules|(^|\/)peers\//.test(file))
    .sort();
}
