/** Tests start processes only by `test/support/process.ts`, so that a failing test shows what they wrote. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));
const HELPER = 'support/process.ts';
/** Files that start processes outside of any test: one that outlives the run, and runs of the test runner itself. */
const OUTSIDE_OF_TESTS = ['lab/setup.ts', 'mutants/process.ts'];
const IMPORT = /import (?:type )?\{([^}]*)\} from 'node:child_process'/g;
/** Folders that may use the functions below. */
const WAITED_FOR = ['lab/', 'conformance/prove/'];
/** Functions that wait for the command, and whose errors hold its output. */
const WAITING = /^(?:spawnSync|execFileSync)$/;

function imported(file: string): string[] {
  const text = readFileSync(`${folder}/${file}`, 'utf8');
  return [...text.matchAll(IMPORT)].flatMap(([, names = '']) => names.split(',').map((name) => name.trim()));
}

test('nothing but test/support/process.ts starts a process', () => {
  const files = readdirSync(folder, { recursive: true }).map(String);
  const sources = files.filter((file) => file.endsWith('.ts'));
  expect(sources).toContain(HELPER);
  expect(imported(HELPER)).toContain('spawn');
  const others = sources.filter((file) => file !== HELPER && !OUTSIDE_OF_TESTS.includes(file));
  const allowed = (file: string, name: string): boolean => WAITED_FOR.some((folder) => file.startsWith(folder)) && WAITING.test(name);
  expect(others.filter((file) => imported(file).some((name) => !allowed(file, name)))).toEqual([]);
  expect(others.filter((file) => /(?:require|import)\('node:child_process'\)/.test(readFileSync(`${folder}/${file}`, 'utf8')))).toEqual([]);
});
