/** What a process of its own loads of Node for the core. */
import { expect, test } from 'vitest';
import { TestProcess } from '../support/process.ts';

const BINDINGS = new URL('../../dist/bindings/index.js', import.meta.url).href;

/** The parts of fetch that are loaded after `code`. */
async function fetchAfter(code: string): Promise<string[]> {
  const script = `
    import { Core } from '${BINDINGS}';
    ${code};
    console.log(JSON.stringify(process.moduleLoadList.filter((name) => name.includes('undici'))));
  `;
  return JSON.parse(await new TestProcess(process.execPath, ['--input-type=module', '--eval', script]).succeeded()) as string[];
}

test('loads no fetch, which takes 3 MB and is loaded by a look at the global Response', async () => {
  expect(await fetchAfter('await Core.load()')).toEqual([]);
  expect(await fetchAfter('await Core.load(); globalThis.Response')).not.toEqual([]);
});
