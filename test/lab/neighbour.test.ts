/**
 * One of our streams and one of TCP CUBIC share a line of 100 Mbit/s and 50 ms round trip: neither starves, and the
 * shares are figures.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Contenders, Pair } from '../../bench/contenders.ts';
import { program } from '../../bench/processes/parent.ts';
import { record } from './figures.ts';
import { lab, overLink, withContenders } from './lab.ts';

/** ms to find the share, and ms over which it is measured. */
const SETTLE = 4_000;
const WINDOW = 60_000;
/** More than the window carries: the transfers are cut off. */
const BYTES = 4e9;

lab('a neighbour', () => {
  // Bytes of queue: one bandwidth-delay product, and a quarter.
  for (const [name, queue] of [
    ['1 BDP', 625_000],
    ['0.25 BDP', 156_250],
  ] as const) {
    it(`of TCP CUBIC is not starved by ours with ${name} of queue`, async () => {
      const rates: Record<string, number> = {};
      await overLink({ rate: 100, delay: 25, queue, seed: 5 }, async (over) => {
        const take = async ({ pairs }: Contenders): Promise<void> => {
          for (const { near } of pairs) near.call('bulk', { bytes: BYTES }).catch(() => {});
          await sleep(SETTLE);
          const before = await arrived(pairs);
          await sleep(WINDOW);
          const after = await arrived(pairs);
          pairs.forEach(({ name }, index) => {
            rates[name] = (((after[index] as number) - (before[index] as number)) * 8) / 1000 / WINDOW;
          });
        };
        await withContenders(over, [program('ours')], take, 'tcp');
      });
      const { ours = 0, tcp = 0 } = rates;
      record(`side by side, queue of ${name}, Mbit/s`, 'ours', ours);
      record(`side by side, queue of ${name}, Mbit/s`, 'tcp', tcp);
      record(`our share, queue of ${name}, %`, 'ours', (100 * ours) / (ours + tcp), { atLeast: 30, atMost: 70 });
      expect(ours).toBeGreaterThan(0);
      expect(tcp).toBeGreaterThan(0);
    });
  }
});

function arrived(pairs: readonly Pair[]): Promise<number[]> {
  return Promise.all(pairs.map(({ far }) => far.call<number>('arrived')));
}
