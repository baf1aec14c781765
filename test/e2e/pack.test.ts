/**
 * The tarball of `npm pack` works when installed in an empty folder: the command starts, every subpath can be imported,
 * and the engine runs. Most tests unpack it beside links to the dependencies of this checkout, without a registry; one
 * installs it with npm.
 * @module-tag slow
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestProcess } from '../support/process.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  version: string;
  exports: Record<string, unknown>;
};

let folder: string;
let packed: { filename: string; files: { path: string }[] };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-pack-'));
  const stdout = await run(root, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', folder);
  const described = JSON.parse(stdout) as (typeof packed)[] | Record<string, typeof packed>;
  packed = Object.values(described)[0] as typeof packed;
  await unpack();
}, 120_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the tarball', () => {
  it('holds what runs, and no tests, benches or sources', () => {
    const paths = packed.files.map((file) => file.path);
    expect(paths).toContain('dist/core.wasm');
    expect(paths).toContain('LICENSE');
    expect(
      paths.filter(
        (path) =>
          /^(test|bench|core-as)\/|^dist\/(test|bench)\/|tsbuildinfo|generated\.ts$/.test(path) && !path.endsWith('.generated.d.ts'),
      ),
    ).toEqual([]);
  });

  it('starts the command', () => startsIn(folder));

  it('is imported by every subpath', () => isImportedIn(folder));

  it('installed by npm, starts the command and is imported by every subpath', async () => {
    const installed = join(folder, 'installed');
    await mkdir(installed);
    await writeFile(join(installed, 'package.json'), '{ "private": true, "type": "module" }\n');
    await run(installed, 'npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', join(folder, packed.filename));
    await startsIn(installed);
    await isImportedIn(installed);
  });

  it('has types that a program of every role compiles with, set up as docs/install.md says', async () => {
    const [, configuration] = /```json\n([\s\S]*?)```/.exec(await readFile(join(root, 'docs/install.md'), 'utf8')) ?? [];
    const program = join(folder, 'program');
    await mkdir(program);
    await writeFile(join(program, 'package.json'), '{ "private": true, "type": "module" }\n');
    await writeFile(join(program, 'tsconfig.json'), configuration ?? '');
    await writeFile(
      join(program, 'program.ts'),
      `import { SvcClient } from 'svc-connect/client';
      import { Device } from 'svc-connect/device';
      import { startBasestation } from 'svc-connect/server';
      console.log(SvcClient.create(), new Device(), startBasestation);`,
    );
    expect(await run(program, join(root, 'node_modules/.bin/tsc'), '--noEmit', '-p', program)).toBe('');
  });

  it('runs the engine', async () => {
    const script = `
      import { Core } from 'svc-connect/bindings';
      import { readFile } from 'node:fs/promises';
      import { createRequire } from 'node:module';
      const wasm = await readFile(createRequire(import.meta.url).resolve('svc-connect/core.wasm'));
      for (const core of [Core.create(), await Core.load({}, wasm)]) {
        const key = new Uint8Array(32).fill(1), none = new Uint8Array();
        const opened = core.aead.open(key, 7, none, core.aead.seal(key, 7, none, new Uint8Array([1, 2, 3])));
        console.log([...opened].join());
      }`;
    await writeFile(join(folder, 'engine.mjs'), script);
    expect(await run(folder, process.execPath, 'engine.mjs')).toBe('1,2,3\n1,2,3\n');
  });
});

/** Runs a command to its end. @returns its standard output */
function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  return new TestProcess(command, args, { cwd }).succeeded();
}

async function startsIn(place: string): Promise<void> {
  const stdout = await run(place, process.execPath, 'node_modules/svc-connect/dist/svc/main.cjs', '--version');
  expect(stdout.trim()).toContain(manifest.version);
}

async function isImportedIn(place: string): Promise<void> {
  const subpaths = Object.keys(manifest.exports).filter((subpath) => subpath !== '.' && !/\.(wasm|json)$/.test(subpath));
  const script = subpaths.map(
    (subpath) => `if (Object.keys(await import('svc-connect${subpath.slice(1)}')).length === 0) throw new Error('${subpath}');`,
  );
  await writeFile(join(place, 'imports.mjs'), `${script.join('\n')}\nconsole.log('imported');\n`);
  expect(await run(place, process.execPath, 'imports.mjs')).toBe('imported\n');
}

async function unpack(): Promise<void> {
  const target = join(folder, 'node_modules');
  await mkdir(target);
  await run(folder, 'tar', '-xzf', packed.filename, '-C', target);
  await rename(join(target, 'package'), join(target, 'svc-connect'));
  const names = (await readdir(join(root, 'node_modules'))).flatMap((name) => (name.startsWith('.') ? [] : [name]));
  await Promise.all(names.map((name) => symlink(join(root, 'node_modules', name), join(target, name), 'dir')));
  expect(dirname(target)).toBe(folder);
}
