/** One bulk stream at 100 Mbit/s and 50 ms RTT with random loss: every byte arrives, nothing is fragmented, and the goodput is printed. */
import { afterAll, expect, it } from 'vitest';
import type { Pair } from '../../bench/contenders.ts';
import { program } from '../../bench/processes/parent.ts';
import { size } from '../support/size.ts';
import { lab, overLink, Table, withContenders } from './lab.ts';

/** Bytes of the first transfer, then seconds that further ones take at the rate of the one before; the last one counts. */
const FIRST_BYTES = 512 * 1024;
const SECONDS = [2, size(6, 20)];

const TEN_MEGABYTES = 10_000_000;

/** One bandwidth-delay product of queue. */
const link = { rate: 100, delay: 25, queue: 625_000, seed: 7 };
const table = new Table('goodput of one stream, Mbit/s, at 100 Mbit/s (or less) and 50 ms RTT');

afterAll(() => table.print());

lab('one bulk stream', () => {
  for (const loss of [0, 1, 5]) {
    it(`is byte-exact and without fragments at ${loss} % loss`, async () => {
      let fragmented = 0;
      const counters = await overLink({ ...link, loss }, async (over) => {
        const absent = await withContenders(over, [program('ours')], async (contenders) => {
          await contenders.each(async (pair) => table.set(`${loss} % loss`, pair.name, (await goodput(pair)).toFixed(1)));
        });
        for (const [peer, reason] of Object.entries(absent)) table.set(`${loss} % loss`, peer, reason);
        fragmented = over.near.fragmented() + over.far.fragmented();
      });
      expect(counters.ab.packets).toBeGreaterThan(1000);
      if (loss > 0) expect(counters.ab.lost).toBeGreaterThan(0);
      expect(fragmented).toBe(0);
    });
  }
});

lab('ten megabytes', () => {
  it('arrive over a line of 10 Mbit/s', async () => {
    const counters = await overLink({ ...link, rate: 10, queue: 62_500 }, async (over) => {
      await withContenders(over, [program('ours')], (contenders) =>
        contenders.each(async ({ name, near }) => {
          const rate = await near.call<number>('bulk', { bytes: TEN_MEGABYTES, check: true });
          table.set('10 MB, 10 Mbit/s', name, (rate * 8).toFixed(2));
        }),
      );
    });
    expect(counters.ab.bytes).toBeGreaterThan(TEN_MEGABYTES);
  });
});

/** Mbit/s; rejects when what arrives is not what was sent. */
async function goodput({ near }: Pair): Promise<number> {
  let rate = await near.call<number>('bulk', { bytes: FIRST_BYTES, check: true });
  for (const seconds of SECONDS)
    rate = await near.call<number>('bulk', { bytes: Math.max(65_536, Math.round(rate * 1e6 * seconds)), check: true });
  return rate * 8;
}
