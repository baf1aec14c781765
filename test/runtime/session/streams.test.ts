/** Byte streams over the real core: the transfer grid and the semantics between two ends. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { StreamCode } from '../../../protocol/errors/index.ts';
import type { IncomingStream, Stream } from '../../../runtime/session/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { acceptedSession, type ConnectedPair, pair, pattern, utf8 } from './support.ts';

const PORT = 7;

/** A pair whose device passes every stream to `serve`. */
async function serving(serve: (incoming: IncomingStream) => void, options: Parameters<typeof pair>[0] = {}): Promise<ConnectedPair> {
  return pair({
    ...options,
    device: {
      ...options.device,
      onSession: (session) => {
        session.onStream = serve;
      },
    },
  });
}

/** A pair whose device answers no offer, and the offers. */
async function undecided() {
  const offers: IncomingStream[] = [];
  return { offers, ...(await serving((incoming) => void offers.push(incoming))) };
}

/** A controller whose listeners are counted. */
function listenersOf(controller: AbortController) {
  const { signal } = controller;
  return { signal, abort: () => controller.abort(), count: () => getEventListeners(signal, 'abort').length };
}

/** Both ends of one open stream. */
async function openPair(options: Parameters<typeof pair>[0] = {}) {
  let device: Stream | undefined;
  const both = await serving((incoming) => {
    device = incoming.accept();
  }, options);
  const client = await both.simulation.settle(openedStream(both.session, PORT));
  return { ...both, client, device: device! };
}

async function readToEnd(stream: Stream, max?: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  try {
    for (;;) chunks.push(await stream.read(max));
  } catch (error) {
    if ((error as { code?: string }).code !== 'END_OF_FILE') throw error;
  }
  return chunks;
}

const join = (chunks: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(chunks));

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

describe('transfer', () => {
  const losses = [0, 0.01, 0.05, 0.2];
  const cells = losses.flatMap((loss) =>
    [0, 0.1].flatMap((reorder) =>
      [0, 0.1].flatMap((duplicate) => [1, 50, 300].map((rtt) => ({ loss, reorder, duplicate, rtt, name: `${loss * 100} % loss` }))),
    ),
  );
  /** One of each loss, and both corners. */
  const isQuick = (_: unknown, i: number): boolean => [0, 16, 31, 47].includes(i);
  const title = 'up and down, unchanged: $name, reorder $reorder, duplicate $duplicate, RTT $rtt ms';

  it.each(cells.filter(isQuick))(title, upAndDown);
  it.each(cells.filter((cell, i) => !isQuick(cell, i)))(title, { tags: ['slow'] }, upAndDown);

  async function upAndDown(cell: (typeof cells)[number]): Promise<void> {
    const { loss, reorder, duplicate, rtt } = cell;
    const seed = cells.indexOf(cell) + 1;
    const up = pattern(300_000);
    const down = pattern(250_000, 12_345);
    let received: Promise<Uint8Array> | undefined;
    const serve = async (incoming: IncomingStream): Promise<Uint8Array> => {
      const stream = incoming.accept();
      const [chunks] = await Promise.all([readToEnd(stream), stream.write(down).then(() => stream.close())]);
      return join(chunks);
    };
    const both = await serving(
      (incoming) => {
        received = serve(incoming);
      },
      { seed, link: { loss, reorder, duplicate, delay: rtt / 2, reorderDelay: rtt / 2 + 2 } },
    );
    const run = async () => {
      const stream = await openedStream(both.session, PORT);
      const [chunks] = await Promise.all([readToEnd(stream, 1000), stream.write(up).then(() => stream.close())]);
      return join(chunks);
    };
    const atClient = await both.simulation.settle(run(), 3_600_000);
    expect(same(atClient, down)).toBe(true);
    expect(same(await both.simulation.settle(received!), up)).toBe(true);
    expect(both.errors).toEqual([]);
    await both.simulation.run(1000);
    expect(both.session.stats()).toMatchObject({ openStreams: 0 });
  }

  it('many streams at once do not mix', async () => {
    const both = await serving(
      async (incoming) => {
        const stream = incoming.accept();
        for (const chunk of await readToEnd(stream)) await stream.write(chunk);
        await stream.close();
      },
      { link: { delay: 10, loss: 0.02, reorder: 0.05 } },
    );
    const one = async (index: number): Promise<boolean> => {
      const data = pattern(5000 + index * 37, index * 1000);
      const stream = await openedStream(both.session, index);
      await stream.write(data);
      const [chunks] = await Promise.all([readToEnd(stream), stream.close()]);
      return same(join(chunks), data);
    };
    const results = await both.simulation.settle(Promise.all(Array.from({ length: 40 }, (_, index) => one(index))));
    expect(results.every((ok) => ok)).toBe(true);
  });

  it.each(['device', 'client'] as const)(
    'a reader at the %s that does not read stops the writer, and requests continue beside it',
    { tags: ['slow'] },
    async (reader) => {
      const both = await openPair({ link: { delay: 10, rate: 50e6 } });
      const accepted = both.accepted[0]!;
      const [from, to, session] = reader === 'device' ? [both.client, both.device, accepted] : [both.device, both.client, both.session];
      const data = pattern(6_000_000);
      let written = false;
      const write = from.write(data).then(() => {
        written = true;
      });
      await both.simulation.run(20_000);
      expect(written).toBe(false);
      // received bytes wait within the window, all others wait in the application
      const { unread, receiveWindow } = to.stats().transport!;
      expect(unread).toBeGreaterThan(0);
      expect(unread).toBeLessThanOrEqual(receiveWindow);
      expect(session.stats().streamBytesUnread).toBeLessThanOrEqual(session.stats().receiveWindow!);
      expect(from.stats().bytesWritten).toBeLessThan(receiveWindow + 32_768);
      expect(from.stats().transport).toMatchObject({ sendCredit: 0 });
      expect((await both.simulation.settle(both.session.request({ method: 'GET', path: '/nothing' }))).status).toBe(404);
      expect(same(await both.simulation.settle(to.readAll(6_000_000)), data)).toBe(true);
      await both.simulation.settle(write);
      expect(to.stats()).toMatchObject({ bytesRead: 6_000_000, transport: { received: 6_000_000 + (reader === 'device' ? 4 : 1) } });
    },
  );

  it('as WHATWG streams', async () => {
    const both = await openPair({ link: { delay: 10 } });
    const data = pattern(200_000);
    const echo = both.device.readable.pipeTo(both.device.writable);
    const run = async (): Promise<Uint8Array> => {
      const writer = both.client.writable.getWriter();
      const sent = writer.write(data).then(() => writer.close());
      const chunks: Uint8Array[] = [];
      for await (const chunk of both.client.readable as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk);
      await sent;
      await echo;
      return join(chunks);
    };
    expect(same(await both.simulation.settle(run()), data)).toBe(true);
  });
});

