/**
 * `/bindings`, `/protocol` and `/testing` depend on no platform: each bundles without any `node:` import, and one
 * bundle of all three runs a simulated handshake, a CoAP request and a byte stream in a `node:vm` context that has the
 * language but nothing of Node.
 *
 * @module-tag slow
 */
import { fileURLToPath } from 'node:url';
import { createContext, Script } from 'node:vm';
import { build, type Metafile } from 'esbuild';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('browser bundles', () => {
  for (const entry of ['bindings/index.ts', 'protocol/index.ts', 'testing/index.ts', 'client/browser.ts']) {
    it(`${entry} bundles without Node`, async () => {
      const { metafile } = await bundle(`export * from './${entry}';`);
      expect(externals(metafile)).toEqual([]);
      expect(Object.keys(metafile.inputs).filter((file) => /(^|\/)platform\/node\//.test(file))).toEqual([]);
    });
  }
});

describe('the engine in a bare context', () => {
  it('completes a handshake, answers a CoAP request and carries a stream', async () => {
    const { text } = await bundle(`export { scenario } from './test/policy/bundle-scenario.ts';`);
    const context = createContext({ TextEncoder, TextDecoder });
    new Script(text).runInContext(context);
    const result = await (new Script('bundled.scenario()').runInContext(context) as Promise<Record<string, unknown>>);
    expect(result).toEqual({ verified: 'pinned', status: 205, payload: 'hello', echoed: 100_000, equal: true });
  });
});

async function bundle(contents: string): Promise<{ text: string; metafile: Metafile }> {
  const result = await build({
    stdin: { contents, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'bundled',
    target: 'es2022',
    logLevel: 'silent',
  });
  return { text: result.outputFiles[0]?.text ?? '', metafile: result.metafile };
}

function externals(metafile: Metafile): string[] {
  return Object.values(metafile.inputs).flatMap((input) =>
    input.imports.filter((found) => found.external === true).map((found) => found.path),
  );
}
