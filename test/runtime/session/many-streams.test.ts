/**
 * As many concurrent byte streams as a device announces, and one above its limit.
 *
 * @module-tag slow
 */
import { expect, it } from 'vitest';
import type { IncomingStream, Stream } from '../../../runtime/session/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { type ConnectedPair, pair, pattern } from './support.ts';

const COUNT = 2000;
/** Default limit of a core; those of the simulator are smaller. */
const core = { memory: 32 << 20 };

it('2,000 streams are open at once, and each carries its own bytes both ways', async () => {
  const waiting: Stream[] = [];
  let most = 0;
  const both = await pair({
    link: { delay: 5, rate: 100e6, loss: 0.01 },
    client: { core },
    device: {
      core,
      onSession: (session) => {
        session.onStream = (incoming) => {
          waiting.push(incoming.accept());
          // nothing is answered before all of them are there
          if (waiting.length < COUNT) return;
          most = session.stats().openStreams as number;
          for (const stream of waiting) void echo(stream);
        };
      },
    },
  });
  const one = async (index: number): Promise<boolean> => {
    const data = pattern(32 + (index % 500), index * 1000);
    const stream = await openedStream(both.session, index);
    await stream.write(data);
    const closing = stream.close();
    const back = await stream.readAll(2000);
    await closing;
    return back.length === data.length && back.every((byte, at) => byte === data[at]);
  };
  const results = await both.simulation.settle(Promise.all(Array.from({ length: COUNT }, (_, index) => one(index))));
  expect(results.every((ok) => ok)).toBe(true);
  expect(most).toBe(COUNT);
  await both.simulation.run(1000);
  expect([both.session.stats().openStreams, both.accepted[0]?.stats().openStreams, both.errors]).toEqual([0, 0, []]);
});

it('a stream above the limit is STOPPED with STREAM_LIMIT however often it is tried, and takes nothing from the others', {
  tags: ['slow'],
}, async () => {
  const both = await pair({
    link: { delay: 5 },
    device: { limits: { streams: 20 }, onSession: (session) => (session.onStream = (incoming) => void echo(incoming.accept())) },
  });
  const open = await both.simulation.settle(Promise.all(Array.from({ length: 20 }, () => openedStream(both.session, 1))));
  for (let round = 0; round < 20; round++) {
    const more = await both.simulation.settle(Promise.allSettled(Array.from({ length: 100 }, () => openedStream(both.session, 1))));
    expect(more.map((result) => (result as { reason?: { code: string } }).reason?.code)).toEqual(new Array(100).fill('STOPPED'));
  }
  const echoes = await both.simulation.settle(Promise.all(open.map((stream, index) => exchange(stream, pattern(3000, index)))));
  expect(echoes).toEqual(new Array(20).fill(true));
  await both.simulation.run(1000);
  expect(both.accepted[0]?.stats()).toMatchObject({ openStreams: 0 });
});

it('a device announces no more streams and bytes than its core can hold: further opens wait for their turn', {
  tags: ['slow'],
}, async () => {
  const both = await pair({
    device: {
      core: { streams: 64, memory: 1 << 20 },
      onSession: (session) => (session.onStream = (incoming: IncomingStream) => void echo(incoming.accept())),
    },
  });
  expect(both.session.stats().sendCredit).toBeLessThan(500_000);
  const echoes = await both.simulation.settle(Promise.all(Array.from({ length: 200 }, (_, index) => once(both, index))));
  expect(echoes).toEqual(new Array(200).fill(true));
});

async function echo(stream: Stream): Promise<void> {
  for (;;) {
    const chunk = await stream.read().catch(() => null);
    if (chunk === null) break;
    await stream.write(chunk);
  }
  await stream.close();
}

async function once(both: ConnectedPair, index: number): Promise<boolean> {
  return exchange(await openedStream(both.session, 1), pattern(5000, index));
}

async function exchange(stream: Stream, data: Uint8Array): Promise<boolean> {
  const [back] = await Promise.all([stream.readAll(data.length + 1), stream.write(data).then(() => stream.close())]);
  return back.length === data.length && back.every((byte, at) => byte === data[at]);
}
