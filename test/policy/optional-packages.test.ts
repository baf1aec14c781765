/**
 * Each optional dependency, bundled or left outside as in `dist/svc`, loads where the bundles are, and works there.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { root } from './imports.ts';

const { SETTINGS } = (await import(new URL('../../cli/bundle.mjs', import.meta.url).href)) as { SETTINGS: object };
const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Loads packages with `import()`, as the sources do, and uses each. */
const contents = `
  export const uses = {
    koffi: async () => (await import(\`@koromix/koffi-linux-\${process.arch}\`)).default.load(null).func('int getpid()')() === process.pid,
    fastify: async () => typeof (await import('fastify')).default().get === 'function',
    jose: async () => (await import('jose')).base64url.encode('a') === 'YQ',
    kysely: async () => typeof (await import('kysely')).Kysely === 'function',
    libsql: async () => new (await import('libsql')).default(':memory:').prepare('select 1 as one').get().one === 1,
    'light-my-request': async () => {
      const app = (await import('fastify')).default();
      app.get('/', { schema: { response: { 200: { type: 'object', properties: { a: { type: 'string' } } } } } }, async () => ({ a: 'b', c: 1 }));
      return (await app.inject('/')).payload === '{"a":"b"}';
    },
  };`;

const { outputFiles } = await build({ ...SETTINGS, absWorkingDir: root, stdin: { contents, resolveDir: root }, write: false });
const bundled: { exports: { uses?: Record<string, () => Promise<boolean>> } } = { exports: {} };
new Script(`(function (exports, require, module) {${outputFiles[0]!.text}})`).runInThisContext()(
  bundled.exports,
  createRequire(join(root, 'dist/svc/main.cjs')),
  bundled,
);
const uses = bundled.exports.uses!;

test('every optional dependency has its use here', () => {
  const names = Object.keys(optionalDependencies).map((name) => (name.startsWith('@koromix/') ? 'koffi' : name));
  expect(Object.keys(uses).toSorted()).toEqual([...new Set(names)].toSorted());
});

test.each(Object.entries(uses).filter(([name]) => name !== 'koffi' || process.platform === 'linux'))('%s', async (_, use) => {
  expect(await use()).toBe(true);
});
