/** Byte streams, messages and datagrams between two cores. */
import { describe, expect, test } from 'vitest';
import { Core, EventKind, MESSAGE_LIMIT, TransportError } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { forge, varint } from './forge.ts';
import { Line, Pair, type PairOptions } from './pair.ts';
import { content, Exchange, matches, Reader, Writer } from './traffic.ts';

/** Sends `total` bytes both ways on one stream and returns the pair when both are done. */
function bothWays(total: number, options: PairOptions, limit = 600_000): Pair {
  const pair = new Pair(options);
  const exchange = new Exchange(pair, total);
  expect(pair.run(limit, exchange.done), `done after ${pair.now} ms: ${exchange.read}`).toBe(true);
  expect(exchange.read).toEqual([
    [0, total],
    [0, total],
  ]);
  return pair;
}

describe('byte streams', () => {
  const cells = [0, 0.01, 0.05, 0.2].flatMap((loss) =>
    [0, 30].flatMap((jitter) => [0, 0.1].flatMap((duplicate) => [0.5, 25, 150].map((delay) => ({ loss, jitter, duplicate, delay })))),
  );
  // The corners, and between them each loss and delay, with and without jitter and duplicates.
  const quick = [0, 7, 13, 20, 27, 34, 40, 47].map((index) => cells[index]!);

  test.each(quick)('are byte-exact both ways: %o', (link) => {
    for (const seed of seeds(1, 1)) bothWays(200_000, { seed, link, complete: 300 }).free();
  });

  test.each(cells.filter((cell) => !quick.includes(cell)))('are byte-exact both ways: %o', { tags: ['slow'] }, (link) => {
    for (const seed of seeds(1, 3)) bothWays(500_000, { seed, link, complete: 300 }).free();
  });

  test('of any length end, including the empty one', () => {
    for (const total of [0, 1, 1_023, 1_024, 1_025, 70_000]) bothWays(total, { link: { loss: 0.1 }, seed: total + 1 }).free();
  });

  test('free every record and chunk', () => {
    const pair = bothWays(300_000, { memory: 32 << 20, link: { loss: 0.05, jitter: 20 }, seed: 5 });
    pair.run(5_000);
    expect(pair.core.stats().byteStreams).toBe(0);
    pair.free();
    const fresh = new Pair({ core: pair.core });
    const before = pair.core.stats().freeChunks;
    fresh.free();
    expect(pair.core.stats().freeChunks).toBe(before);
    expect(before).toBeGreaterThan(29_000);
  });

  test('open as slots are freed, many at once', { tags: ['slow'] }, () => {
    const total = 400;
    const pair = new Pair({ link: { loss: 0.02, jitter: 5 }, parameters: { maxStreams: 7 }, seed: 11 });
    const { initiator, responder } = pair;
    const reader = new Reader(responder);
    const writers: Writer[] = [];
    const open = () => {
      while (writers.length < total) {
        const id = initiator.connection.streams.open();
        if (id < 0) return;
        writers.push(new Writer(initiator, id, 3_000));
      }
    };
    initiator.onEvent = (event) => {
      for (const writer of writers) writer.on(event);
      if (event.kind === EventKind.STREAMS_AVAILABLE) open();
    };
    responder.onEvent = (event) => {
      if (event.kind === EventKind.STREAM_OPENED) responder.connection.streams.finish(event.stream);
      reader.on(event);
    };
    initiator.connection.ping();
    open();
    const answers = new Reader(initiator);
    const tell = initiator.onEvent;
    initiator.onEvent = (event, end) => {
      tell(event, end);
      answers.on(event);
    };
    expect(pair.run(120_000, () => reader.ended.size === total)).toBe(true);
    expect(reader.wrong).toBe(0);
  });

  test('are reset and stopped with their codes', () => {
    const pair = new Pair();
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    new Writer(initiator, id, 500_000);
    pair.run(100);
    initiator.connection.streams.reset(id, 77);
    initiator.connection.streams.stop(id, 78);
    pair.run(1_000);
    expect(responder.events).toContainEqual({ kind: EventKind.STREAM_RESET, stream: id, value: 77 });
    expect(responder.events).toContainEqual({ kind: EventKind.STREAM_STOPPED, stream: id, value: 78 });
    expect(pair.core.stats().byteStreams).toBe(0);
  });

  test('a stopped peer answers with a reset and its credit comes back', () => {
    const core = Core.create({ memory: 8 << 20, connectionWindow: 0 });
    const pair = new Pair({ core, parameters: { initialMaxData: 2 * MESSAGE_LIMIT } });
    const { initiator, responder } = pair;
    for (let round = 0; round < 10; round++) {
      const id = initiator.connection.streams.open();
      expect(id).toBeGreaterThanOrEqual(0);
      const writer = new Writer(initiator, id, 200_000);
      initiator.onEvent = (event) => writer.on(event);
      pair.run(300);
      responder.connection.streams.stop(id, 5);
      responder.connection.streams.finish(id);
      pair.run(1_000);
      expect(initiator.events).toContainEqual({ kind: EventKind.STREAM_STOPPED, stream: id, value: 5 });
      expect(initiator.connection.streams.read(id, new Uint8Array(10))).toBe(-1);
    }
    pair.run(1_000);
    expect(pair.core.stats().byteStreams).toBe(0);
  });

  test('wait, and do not fail, when segments run out', { tags: ['slow'] }, () => {
    const pair = new Pair({ core: Core.create({ streamSegments: 64 }), link: { loss: 0.05, jitter: 10 }, seed: 3 });
    const { initiator, responder } = pair;
    const ids = Array.from({ length: 6 }, () => initiator.connection.streams.open());
    const reader = new Reader(responder, 300);
    const writers = ids.map((id) => new Writer(initiator, id, 40_000));
    initiator.onEvent = (event) =>
      writers.forEach((writer) => {
        writer.on(event);
      });
    responder.onEvent = (event) => reader.on(event);
    expect(
      pair.run(600_000, () => reader.ended.size === ids.length),
      `${pair.now}: ${[...reader.lengths]}`,
    ).toBe(true);
    expect(reader.wrong).toBe(0);
  });

  test('accept more or less as soon as the segment limit changes; data already there arrives', { tags: ['slow'] }, () => {
    const pair = new Pair({ core: Core.create({ streamSegments: 128 }), link: { loss: 0.05 }, seed: 5 });
    const { initiator, responder, core } = pair;
    const id = initiator.connection.streams.open();
    const first = initiator.connection.streams.write(id, content(id, 0, 60_000));
    expect(first).toBeLessThanOrEqual(128 * 256);
    core.limitStreamSegments(4_000);
    const second = initiator.connection.streams.write(id, content(id, first, 60_000));
    expect(second).toBeGreaterThan(32_000);
    core.limitStreamSegments(1);
    expect(initiator.connection.streams.write(id, new Uint8Array(1))).toBe(0);
    const reader = new Reader(responder, 300);
    responder.onEvent = (event) => reader.on(event);
    initiator.connection.streams.finish(id);
    expect(pair.run(600_000, () => reader.ended.has(id))).toBe(true);
    expect([reader.lengths.get(id), reader.wrong]).toEqual([first + second, 0]);
    core.limitStreamSegments(0);
    expect(initiator.connection.streams.write(initiator.connection.streams.open(), new Uint8Array(60_000))).toBe(60_000);
  });

  test('a window raised after acceptance lets more through', () => {
    const pair = new Pair({ parameters: { initialMaxStreamData: 16_384, initialMaxData: 1_000_000 } });
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    const writer = new Writer(initiator, id, 400_000);
    initiator.onEvent = (event) => writer.on(event);
    pair.run(2_000);
    const target = new Uint8Array(500_000);
    expect(responder.connection.streams.read(id, target.subarray(0, 8_000))).toBe(8_000);
    responder.connection.streams.raiseWindow(id, 300_000);
    pair.run(5_000);
    const more = responder.connection.streams.read(id, target);
    expect(more).toBeGreaterThan(280_000);
    expect(matches(id, 8_000, target.subarray(0, more))).toBe(true);
  });
});

