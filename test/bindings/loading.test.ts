/**
 * The parts of Node that a separate process loads for the core, and the address space that it needs.
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

const script = `import { Core } from '${BINDINGS}'; await Core.load().then(() => console.log('loaded'), ({ message }) => console.log(message))`;
test.each([
  ['is refused with its remedy', '', /address space.*NODE_OPTIONS=--disable-wasm-trap-handler/],
  ['is enough after the remedy', '--disable-wasm-trap-handler', /^loaded\n$/],
])('6 GB of address space %s', async (_, options, output) => {
  const shell = ['-c', 'ulimit -v 6000000; exec "$0" "$@"', process.execPath, '--input-type=module', '--eval', script];
  const variables = { NODE_OPTIONS: options };
  expect(await new TestProcess('sh', shell, { variables }).succeeded()).toMatch(output);
});

test('loads no fetch: it takes 3 MB, and any access to the global Response loads it', async () => {
  expect(await fetchAfter('await Core.load()')).toEqual([]);
  expect(await fetchAfter('await Core.load(); globalThis.Response')).not.toEqual([]);
});
