/** A stream of ours and one of TCP CUBIC share a line of 100 Mbit/s and 50 ms RTT: neither starves, and the shares are printed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import type { Contenders, Pair } from '../../bench/contenders.ts';
import { program } from '../../bench/processes/parent.ts';
import { size } from '../support/size.ts';
import { lab, overLink, Table, withContenders } from './lab.ts';

/** ms to find the share, and over which it is taken. */
const SETTLE = 4_000;
const WINDOW = size(8_000, 60_000);
/** More than the window carries: the transfers are cut off. */
const BYTES = 4e9;

const table = new Table('a stream beside TCP CUBIC, at 100 Mbit/s and 50 ms RTT');

afterAll(() => table.print());

lab('a neighbour', () => {
  // Bytes of queue: one bandwidth-delay product, and a quarter.
  for (const [name, queue] of [
    ['1 BDP', 625_000],
    ['0.25 BDP', 156_250],
  ] as const) {
    it(`of TCP CUBIC lives beside us with ${name} of queue`, async () => {
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
      table.set(name, 'ours, Mbit/s', ours.toFixed(1));
      table.set(name, 'tcp, Mbit/s', tcp.toFixed(1));
      table.set(name, 'our share', `${((100 * ours) / (ours + tcp)).toFixed(0)} %`);
      expect(ours).toBeGreaterThan(0);
      expect(tcp).toBeGreaterThan(0);
    });
  }
});

function arrived(pairs: readonly Pair[]): Promise<number[]> {
  return Promise.all(pairs.map(({ far }) => far.call<number>('arrived')));
}