describe('messages', () => {
  test('of every size arrive whole', () => {
    const pair = new Pair({ link: { loss: 0.1, jitter: 15, duplicate: 0.05 }, seed: 9 });
    const sizes = [0, 1, 5, 1_023, 1_024, 1_140, 1_200, 5_000, 33_333, MESSAGE_LIMIT];
    const ids = sizes.map((length, index) => pair.initiator.connection.messages.send(content(index, 0, length)));
    const got = new Map<number, Uint8Array>();
    pair.responder.onEvent = ({ kind, stream, value }, { connection }) => {
      if (kind !== EventKind.MESSAGE) return;
      const message = connection.messages.read(stream);
      expect(message.length).toBe(value);
      got.set(stream, message);
    };
    expect(pair.run(60_000, () => got.size === sizes.length)).toBe(true);
    ids.forEach((id, index) => {
      expect(matches(index, 0, got.get(id) as Uint8Array)).toBe(true);
    });
    pair.run(5_000);
    expect(pair.core.stats().messagesIn + pair.core.stats().messagesOut).toBe(0);
    expect(() => pair.initiator.connection.messages.send(new Uint8Array(MESSAGE_LIMIT + 1))).toThrowError(/at most/);
    expect(() => pair.initiator.connection.messages.read(4)).toThrowError(/no message/);
  });

  describe('never stall: random windows, sizes, losses, and a reader that never reads its byte stream', () => {
    test.each(seeds(1, 4))('seed %i', neverStalls);
    test.each(seeds(5, 120))('seed %i', { tags: ['slow'] }, neverStalls);
  });

  function neverStalls(seed: number): void {
    const random = generator(seed);
    const pick = (low: number, high: number) => Math.floor(low + random() * (high - low));
    const pair = new Pair({
      seed,
      link: { loss: random() < 0.5 ? 0 : random() * 0.2, jitter: random() * 30, duplicate: random() * 0.1, delay: 0.5 + random() * 40 },
      parameters: {
        initialMaxData: pick(0, 500_000),
        initialMaxStreamData: pick(1_000, 400_000),
        maxMessages: pick(1, 40),
        maxStreams: pick(1, 20),
      },
    });
    for (const end of pair.ends) {
      // Byte streams that no application reads, in both directions.
      for (let i = 0; i < 3; i++) {
        const id = end.connection.streams.open();
        if (id >= 0) new Writer(end, id, pick(1, 400_000));
      }
    }
    const total = 40;
    const state = new Map(pair.ends.map((end) => [end, { sent: 0, received: 0, waiting: false }]));
    const lengths = Array.from({ length: total }, () => (random() < 0.3 ? pick(30_000, MESSAGE_LIMIT + 1) : pick(0, 3_000)));
    const send = (end: Pair['initiator']) => {
      const mine = state.get(end) as { sent: number; waiting: boolean };
      while (mine.sent < total) {
        if (end.connection.messages.send(content(mine.sent, 0, lengths[mine.sent] as number)) < 0) {
          mine.waiting = true;
          return;
        }
        mine.sent++;
      }
    };
    for (const end of pair.ends) {
      end.onEvent = ({ kind, stream }) => {
        const mine = state.get(end) as { sent: number; received: number };
        if (kind === EventKind.MESSAGES_WRITABLE) send(end);
        if (kind !== EventKind.MESSAGE) return;
        const message = end.connection.messages.read(stream);
        const index = stream >> 2;
        expect(message.length).toBe(lengths[index]);
        expect(matches(index, 0, message)).toBe(true);
        mine.received++;
      };
      send(end);
    }
    const all = () => [...state.values()].every(({ received }) => received === total);
    const ok = pair.run(900_000, all);
    expect(ok, `seed ${seed}: ${JSON.stringify([...state.values()])} at ${pair.now}`).toBe(true);
    pair.free();
    expect(pair.core.stats()).toMatchObject({ byteStreams: 0, messagesIn: 0, messagesOut: 0, connections: 0 });
  }
});

