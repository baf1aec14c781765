/**
 * 144 links: every combination of loss, reordering, duplicates and round-trip time; the received bytes equal the sent
 * ones.
 */
import { describe, expect, it } from 'vitest';
import { seeds } from '../../support/tiered.ts';
import { equal } from '../stack/support.ts';
import { download, expectNoFailure, fileBench, KB } from './support.ts';

const cells = [0, 0.01, 0.05, 0.1, 0.2, 0.3].flatMap((loss) =>
  [0, 0.1, 0.5].flatMap((reorder) => [0, 0.1].flatMap((duplicate) => [1, 50, 300, 1500].map((rtt) => ({ loss, reorder, duplicate, rtt })))),
);

/**
 * Bursts are counted in datagrams. On an idle link with 1.5 s of round trip a long one takes half a minute, in which
 * the keep-alive, of one datagram every 2 s, rightly gives up. This test is about data, so both ends have more retries.
 */
const keepAlive = { interval: 25_000, retryInterval: 2000, maxRetries: 300 };
const parameters = { idleTimeout: 900_000 };
/** Half of all, the same number for every round-trip time: three of five of those that lose anything. */
const bursty = new Set(cells.filter(({ loss }) => loss > 0).filter((_, i) => i % 5 < 3));
/** By seed. */
const controllers = ['bbr', 'newreno', 'cubic'] as const;

describe('matrix', () => {
  it('has 144 cells, half of them with burst loss, of every round-trip time', () => {
    expect([cells.length, bursty.size]).toEqual([144, 72]);
    for (const rtt of [1, 50, 300, 1500]) expect([...bursty].filter((cell) => cell.rtt === rtt)).toHaveLength(18);
  });

  const all = cells.map((cell) => ({ ...cell, isBurst: bursty.has(cell) }));
  /** 40 of them, with both corners and each value: 11 is prime to the numbers of values. */
  const quick = all.filter((_, i) => [0, 4, 7].includes(i % 11));

  it.each(quick)('carries every byte: %o', (cell) => carries(cell, seeds(1, 1)));
  it.each(all)('carries every byte with other seeds: %o', { tags: ['slow'] }, (cell) => carries(cell, seeds(2, 7)));

  async function carries({ loss, reorder, duplicate, rtt, isBurst }: (typeof all)[number], of: readonly number[]): Promise<void> {
    const link = { loss, reorder, duplicate, delay: rtt / 2, reorderDelay: Math.max(5, rtt / 2), ...(isBurst ? { burst: 3 } : {}) };
    const files = [100 * KB, KB];
    for (const seed of of) {
      const congestion = controllers[(seed - 1) % 3]!;
      const here = await fileBench({
        seed: `${seed} ${loss} ${reorder} ${duplicate} ${rtt}`,
        link,
        files,
        device: { parameters, congestion },
        client: { parameters, congestion, keepAlive },
      });
      const job = async () => {
        const session = await here.connect({ timeout: 60_000 });
        const asking = [10, 5000].map(async (length) => {
          const payload = here.random.bytes(length);
          const response = await session.request({ method: 'POST', path: '/echo', payload, timeout: 1_200_000 });
          expect([response.status, equal(response.payload, payload)]).toEqual([204, true]);
        });
        await Promise.all([...files.map((length, port) => download(session, length, port)), ...asking]);
      };
      await here.simulation.settle(job());
      expectNoFailure(here);
    }
  }
});
