/**
 * Proves that a type test needs its type: the type checker reads a copy of the test in which the type is `unknown`, and
 * must find an error in the cited test. One run checks all copies, against the declarations that were built.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ENTRIES, partsOf } from '../symbols.ts';
import type { Claim } from './claims.ts';
import type { Verdict } from './prove.ts';

/** Decides claims about types. */
export function proveTypes(root: string, claims: readonly Claim[]): Verdict[] {
  const folder = join(root, 'build/conformance/types');
  rmSync(folder, { recursive: true, force: true });
  const sound = claims.map((claim, at) => copy(root, join(folder, 'as-it-stands', String(at)), claim, false));
  const replaced = claims.map((claim, at) => copy(root, join(folder, 'replaced', String(at)), claim, true));
  const errors = check(root, folder);
  return claims.map((claim, at) => {
    const within = (file: string | null) => errors.filter((error) => error.file === file && isCited(claim, root, error.line));
    if (sound[at] == null || replaced[at] == null) return { claim, obstacle: 'the test does not import the type' };
    if (errors.some(({ file }) => file === sound[at])) return { claim, obstacle: 'the test has errors as it stands' };
    return { claim, obstacle: within(replaced[at]).length > 0 ? null : 'the type checker finds no error with it replaced' };
  });
}

/**
 * Writes a copy of the test with unchanged line numbers. @returns its path; null when it does not import the module of
 * the type
 */
function copy(root: string, folder: string, { row, file }: Claim, replaced: boolean): string | null {
  const parts = partsOf(row.symbol);
  if (parts === null) return null;
  const module = ENTRIES[parts.module] ?? parts.module;
  const built = relative(folder, join(root, 'dist', `${module}.js`));
  const text = readFileSync(join(root, file), 'utf8');
  const imported = `'${relative(dirname(file), module)}.ts'`;
  if (!text.includes(imported)) return null;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'module.ts'), `export * from '${built}';\n${replaced ? `export type ${parts.name} = unknown;\n` : ''}`);
  writeFileSync(join(folder, 'test.ts'), text.replace(imported, "'./module.ts'"));
  return join(folder, 'test.ts');
}

interface TypeError {
  readonly file: string;
  readonly line: number;
}

function check(root: string, folder: string): TypeError[] {
  const configuration = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: {
      composite: false,
      incremental: false,
      noEmit: true,
      allowImportingTsExtensions: true,
      rewriteRelativeImportExtensions: false,
      lib: ['ES2023', 'DOM'],
      types: ['node'],
      noUnusedLocals: false,
    },
    include: ['**/*.ts'],
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(configuration, null, 2));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' });
  return [...stdout.matchAll(/^(.+?)\((\d+),\d+\): error/gm)].map(([, file = '', line]) => ({
    file: join(folder, file),
    line: Number(line),
  }));
}

/** Whether a line of the test's file, from 1, belongs to the cited test. */
function isCited({ file, title }: Claim, root: string, line: number): boolean {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const begin = lines.findIndex((each) => each.includes(`test('${title}'`));
  const end = lines.findIndex((each, at) => at > begin && /^ *}\);/.test(each));
  return begin >= 0 && line - 1 > begin && line - 1 < end;
}
