/** Handshake, CoAP and streams, unchanged bytes, over links with every combination of faults. */
import { describe, expect, it } from 'vitest';
import { openedStream } from '../../support/opened-stream.ts';
import { seeds } from '../../support/tiered.ts';
import { bench, equal, roundTrip, StreamPort } from './support.ts';

const cells = [0, 0.01, 0.05, 0.2].flatMap((loss) =>
  [0, 0.1].flatMap((reorder) => [0, 0.1].flatMap((duplicate) => [1, 50, 300].map((rtt) => ({ loss, reorder, duplicate, rtt })))),
);

/** Both corners, and every loss, reordering, duplicate and round-trip time. */
const quick = cells.filter((_, i) => [0, 7, 13, 20, 27, 34, 40, 47].includes(i));

describe('over a link with faults', () => {
  it.each(quick)('works: %o', (cell) => works(cell, seeds(1, 1)));
  it.each(cells)('works with other seeds: %o', { tags: ['slow'] }, (cell) => works(cell, seeds(2, 4)));

  async function works({ loss, reorder, duplicate, rtt }: (typeof cells)[number], of: readonly number[]): Promise<void> {
    for (const seed of of) {
      const link = { loss, reorder, duplicate, delay: rtt / 2, jitter: rtt / 10, reorderDelay: Math.max(5, rtt / 4), rate: 100e6 };
      const { simulation, random, connect, served } = await bench({ seed, link });
      const job = async (): Promise<void> => {
        const session = await connect({ timeout: 300_000 });
        expect(session).toMatchObject({
          peer: { verified: 'pinned', info: { ProductId: 'pr-1', DeviceId: 'de-1' } },
          paths: { type: 'DIRECT' },
        });
        const requests = Array.from({ length: 20 }, async (_, i) => {
          const payload = random.bytes((i * 397) % 5000);
          const response = await session.request({ method: 'POST', path: '/echo', contentFormat: 42, payload });
          expect([response.status, equal(response.payload, payload)]).toEqual([204, true]);
        });
        const streams = [10, 300_000].map(async (length) => {
          const data = random.bytes(length);
          expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
        });
        await Promise.all([...requests, ...streams]);
        await session.close();
      };
      await simulation.settle(job());
      expect(served.get('/echo')).toBe(20);
    }
  }
});
