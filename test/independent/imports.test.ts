/** The decoder is independent: its files import Node, @noble/curves and one another, and nothing else. */
import { expect, it } from 'vitest';
import { imports, sources, stripped, targetOf } from '../policy/imports.ts';

const FOLDER = 'test/independent/decoder/';
const PACKAGE = /^(node:crypto|@noble\/curves\/[a-z0-9]+\.js)$/;
/** Ways to load a module without an import declaration. */
const OTHER_WAYS = /\b(require|createRequire|getBuiltinModule|eval|Function|WebAssembly)\b|\bimport\s*[.(]/;

const files = sources('test/independent/decoder');

function isAllowed(file: string, specifier: string): boolean {
  const target = targetOf(file, specifier);
  return target === null ? PACKAGE.test(specifier) : files.includes(target);
}

it('the decoder imports Node, @noble/curves and itself', () => {
  expect(files.length).toBeGreaterThan(8);
  const wrong = files.flatMap((file) =>
    imports(file).flatMap((specifier) => (isAllowed(file, specifier) ? [] : [`${file} → ${specifier}`])),
  );
  expect(wrong).toEqual([]);
  const loaded = files.flatMap((file) => OTHER_WAYS.exec(stripped(file))?.[0] ?? []).map((found) => `${found}: use an import declaration`);
  expect(loaded).toEqual([]);
});

it('the vectors are computed without the implementation', () => {
  const page = 'test/independent/vectors.test.ts';
  const wrong = imports(page).filter((name) => !/^(node:fs|vitest|\.\/decoder\/[\w-]+\.ts|\.\.\/vectors\/values\.ts)$/.test(name));
  expect([...wrong, ...imports('test/vectors/values.ts')]).toEqual([]);
});

it('an import of the implementation would be found', () => {
  const file = `${FOLDER}packets.ts`;
  const ours = [
    '../../../protocol/packet/index.ts',
    '../../support/crypto.ts',
    '../capture.ts',
    '@noble/ciphers/chacha.js',
    '@scure/base',
    'svc-connect/protocol',
  ];
  expect(ours.filter((specifier) => isAllowed(file, specifier))).toEqual([]);
  expect(['node:crypto', '@noble/curves/ed25519.js', './crypto.ts'].filter((specifier) => !isAllowed(file, specifier))).toEqual([]);
  for (const code of ["await import('../x.ts')", "require('x')", 'import ( name )']) expect(code).toMatch(OTHER_WAYS);
});
