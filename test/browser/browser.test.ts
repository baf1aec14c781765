/**
 * The package as a bundler builds it for a browser, in a page and in a worker, under the Content-Security-Policy of
 * docs/sdk.md.
 */
import { readFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AeadRounds } from '../../bench/browser/aead.ts';
import { missingChromium, startChromium } from '../../bench/browser/chromium.ts';
import { Site } from '../../bench/browser/site.ts';
import type { Place } from '../../bench/browser/task.ts';
import { visit } from '../../bench/browser/visit.ts';
import { fromRoot } from '../../bench/root.ts';
import { aeads } from '../core-as/aead/rfc8439.ts';
import { hmacVectors, sha256Vectors } from '../support/hash-vectors.ts';

/** Entry point → file of the build that a browser loads. */
const ENTRIES = {
  bindings: 'dist/bindings/index.js',
  protocol: 'dist/protocol/index.js',
  testing: 'dist/testing/index.js',
  client: 'dist/client/browser.js',
} as const;
const TASKS = ['loading', 'scenario', 'vectors'];
/** Time limit of one page, ms. */
const PATIENCE = 25_000;

const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const aeadInputs = aeads.map(({ key, nonce, ad, plaintext }) => ({
  key: toHex(key),
  nonce: toHex(nonce),
  ad: toHex(ad),
  plaintext: toHex(plaintext),
}));

let browser: Browser;
let site: Site;

describe.skipIf(missingChromium() !== null)('Chromium', () => {
  beforeAll(async () => {
    const entries = Object.keys(ENTRIES).map((name) => [name, `svc-connect/${name}`]);
    const tasks = TASKS.map((name) => [name, fromRoot(`test/browser/${name}.ts`)]);
    const bench = ['aead', fromRoot('bench/browser/aead.ts')];
    site = await Site.open(Object.fromEntries([...entries, ...tasks, bench]), {
      files: { 'core.wasm': await readFile(fromRoot('dist/core.wasm')) },
    });
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  describe.each<Place>(['page', 'worker'])('in a %s', suite);
});

function suite(place: Place): void {
  const run = (module: string, call: string, input?: unknown): Promise<unknown> =>
    visit(browser, site, { place, module, call, input }, PATIENCE);

  it('runs in that place', async () => {
    expect(await run('loading', 'place')).toBe(place);
  });

  it.each(Object.entries(ENTRIES))('svc-connect/%s loads with all its names', async (name, file) => {
    const names = Object.keys(await import(fromRoot(file))).sort();
    expect(await run('loading', 'exportsOf', name)).toEqual(names);
  });

  it('loads the core from every source', async () => {
    const loaded = (await run('loading', 'everySource')) as Record<string, string>;
    expect(Object.keys(loaded)).toEqual(['create', 'embedded', 'url', 'response', 'bytes', 'module']);
    expect(new Set(Object.values(loaded)).size).toBe(1);
  });

  it('passes the AEAD vectors of RFC 8439', async () => {
    const expected = aeads.map(({ name, plaintext, ciphertext, tag }) => ({
      name,
      sealed: toHex(ciphertext) + toHex(tag),
      opened: toHex(plaintext),
      damaged: null,
    }));
    const results = (await run('vectors', 'sealAndOpen', aeadInputs)) as object[];
    expect(results.map((result, index) => ({ name: aeads[index]?.name, ...result }))).toEqual(expected);
  });

  it('passes the vectors of SHA-256 and HMAC', async () => {
    const vectors = [...sha256Vectors.map(({ digest, ...rest }) => ({ ...rest, tag: digest })), ...hmacVectors];
    const results = (await run('vectors', 'hashes', vectors)) as string[][];
    const seen = vectors.map(({ name, tag }, index) => [name, ...(results[index] ?? []).map((each) => each.slice(0, tag.length))]);
    expect(seen).toEqual(vectors.map(({ name, tag }) => [name, tag, tag]));
  });

  it('runs a client over the simulator: handshake, request, observation and byte stream', async () => {
    expect(await run('scenario', 'scenario')).toEqual({
      type: 'DIRECT',
      verified: 'pinned',
      hello: '205 hello',
      observed: ['205 state 0', '205 state 1', '205 state 2', '404 state 3'],
      echoed: 100_000,
      isConnected: false,
    });
  });

  it('runs every cipher of the benchmark', async () => {
    const input: AeadRounds = { operation: 'both', size: 1200, rounds: 1, warmUp: 0, time: 1 };
    const rates = (await run('aead', 'measure', input)) as Record<string, number[]>;
    expect(Object.keys(rates)).toEqual(['ours', '@noble/ciphers', '@chainsafe/as-chacha20poly1305']);
    for (const [rate] of Object.values(rates)) expect(rate).toBeGreaterThan(0);
  });

  it('names the missing permission where the policy forbids WebAssembly', async () => {
    const strict = await Site.open({ loading: fromRoot('test/browser/loading.ts') }, { policy: "script-src 'self'" });
    try {
      const refused = visit(browser, strict, { place, module: 'loading', call: 'refusal' }, PATIENCE);
      await expect(refused).rejects.toThrow(
        "LocalError: this runtime cannot run the core, which needs WebAssembly with SIMD, and in a page 'wasm-unsafe-eval'",
      );
    } finally {
      await strict.close();
    }
  });

  it('fails on a violation of the policy, even when the exception is caught', async () => {
    await expect(run('loading', 'hiddenEval')).rejects.toThrow(/Content[ -]Security[ -]Policy/);
  });

  it('fails on an unhandled rejection, and on an error of the task', async () => {
    await expect(run('loading', 'lostRejection')).rejects.toThrow('this rejection is not handled');
    await expect(run('loading', 'failure')).rejects.toThrow('the task failed');
  });
}