describe('opening', () => {
  it('passes the port, and resolves when accepted', async () => {
    const ports: number[] = [];
    const both = await serving((incoming) => {
      ports.push(incoming.port);
      incoming.accept();
    });
    const stream = await both.simulation.settle(openedStream(both.session, 0xffffffff));
    expect(stream.port).toBe(0xffffffff);
    expect(ports).toEqual([0xffffffff]);
  });

  it.each([-1, 0x1_0000_0000, 1.5])('INVALID_ARGUMENT for port %s', async (port) => {
    const both = await pair();
    await expect(openedStream(both.session, port)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('is STOPPED without a listener, and the session continues', async () => {
    const both = await pair();
    await expect(both.simulation.settle(openedStream(both.session, PORT))).rejects.toMatchObject({ code: 'STOPPED' });
    expect(both.session.isOpen).toBe(true);
  });

  it('is STOPPED when refused, also for the limit; FORBIDDEN keeps its name', async () => {
    const codes = [StreamCode.STREAM_REFUSED, StreamCode.STREAM_LIMIT, StreamCode.FORBIDDEN];
    const both = await serving((incoming) => incoming.refuse(codes[incoming.port]));
    const outcome = (port: number) =>
      openedStream(both.session, port).then(
        () => 'opened',
        (error: { code: string }) => error.code,
      );
    expect(await both.simulation.settle(Promise.all([0, 1, 2].map(outcome)))).toEqual(['STOPPED', 'STOPPED', 'FORBIDDEN']);
  });

  it('above the limit of the device is STOPPED, and possible again when a stream ended', async () => {
    const both = await serving((incoming) => void readToEnd(incoming.accept()).catch(() => {}), {
      device: { limits: { streams: 2 } },
    });
    const open = () => openedStream(both.session, PORT);
    const [first] = await both.simulation.settle(Promise.all([open(), open()]));
    await expect(both.simulation.settle(open())).rejects.toMatchObject({ code: 'STOPPED' });
    first.abort();
    await both.simulation.run(1000);
    expect(await both.simulation.settle(open())).toBeDefined();
    both.device.limits.streams = 3;
    expect(await both.simulation.settle(open())).toBeDefined();
  });

  it('waits while the peer grants no more streams', async () => {
    const both = await serving((incoming) => void incoming.accept(), { device: { parameters: { maxStreams: 2 } } });
    const open = () => openedStream(both.session, PORT);
    const [first] = await both.simulation.settle(Promise.all([open(), open()]));
    let third: Stream | undefined;
    void open().then((stream) => {
      third = stream;
    });
    await both.simulation.run(5000);
    expect(third).toBeUndefined();
    first.abort();
    await both.simulation.run(() => third !== undefined, 10_000);
    expect(third).toBeDefined();
  });

  it('with a weight gives its bytes that share of the connection', { tags: ['slow'] }, async () => {
    const received = [0, 0];
    const count = async (stream: Stream): Promise<void> => {
      for (;;) received[stream.port]! += (await stream.read()).length;
    };
    const end = { core: { memory: 8 << 20 } };
    const options = { link: { delay: 10, rate: 10e6 }, client: end, device: end };
    const both = await serving((incoming) => void count(incoming.accept()).catch(() => {}), options);
    const streams = await both.simulation.settle(
      Promise.all([openedStream(both.session, 0), openedStream(both.session, 1, { weight: 48 })]),
    );
    for (const stream of streams) void stream.write(pattern(6_000_000)).catch(() => {});
    await both.simulation.run(2000);
    expect(received[1]! / received[0]!).toBeCloseTo(3, 0);
    streams[0]!.setWeight(256);
    streams[1]!.setWeight(16);
    const before = [...received];
    await both.simulation.run(1000);
    expect(received[0]! - before[0]!).toBeGreaterThan(8 * (received[1]! - before[1]!));
    for (const weight of [0, 257, 2.5]) {
      await expect(openedStream(both.session, 0, { weight })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(() => streams[0]!.setWeight(weight)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    }
  });

  it('without a decision for 30 s is STOPPED, and the offer is gone', async () => {
    const { offers, ...both } = await undecided();
    const start = both.simulation.now;
    await expect(both.simulation.settle(openedStream(both.session, PORT))).rejects.toMatchObject({ code: 'STOPPED' });
    expect(both.simulation.now - start).toBeGreaterThanOrEqual(30_000);
    expect(both.simulation.now - start).toBeLessThan(31_000);
    expect(offers[0]?.isWaiting).toBe(false);
    expect(() => offers[0]?.accept()).toThrow(expect.objectContaining({ code: 'STOPPED' }));
  });

  it('is STOPPED by its signal, and the device is notified', async () => {
    const { offers, ...both } = await undecided();
    const controller = new AbortController();
    const open = openedStream(both.session, PORT, { signal: controller.signal });
    await both.simulation.run(() => offers.length > 0);
    controller.abort();
    await expect(open).rejects.toMatchObject({ code: 'STOPPED' });
    await both.simulation.run(1000);
    expect(offers[0]?.isWaiting).toBe(false);
    await expect(openedStream(both.session, PORT, { signal: controller.signal })).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('is not ended by its signal once it is accepted, and listens to it no longer', async () => {
    const both = await serving((incoming) => void incoming.accept());
    const { signal, ...controller } = listenersOf(new AbortController());
    const stream = await both.simulation.settle(openedStream(both.session, PORT, { signal }));
    expect(controller.count()).toBe(0);
    controller.abort();
    await both.simulation.settle(stream.write('x'));
  });

  it('an offer can be answered once', async () => {
    const outcomes: unknown[] = [];
    const both = await serving((incoming) => {
      incoming.accept();
      incoming.refuse();
      try {
        incoming.accept();
      } catch (error) {
        outcomes.push((error as { code: string }).code);
      }
    });
    await both.simulation.settle(openedStream(both.session, PORT));
    expect(outcomes).toEqual(['INVALID_STATE']);
  });

  it('a listener that throws is logged, the stream refused', async () => {
    const both = await serving(() => {
      throw new Error('mine');
    });
    await expect(both.simulation.settle(openedStream(both.session, PORT))).rejects.toMatchObject({ code: 'STOPPED' });
    expect(both.errors.length).toBe(1);
  });

  it('a device cannot open streams to a client', async () => {
    const both = await pair();
    const accepted = await acceptedSession(both);
    await expect(openedStream(accepted, PORT)).rejects.toMatchObject({ code: 'INVALID_STATE' });
  });
});

describe('data written before acceptance', () => {
  const WINDOW = 16_384;

  it('arrives with the opening', async () => {
    const arrived: { stream: Stream; at: number }[] = [];
    const both = await serving((incoming) => void arrived.push({ stream: incoming.accept(), at: both.simulation.now }), {
      link: { delay: 100 },
    });
    const from = both.simulation.now;
    const client = both.session.streams.open(PORT);
    await client.write(utf8('at once'));
    expect(both.simulation.now).toBe(from);
    await both.simulation.run(() => arrived.length > 0);
    const { stream, at } = arrived[0]!;
    expect(at - from).toBe(100);
    expect(await stream.read()).toEqual(utf8('at once'));
    await both.simulation.settle(client.opened);
    expect(both.simulation.now - from).toBe(200);
  });

  it('is limited to the initial window, and continues when the device accepts', async () => {
    const { offers, ...both } = await undecided();
    const data = pattern(100_000);
    const client = both.session.streams.open(PORT);
    const written = client.write(data).then(() => client.close());
    const before = both.session.stats().bytesSent!;
    await both.simulation.run(1000);
    // headers, and a probe of the packet size
    const sent = both.session.stats().bytesSent! - before;
    expect(sent).toBeGreaterThan(WINDOW);
    expect(sent).toBeLessThan(1.2 * WINDOW);
    const received = readToEnd(offers[0]!.accept());
    expect(same(join(await both.simulation.settle(received)), data)).toBe(true);
    await both.simulation.settle(written);
  });

  it('is lost with a refusal, which every call reports', async () => {
    const both = await serving((incoming) => incoming.refuse(StreamCode.FORBIDDEN), { link: { delay: 10 } });
    const client = both.session.streams.open(PORT);
    await client.write(utf8('in vain'));
    const codes = (await both.simulation.settle(Promise.allSettled([client.opened, client.read(), client.write(pattern(100_000))]))).map(
      (result) => (result as { reason?: { code: string } }).reason?.code,
    );
    expect(codes).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN']);
    await expect(client.close()).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(both.session.isOpen).toBe(true);
    expect(both.session.stats()).toMatchObject({ openStreams: 0 });
  });

  it('may be the whole of a short stream in one packet', async () => {
    let device: Stream | undefined;
    const both = await serving(
      (incoming) => {
        device = incoming.accept();
      },
      { link: { delay: 10 } },
    );
    const packets: number[] = [];
    both.simulation.onPacket = (packet) => {
      if (packet.from === 'client') packets.push(packet.data.length);
      return undefined;
    };
    const client = both.session.streams.open(PORT);
    await client.write(utf8('all'));
    const closed = client.close();
    await both.simulation.run(9);
    expect(packets).toHaveLength(1);
    await both.simulation.run(() => device !== undefined);
    expect(join(await both.simulation.settle(readToEnd(device!)))).toEqual(utf8('all'));
    await both.simulation.settle(closed);
  });

  it('is sent when the device grants a stream again', async () => {
    const taken: Uint8Array[] = [];
    const both = await serving(
      (incoming) =>
        void readToEnd(incoming.accept()).then(
          (chunks) => taken.push(join(chunks)),
          () => {},
        ),
      {
        device: { parameters: { maxStreams: 1 } },
      },
    );
    const first = await both.simulation.settle(openedStream(both.session, PORT));
    const second = both.session.streams.open(PORT);
    const done = second.write(utf8('later')).then(() => second.close());
    await both.simulation.run(1000);
    expect(taken).toEqual([]);
    first.abort();
    await both.simulation.settle(done);
    expect(taken).toEqual([utf8('later')]);
  });

  it('is dropped by an abort, and the offer with it', async () => {
    const { offers, ...both } = await undecided();
    const client = both.session.streams.open(PORT);
    await client.write(utf8('never mind'));
    await both.simulation.run(() => offers.length > 0);
    client.abort();
    await both.simulation.run(1000);
    expect(offers[0]?.isWaiting).toBe(false);
    expect(both.session.stats()).toMatchObject({ openStreams: 0 });
  });
});

describe('ends', () => {
  it('close is a half close: the other direction continues', async () => {
    const { simulation, client, device } = await openPair();
    await simulation.settle(client.write(utf8('question')));
    await simulation.settle(client.close());
    expect(join(await simulation.settle(readToEnd(device)))).toEqual(utf8('question'));
    await expect(client.write(utf8('more'))).rejects.toMatchObject({ code: 'CLOSED' });
    await simulation.settle(device.write(utf8('answer')));
    await simulation.settle(device.close());
    expect(join(await simulation.settle(readToEnd(client)))).toEqual(utf8('answer'));
    expect([client.ended, device.ended]).toEqual([true, true]);
  });

  it('close resolves when all is acknowledged, not before', async () => {
    const { simulation, client, device } = await openPair({ link: { delay: 100 } });
    await simulation.settle(client.write(pattern(1000)));
    const start = simulation.now;
    await simulation.settle(client.close());
    expect(simulation.now - start).toBeGreaterThanOrEqual(200);
    expect((await simulation.settle(device.readAll(2000))).length).toBe(1000);
    await expect(device.readAll(1)).rejects.toMatchObject({ code: 'END_OF_FILE' });
  });

  it('abort reaches both ends and all pending calls', { tags: ['slow'] }, async () => {
    const { simulation, client, device } = await openPair({ device: { streamWindow: 50_000 } });
    // More than a stream ever buffers.
    const outstanding = [client.write(pattern(6_000_000)), device.write(pattern(6_000_000))];
    const settled = Promise.allSettled(outstanding);
    await simulation.run(1000);
    client.abort();
    const codes = (await simulation.settle(settled)).map((result) => (result as { reason?: { code: string } }).reason?.code);
    expect(codes).toEqual(['STOPPED', 'STOPPED']);
    await expect(client.read()).rejects.toMatchObject({ code: 'STOPPED' });
    await expect(simulation.settle(device.readAll(6_000_000))).rejects.toMatchObject({ code: 'STOPPED' });
    expect([client.ended, device.ended]).toEqual([true, true]);
  });

  it('what the peer has of an accepted stream before an abort is read first, however late', async () => {
    const { simulation, client, device } = await openPair();
    const answer = pattern(20_000);
    await simulation.settle(device.write(answer));
    while (device.stats().transport!.buffered > 0) await simulation.run(10);
    device.abort();
    await simulation.run(1_000);
    expect(same((await simulation.settle(client.readAll(10_000)))!, answer.subarray(0, 10_000))).toBe(true);
    const late = client.readAll(20_000).catch((error: Error) => error);
    expect(await simulation.settle(late)).toMatchObject({ code: 'STOPPED' });
    expect(client.stats().bytesRead).toBe(20_000);
    expect([client.ended, device.ended]).toEqual([true, true]);
  });

  it('an abort here drops what waits to be read behind one of the peer', async () => {
    const { simulation, session, client, device } = await openPair();
    await simulation.settle(device.write(pattern(20_000)));
    while (device.stats().transport!.buffered > 0) await simulation.run(10);
    device.abort();
    await simulation.run(1_000);
    client.abort();
    await simulation.run(1_000);
    await expect(client.read()).rejects.toMatchObject({ code: 'STOPPED' });
    expect(client.stats().transport).toBe(null);
    expect(session.isOpen).toBe(true);
  });

  it('abort by the device is STOPPED at the client', async () => {
    const { simulation, client, device } = await openPair();
    const read = client.read();
    device.abort(StreamCode.SERVICE_FAILED);
    await expect(simulation.settle(read)).rejects.toMatchObject({ code: 'STOPPED' });
    await expect(client.write(utf8('x'))).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('the end of the session is the end of its streams', async () => {
    const { simulation, session, client, device } = await openPair();
    const settled = Promise.allSettled([client.read(), device.read(), openedStream(session, 99)]);
    await simulation.settle(session.close());
    const codes = (await simulation.settle(settled)).map((result) => (result as { reason?: { code: string } }).reason?.code);
    expect(codes).toEqual(['STOPPED', 'STOPPED', 'STOPPED']);
    await expect(client.write(utf8('x'))).rejects.toMatchObject({ code: 'STOPPED' });
    client.abort();
    device.abort();
  });

  it('a lost peer ends them too', async () => {
    const { simulation, client, deviceEnvironment } = await openPair();
    const read = client.read();
    deviceEnvironment.stop();
    await expect(simulation.settle(read)).rejects.toMatchObject({ code: 'STOPPED' });
  });
});
