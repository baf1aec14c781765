/**
 * Nothing stalls a message: random windows, sizes, limits and losses, streams that are never read, aborts in the
 * middle.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import type { Session } from '../../../runtime/session/index.ts';
import { Random } from '../../../testing/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { seeds } from '../../support/tiered.ts';
import { bench, equal, roundTrip, StreamPort } from './support.ts';

describe('random sessions', () => {
  it.each(seeds(1, 5))('answer every request (seed %d)', answers);
  it.each(seeds(6, 70))('answer every request (seed %d)', answers);

  async function answers(seed: number): Promise<void> {
    const random = new Random(`stall ${seed}`);
    const between = (low: number, high: number) => low + (random.u32() % (high - low + 1));
    const limits = () => ({
      initialMaxData: between(133_120, 600_000),
      initialMaxStreamData: between(1_024, 40_000),
      maxStreams: between(4, 40),
      maxMessages: between(1, 256),
      maxAckDelay: between(1, 25),
      maxUdpPayload: between(0, 1) === 0 ? 1200 : 1452,
    });
    const link = {
      loss: between(0, 10) / 100,
      delay: between(1, 100),
      jitter: between(0, 20),
      reorder: between(0, 10) / 100,
      rate: between(1, 50) * 1e6,
    };
    const { simulation, connect, device, client, served } = await bench({
      seed,
      link,
      device: { parameters: limits(), streamWindow: between(4_000, 300_000), limits: { streams: 100 } },
      client: { parameters: limits() },
    });
    const requests = between(20, 60);
    const job = async (): Promise<void> => {
      const session = await connect({ timeout: 300_000 });
      // streams that are never read, kept full: they may take all the credit of byte streams
      const stuck = await Promise.all(Array.from({ length: between(0, 2) }, () => openedStream(session, StreamPort.NEVER_READ)));
      for (const stream of stuck) void stream.write(random.bytes(2_000_000)).catch(() => {});
      const busy = await openedStream(session, StreamPort.SINK);
      const writing = busy.write(random.bytes(between(10_000, 300_000)));
      const aborted = await openedStream(session, StreamPort.ECHO);
      void aborted.write(random.bytes(200_000)).catch(() => {});
      client.environment.clock.schedule(between(0, 2000), () => aborted.abort());
      await Promise.all(
        Array.from({ length: requests }, () => ask(session, random.bytes(between(0, 1) === 0 ? between(0, 100) : between(0, 60_000)))),
      );
      for (const stream of stuck) stream.abort();
      await writing;
      const data = random.bytes(between(0, 50_000));
      expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
      await session.close();
    };
    await simulation.settle(job());
    expect(served.get('/echo')).toBe(requests);
    expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
  }
});

async function ask(session: Session, payload: Uint8Array): Promise<void> {
  const response = await session.request({ method: 'POST', path: '/echo', payload });
  expect([response.status, equal(response.payload, payload)]).toEqual([204, true]);
}
