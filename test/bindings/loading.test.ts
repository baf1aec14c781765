/**
 * The parts of Node that a separate process loads for the core.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { TestProcess } from '../support/process.ts';

const BINDINGS = new URL('../../dist/bindings/index.js', import.meta.url).href;

/** Names of the loaded parts of fetch after `code`. */
async function fetchAfter(code: string): Promise<string[]> {
  const script = `
    import { Core } from '${BINDINGS}';
    ${code};
    console.log(JSON.stringify(process.moduleLoadList.filter((name) => name.includes('undici'))));
  `;
  return JSON.parse(await new TestProcess(process.execPath, ['--input-type=module', '--eval', script]).succeeded()) as string[];
}

test('loads no fetch: it takes 3 MB, and any access to the global Response loads it', async () => {
  expect(await fetchAfter('await Core.load()')).toEqual([]);
  expect(await fetchAfter('await Core.load(); globalThis.Response')).not.toEqual([]);
});
