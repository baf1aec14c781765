/** Small things at 100 Mbit/s and 50 ms RTT: the first echo of a new connection, and echoes on an open one under loss; figures are printed. */
import { afterAll, expect, it } from 'vitest';
import { ours } from '../../bench/echo.ts';
import { percentile } from '../../bench/report.ts';
import { size } from '../support/size.ts';
import { lab, overLink, Table, withContenders } from './lab.ts';

const CONNECTIONS = 5;
const ECHOES = size(100, 1000);

const link = { rate: 100, delay: 25, queue: 625_000, seed: 11 };
const table = new Table('64 bytes at 50 ms RTT, ms');

afterAll(() => table.print());

lab('echo', () => {
  it('comes back over each new connection', async () => {
    const first: number[] = [];
    await overLink(link, async (over) => {
      await withContenders(over, ours, (contenders) =>
        contenders.each(async ({ name, near, address }) => {
          const times: number[] = [];
          for (let index = 0; index < CONNECTIONS; index++) times.push(await near.call<number>('firstEcho', { address }));
          table.set('new connection', name, percentile(times, 50).toFixed(1));
          if (name === 'ours') first.push(...times);
        }),
      );
    });
    expect(first.length).toBe(CONNECTIONS);
    // Nothing is faster than one round trip.
    expect(Math.min(...first)).toBeGreaterThan(50);
  });

  it('comes back every time at 5 % loss', async () => {
    const counters = await overLink({ ...link, loss: 5 }, async (over) => {
      await withContenders(over, ours, (contenders) =>
        contenders.each(async ({ name, near }) => {
          const times = (await near.call<number[]>('echo', { count: ECHOES })).map((microseconds) => microseconds / 1000);
          expect(times.length).toBe(ECHOES);
          for (const percent of [50, 99]) table.set(`5 % loss, p${percent}`, name, percentile(times, percent).toFixed(1));
        }),
      );
    });
    expect(counters.ab.lost).toBeGreaterThan(0);
  });
});
