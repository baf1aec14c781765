/**
 * ChaCha20-Poly1305 for packets of 1,200 bytes in Chromium (Debian's, or that of `SVC_CHROMIUM`), into buffers that
 * exist already, under the Content-Security-Policy of docs/sdk.md.
 *
 *   aead-1200             seals a message and opens one, in a page
 *   aead-1200-worker      the same in a worker
 *   seal-1200, open-1200  each alone, in a page
 */
import type { Browser } from 'playwright-core';
import type { AeadRounds, Operation } from './browser/aead.ts';
import { missingChromium, startChromium } from './browser/chromium.ts';
import { Site } from './browser/site.ts';
import type { Place } from './browser/task.ts';
import { visit } from './browser/visit.ts';
import { Figures } from './figures.ts';
import type { Goal, Report } from './report.ts';
import { fromRoot } from './root.ts';

const SIZE = 1200;
const ROUNDS = { size: SIZE, rounds: 21, warmUp: 3, time: 40 };
/** ms for one case, on a slow machine. */
const PATIENCE = 120_000;

const CASES: readonly { name: string; place: Place; operation: Operation }[] = [
  { name: 'aead-1200', place: 'page', operation: 'both' },
  { name: 'aead-1200-worker', place: 'worker', operation: 'both' },
  { name: 'seal-1200', place: 'page', operation: 'seal' },
  { name: 'open-1200', place: 'page', operation: 'open' },
];

/** @throws Error where there is no Chromium */
export async function run(progress: (step: string) => void): Promise<Report> {
  const missing = missingChromium();
  if (missing !== null) throw new Error(`needs ${missing}`);
  const site = await Site.open({ aead: fromRoot('bench/browser/aead.ts') });
  try {
    const browser = await startChromium();
    try {
      return await measured(browser, site, progress);
    } finally {
      await browser.close();
    }
  } finally {
    await site.close();
  }
}

async function measured(browser: Browser, site: Site, progress: (step: string) => void): Promise<Report> {
  const figures = new Figures();
  for (const { name, place, operation } of CASES) {
    progress(name);
    const input: AeadRounds = { ...ROUNDS, operation };
    const rates = (await visit(browser, site, { place, module: 'aead', call: 'measure', input }, PATIENCE)) as Record<string, number[]>;
    for (const [contender, values] of Object.entries(rates)) for (const value of values) figures.add(name, contender, value);
  }
  return {
    bench: 'browser',
    about: `messages of 1,200 bytes sealed and opened with ChaCha20-Poly1305 per second, in Chromium ${browser.version()}.`,
    rows: CASES.map(({ name }) => figures.row(name, 'ops/s', 'higher')),
    goals: ['aead-1200', 'aead-1200-worker'].flatMap(goals),
  };
}

function goals(name: string): Goal[] {
  return [
    { case: name, peer: '@noble/ciphers', atLeast: 7 },
    { case: name, peer: '@chainsafe/as-chacha20poly1305', atLeast: 4 },
  ];
}