describe('datagrams', () => {
  test('arrive in order without loss, bounded, and never twice', () => {
    const pair = new Pair({ link: { duplicate: 0.5 } });
    const got: number[] = [];
    pair.responder.onEvent = ({ kind, value }, { connection }) => {
      if (kind !== EventKind.DATAGRAM) return;
      const datagram = connection.messages.readDatagram();
      expect(datagram.length).toBe(value);
      got.push(datagram[0] as number);
    };
    for (let i = 0; i < 20; i++) expect(pair.initiator.connection.messages.sendDatagram(new Uint8Array(900).fill(i))).toBe(true);
    pair.run(1_000);
    expect(got).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(pair.initiator.connection.messages.sendDatagram(new Uint8Array(1_190))).toBe(false);
    expect(() => pair.responder.connection.messages.readDatagram()).toThrowError(/no datagram/);
  });

  test.each([
    [100, undefined],
    [101, TransportError.PROTOCOL_VIOLATION],
  ])('of %d bytes where 100 are taken: closes with %s (RFC 9221 §3)', (length, error) => {
    const pair = new Pair({ parameters: { maxDatagram: 100 } });
    pair.inject(forge({ number: 1, frames: [0x31, ...varint(length), ...new Uint8Array(length)] }), pair.responder);
    pair.settle();
    expect(pair.responder.events.find(({ kind }) => kind === EventKind.CLOSED)?.value).toBe(error);
  });

  test('take no more than 256 to send, and none while the connection rests', () => {
    const pair = new Pair({ link: { delay: 50 } });
    const { connection } = pair.initiator;
    const taken = Array.from({ length: 260 }, () => connection.messages.sendDatagram(new Uint8Array(1_000)));
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(256);
    expect(connection.messages.datagramRoom).toBe(0);
    pair.run(1_000);
    expect(connection.messages.datagramRoom).toBe(256);
    connection.rest();
    expect(connection.messages.sendDatagram(new Uint8Array(1))).toBe(false);
  });

  test('leave half of the memory for messages to these, but each connection has room for 16', () => {
    const core = Core.create({ memory: 2 << 20, connections: 8 });
    const pairs = Array.from({ length: 4 }, () => new Pair({ core }));
    const fill = ({ initiator: { connection } }: Pair): number => {
      let taken = 0;
      while (connection.messages.sendDatagram(new Uint8Array(1_000))) taken++;
      return taken;
    };
    const taken = pairs.map(fill);
    expect(taken[0]).toBeLessThan(256);
    expect(taken.slice(1)).toEqual([16, 16, 16]);
    expect(pairs[3]!.initiator.connection.messages.send(new Uint8Array(40_000))).toBeGreaterThanOrEqual(0);
  });

  test('say how large one may be, and count those that were lost', () => {
    const pair = new Pair();
    const { connection } = pair.initiator;
    expect(connection.messages.datagramSize).toBe(1_200 - 29 - 3);
    expect(new Pair({ parameters: { maxDatagram: 100 } }).initiator.connection.messages.datagramSize).toBe(100);
    const none = new Pair({ parameters: { maxDatagram: 0 } }).initiator.connection;
    expect([none.messages.datagramSize, none.messages.sendDatagram(new Uint8Array(0))]).toEqual([-1, false]);
    pair.intercept = () => null;
    for (const length of [500, 500, 1_100]) connection.messages.sendDatagram(new Uint8Array(length));
    pair.run(5);
    pair.intercept = (datagram) => datagram;
    for (let i = 0; i < 5; i++) connection.messages.sendDatagram(new Uint8Array(1_100));
    pair.run(1_000);
    expect(connection.stats()).toMatchObject({ datagramsLost: 3, packetsLost: 2 });
  });

  test('drop the oldest when the application does not read', () => {
    const pair = new Pair();
    pair.responder.onEvent = () => {};
    for (let i = 0; i < 200; i++) {
      pair.initiator.connection.messages.sendDatagram(Uint8Array.of(i));
      pair.run(5);
    }
    pair.run(1_000);
    expect(pair.responder.connection.stats().datagramsDropped).toBe(200 - 64);
    expect(pair.responder.connection.messages.readDatagram()[0]).toBe(200 - 64);
  });

  test('are sent between the bytes of a long transfer, and leave it its share', { tags: ['slow'] }, () => {
    const pair = new Pair({ line: new Line(8_000_000, 100_000), link: { delay: 10 } });
    const reader = new Reader(pair.responder);
    const writer = new Writer(pair.initiator, pair.initiator.connection.streams.open(), 2_000_000);
    let sent = 0;
    let latest = 0;
    const delays: number[] = [];
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => {
      reader.on(event);
      if (event.kind !== EventKind.DATAGRAM) return;
      delays.push(pair.now - new Float64Array(pair.responder.connection.messages.readDatagram().slice(0, 8).buffer)[0]!);
      latest = pair.now;
    };
    const datagram = new Uint8Array(1_000);
    for (; reader.ended.size === 0 && sent < 4_000; sent++) {
      datagram.set(new Uint8Array(Float64Array.of(pair.now).buffer));
      pair.initiator.connection.messages.sendDatagram(datagram);
      // The first second: one now and then. Then more than the line carries.
      pair.run(pair.now < 2_000 ? 50 : 1);
    }
    expect(reader.ended.size).toBe(1);
    expect(delays.slice(0, 15).every((delay) => delay < 100)).toBe(true);
    expect(delays.length).toBeGreaterThan(1_000);
    expect(latest).toBeGreaterThan(pair.now - 100);
    expect(reader.wrong).toBe(0);
  });
});
