/** What a process of its own loads of Node for the core. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const BINDINGS = new URL('../../dist/bindings/index.js', import.meta.url).href;

/** The parts of fetch that are loaded after `code`. */
function fetchAfter(code: string): string[] {
  const script = `
    import { Core } from '${BINDINGS}';
    ${code};
    console.log(JSON.stringify(process.moduleLoadList.filter((name) => name.includes('undici'))));
  `;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' })) as string[];
}

test('loads no fetch, which takes 3 MB and is loaded by a look at the global Response', () => {
  expect(fetchAfter('await Core.load()')).toEqual([]);
  expect(fetchAfter('await Core.load(); globalThis.Response')).not.toEqual([]);
});
