/**
 * The built command: its bundles are small, hold no `import()`, import only listed packages, and come with the licences
 * of what they contain.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { root, sources } from './imports.ts';

/** Scripts of the build have no types. */
const script = (name: string) => import(new URL(`../../cli/${name}`, import.meta.url).href);
const { EXTERNAL } = (await script('bundle.mjs')) as { EXTERNAL: string[] };
const { packagesOf } = (await script('licences.mjs')) as { packagesOf(metafiles: Metafile[]): string[] };

/** All commands in one. */
const { metafile } = await build({
  stdin: {
    contents: sources('cli/bundles')
      .map((file, index) => `export * as bundle${index} from './${file}';`)
      .join('\n'),
    resolveDir: root,
    loader: 'ts',
  },
  absWorkingDir: root,
  bundle: true,
  write: false,
  metafile: true,
  platform: 'node',
  format: 'cjs',
  external: EXTERNAL,
  logLevel: 'silent',
});

const folder = join(root, 'dist/svc');
const bundles = readdirSync(folder).filter((file) => file.endsWith('.cjs'));
const textOf = (file: string) => readFileSync(join(folder, file), 'utf8');

describe.each(bundles)('%s', (file) => {
  const text = textOf(file);

  test('has no import(), which fails in code from a cache', () => {
    // A property of that name does not count.
    expect(text.match(/(?<![.\w$])import\s*\(/g)).toBeNull();
  });

  test('is ASCII', () => {
    expect(Buffer.byteLength(text)).toBe(text.length);
  });
});

test('bundles leave out optional dependencies, and nothing else', () => {
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  const outside = new Set(
    imports
      .filter(({ external, path }) => external === true && !builtinModules.includes(path.replace(/^node:/, '')))
      .map(({ path }) => path),
  );
  // The last two are optional dependencies of ws.
  expect([...outside].toSorted()).toEqual(['bufferutil', 'libsql', 'utf-8-validate']);
});

test('there is one bundle for each file of cli/bundles, and the one that starts them', () => {
  const names = sources('cli/bundles').map((file) => file.replace(/^.*\/(.*)\.ts$/, '$1.cjs'));
  expect(bundles.toSorted()).toEqual([...names, 'main.cjs'].toSorted());
});

test('the bundle that starts the others is small', () => {
  expect(textOf('main.cjs').length).toBeLessThan(10_000);
});

describe('LICENSES.txt', () => {
  const licences = textOf('LICENSES.txt');

  test('names every package in a bundle of all commands, each with a licence', () => {
    const packages = packagesOf([metafile]);
    expect(packages.length).toBeGreaterThan(20);
    const require = createRequire(join(root, 'package.json'));
    const titles = packages.map((each) => {
      const { name, version, license } = require(join(root, each, 'package.json'));
      return `\n${name} ${version} (${license})\n`;
    });
    expect(titles.filter((title) => !licences.includes(title))).toEqual([]);
  });

  test('has no part without a licence text', () => {
    const parts = licences.split(/\n-{80}\n/).slice(1);
    expect(parts.filter((part) => !/permission|redistribution/i.test(part) || !/copyright/i.test(part))).toEqual([]);
  });
});

test('LICENSES.txt is in the package', () => {
  const { bin, files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(existsSync(join(root, bin.svc))).toBe(true);
  expect(bin.svc.startsWith('./dist/svc/')).toBe(true);
  expect(files).toContain('dist');
  expect(files.some((each: string) => each.startsWith('!dist/svc'))).toBe(false);
});
