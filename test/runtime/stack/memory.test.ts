/**
 * Little memory: streams wait, nothing fails, and all memory is freed.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import { openedStream } from '../../support/opened-stream.ts';
import { seeds } from '../../support/tiered.ts';
import { bench, equal, roundTrip, StreamPort } from './support.ts';

describe('with little memory', () => {
  it.each(seeds(1, 30))('streams wait for stream segments and all end (seed %d)', { tags: ['slow'] }, waitAndEnd);

  async function waitAndEnd(seed: number): Promise<void> {
    const { simulation, connect, random, device, client } = await bench({
      seed,
      link: { delay: 5, loss: 0.01, rate: 50e6 },
      device: { core: { streamSegments: 400 } },
      client: { core: { streamSegments: 400 } },
    });
    const job = async (): Promise<void> => {
      const session = await connect();
      const requests = Array.from({ length: 10 }, async () => {
        const payload = random.bytes(2000);
        const response = await session.request({ method: 'POST', path: '/echo', payload });
        expect(equal(response.payload, payload)).toBe(true);
      });
      const streams = Array.from({ length: 12 }, async () => {
        const data = random.bytes(100_000);
        expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
      });
      await Promise.all([...requests, ...streams]);
    };
    await simulation.settle(job());
    expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
  }

  it('a core with 1 MiB serves requests and streams', { tags: ['slow'] }, async () => {
    const { simulation, connect, random, device, client } = await bench({
      link: { delay: 5, rate: 50e6 },
      device: { core: { memory: 1024 * 1024, connections: 4, streams: 64 } },
    });
    const job = async (): Promise<void> => {
      const session = await connect();
      const large = random.bytes(60_000);
      const response = await session.request({ method: 'POST', path: '/echo', payload: large });
      expect(equal(response.payload, large)).toBe(true);
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          const data = random.bytes(300_000);
          expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
        }),
      );
    };
    await simulation.settle(job());
    expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
  });

  it('carries bodies of many messages both ways', async () => {
    const { simulation, connect, random } = await bench({ link: { delay: 10, loss: 0.02, rate: 50e6 } });
    const session = await simulation.settle(connect());
    const payload = random.bytes(400_000);
    const response = await simulation.settle(session.request({ method: 'POST', path: '/echo', payload }));
    expect([response.status, equal(response.payload, payload)]).toEqual([204, true]);
  });
});
