/** Receive windows grow as far as the path needs and the pool can hold; buffers of a sender stay bounded. */
import { describe, expect, it } from 'vitest';
import { type CongestionControl, Core, EventKind } from '../../bindings/index.ts';
import { forge, varint } from './forge.ts';
import { Line, Pair, type PairOptions } from './pair.ts';

const KB = 1 << 10;
const MB = 1 << 20;
const CHUNK = KB;
const PIECE = new Uint8Array(65_536);
/** The window that is announced, and that of an accepted stream. */
const parameters = { initialMaxData: MB, initialMaxStreamData: 16 * KB };
const START = 64 * KB;

/** An endless stream from the initiator to a reader that reads everything at once while `isReading`. */
function bulk(options: PairOptions) {
  const pair = new Pair({ parameters, memory: 32 * MB, ...options });
  const { initiator, responder } = pair;
  const id = initiator.connection.streams.open();
  const flow = { pair, id, received: 0, written: 0, isReading: true, read: () => {} };
  const write = () => {
    for (let taken = 1; taken > 0; ) {
      taken = initiator.connection.streams.write(id, PIECE);
      flow.written += taken;
    }
  };
  const target = new Uint8Array(65_536);
  flow.read = () => {
    for (let count = 1; count > 0 && flow.isReading; ) {
      count = responder.connection.streams.read(id, target);
      flow.received += Math.max(0, count);
    }
  };
  initiator.onEvent = ({ kind }) => {
    if (kind === EventKind.STREAM_WRITABLE) write();
  };
  responder.onEvent = ({ kind }) => {
    if (kind === EventKind.STREAM_OPENED) responder.connection.streams.raiseWindow(id, START);
    if (kind === EventKind.STREAM_READABLE) flow.read();
  };
  write();
  return flow;
}

/** Statistics of the stream and of the connection at the end that reads. */
const reading = ({ pair, id }: ReturnType<typeof bulk>) => ({
  ...pair.responder.connection.stats(),
  stream: pair.responder.connection.streams.stats(id),
});

describe('a window', () => {
  /** `share`: of 100 Mbit/s. */
  function isNoLimit(congestion: CongestionControl, share: number): void {
    const flow = bulk({ line: new Line(share * 100e6, share * 4 * MB), link: { delay: 150 }, granularity: 1, initiator: { congestion } });
    flow.pair.run(8_000);
    const before = flow.received;
    flow.pair.run(2_000);
    expect(((flow.received - before) * 8) / 2_000 / 1_000).toBeGreaterThan(share * 85);
    const { receiveWindow, stream } = reading(flow);
    expect(stream?.receiveWindow).toBeGreaterThan(share * 3.7 * MB);
    // room for another stream and for messages, and never all that memory holds
    expect(receiveWindow).toBeGreaterThanOrEqual(0.25 * MB + (stream?.receiveWindow ?? 0));
    expect(receiveWindow).toBeLessThan(5.5 * MB);
  }

  it('does not limit a stream on 10 Mbit/s and 300 ms', { tags: ['slow'] }, () => isNoLimit('bbr', 0.1));
  it.each(['cubic', 'bbr'] as const)('does not limit a stream on 100 Mbit/s and 300 ms, with %s', { tags: ['slow'] }, (congestion) =>
    isNoLimit(congestion, 1),
  );

  it('stays small on a path that needs little, and for an idle stream', () => {
    const flow = bulk({ line: new Line(1e6, 20_000), link: { delay: 10 } });
    const { responder, initiator } = flow.pair;
    const idle = initiator.connection.streams.open();
    initiator.connection.streams.write(idle, PIECE.subarray(0, 4));
    flow.pair.run(20_000);
    expect(flow.received).toBeGreaterThan(2 * MB);
    expect(reading(flow).stream?.receiveWindow).toBeLessThanOrEqual(2 * START);
    expect(responder.connection.streams.stats(idle)?.receiveWindow).toBe(16 * KB);
  });

  it('does not grow before the stream is accepted, nor for an application that reads slowly', () => {
    const pair = new Pair({ parameters, line: new Line(20e6, 100_000), link: { delay: 20 } });
    const { initiator, responder } = pair;
    const [unaccepted, slow] = [initiator.connection.streams.open(), initiator.connection.streams.open()];
    const target = new Uint8Array(2_000);
    responder.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_OPENED && stream === slow) responder.connection.streams.raiseWindow(slow, START);
      if (kind === EventKind.STREAM_READABLE && stream === unaccepted) while (responder.connection.streams.read(unaccepted, target) > 0);
    };
    for (const id of [unaccepted, slow]) initiator.connection.streams.write(id, PIECE);
    initiator.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_WRITABLE) initiator.connection.streams.write(stream, PIECE);
    };
    for (let i = 0; i < 200; i++) {
      responder.connection.streams.read(slow, target);
      pair.run(20);
    }
    expect(responder.connection.streams.stats(unaccepted)).toMatchObject({ receiveWindow: 16 * KB });
    expect(responder.connection.streams.stats(unaccepted)?.received).toBeGreaterThan(MB);
    expect(responder.connection.streams.stats(slow)).toMatchObject({ receiveWindow: START });
  });

  /** `share`: of 100 Mbit/s. */
  it.each([0.3, 1])('of a connection grows with many streams on %d of 100 Mbit/s', { tags: ['slow'] }, (share) => {
    const pair = new Pair({
      memory: 32 * MB,
      parameters: { ...parameters, initialMaxData: 256 * KB, initialMaxStreamData: 32 * KB },
      line: new Line(share * 100e6, share * MB),
      link: { delay: 75 },
    });
    const { initiator, responder } = pair;
    const ids = Array.from({ length: 90 }, () => initiator.connection.streams.open());
    initiator.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_WRITABLE) initiator.connection.streams.write(stream, PIECE);
    };
    let received = 0;
    const target = new Uint8Array(65_536);
    responder.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_READABLE) received += Math.max(0, responder.connection.streams.read(stream, target));
    };
    for (const id of ids) initiator.connection.streams.write(id, PIECE);
    pair.run(4_000);
    const before = received;
    pair.run(2_000);
    // with 256 KiB it would be 14 Mbit/s
    expect(((received - before) * 8) / 2_000 / 1_000).toBeGreaterThan(share * 80);
    expect(responder.connection.stats().receiveWindow).toBeGreaterThan(share * 2 * MB);
    expect(responder.connection.streams.stats(ids[0] as number)?.receiveWindow).toBe(32 * KB);
  });

  it.each([
    ['the limit of the core', { connectionWindow: 512 * KB }, 512 * KB],
    ['nothing at all with a limit of 0', { connectionWindow: 0 }, 256 * KB],
    ['the capacity of the pool', { memory: 3 * MB, streams: 64 }, MB],
  ])('grows to %s', (_name, options, most) => {
    const core = Core.create({ connections: 2, ...options });
    const fast = { line: new Line(100e6, 4 * MB), link: { delay: 150 }, granularity: 1 };
    const flow = bulk({ core, parameters: { ...parameters, initialMaxData: 256 * KB }, ...fast });
    flow.pair.run(4_000);
    expect(reading(flow).receiveWindow).toBeLessThanOrEqual(most);
    expect(reading(flow).stream?.receiveWindow).toBeLessThanOrEqual(most);
    expect(flow.received).toBeGreaterThan(500 * KB);
    expect(core.failed).toBe(false);
  });

  it('of a stream, when raised, raises that of the connection', () => {
    const pair = new Pair({ parameters, memory: 32 * MB });
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    initiator.connection.streams.write(id, PIECE.subarray(0, 10));
    pair.run(100);
    responder.connection.streams.raiseWindow(id, 2 * MB);
    pair.run(100);
    expect(responder.connection.streams.stats(id)?.receiveWindow).toBe(2 * MB);
    expect(responder.connection.stats().receiveWindow).toBe(3 * MB);
    expect(initiator.connection.streams.stats(id)?.sendCredit).toBe(2 * MB - 10);
  });

  it('returns its growth to the pool when the connection ends', { tags: ['slow'] }, () => {
    const core = Core.create({ connections: 2 });
    for (let round = 0; round < 4; round++) {
      const flow = bulk({ core, line: new Line(100e6, 4 * MB), link: { delay: 100 }, granularity: 1 });
      flow.pair.run(1_500);
      expect(reading(flow).stream?.receiveWindow, `round ${round}`).toBeGreaterThan(2 * MB);
      flow.pair.free();
    }
  });
});

describe('a reader that stops', () => {
  it('stops the writer within its window, and memory does not grow', { tags: ['slow'] }, () => {
    const core = Core.create({ connections: 2 });
    const free = core.stats().freeChunks;
    const flow = bulk({ core, line: new Line(50e6, MB), link: { delay: 20 } });
    flow.pair.run(2_000);
    flow.isReading = false;
    flow.pair.run(2_000);
    const { stream, streamBytesUnread } = reading(flow);
    const held = free - core.stats().freeChunks;
    const written = flow.written;
    flow.pair.run(30_000);
    expect(flow.written).toBe(written);
    expect(free - core.stats().freeChunks).toBeLessThanOrEqual(held);
    // all bytes with credit have arrived, and the sender keeps only those ready to follow
    expect(streamBytesUnread).toBeGreaterThan(0.7 * (stream?.receiveWindow ?? 0));
    expect(streamBytesUnread).toBeLessThanOrEqual(stream?.receiveWindow ?? 0);
    expect(flow.pair.initiator.connection.streams.stats(flow.id)).toMatchObject({ sendCredit: 0, buffered: 16 * KB });
    expect(flow.pair.initiator.connection.streams.stats(flow.id)?.blocked).toBeGreaterThan(0);
    expect(held * CHUNK).toBeLessThan(1.1 * (stream?.receiveWindow ?? 0) + 64 * KB);
    flow.isReading = true;
    flow.read();
    flow.pair.run(2_000);
    expect(flow.written).toBeGreaterThan(written + MB);
  });

  it('of many streams leaves capacity for the others', { tags: ['slow'] }, () => {
    const core = Core.create({ connections: 2, memory: 8 * MB });
    const pair = new Pair({ core, parameters: { ...parameters, maxStreams: 500 }, link: { delay: 5 } });
    const { initiator, responder } = pair;
    const write = (id: number) => {
      while (initiator.connection.streams.write(id, PIECE) > 0);
    };
    let received = 0;
    const target = new Uint8Array(65_536);
    initiator.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_WRITABLE) write(stream);
    };
    const stuck = Array.from({ length: 50 }, () => initiator.connection.streams.open());
    for (const id of stuck) write(id);
    const live = initiator.connection.streams.open();
    responder.onEvent = ({ kind, stream }) => {
      if (kind === EventKind.STREAM_READABLE && stream === live) received += Math.max(0, responder.connection.streams.read(live, target));
    };
    write(live);
    pair.run(10_000);
    expect(received).toBeGreaterThan(MB);
  });
});

describe('a sender', () => {
  it('buffers at most its share for a peer that acknowledges nothing, however many streams want more', () => {
    const core = Core.create({ connections: 8, memory: 16 * MB });
    const free = core.stats().freeChunks;
    const pair = new Pair({
      core,
      parameters: { ...parameters, initialMaxData: 2 ** 30, initialMaxStreamData: 2 ** 20, maxStreams: 1_000 },
    });
    pair.intercept = () => null;
    const { connection } = pair.initiator;
    for (let i = 0; i < 1_000; i++) connection.streams.write(connection.streams.open(), PIECE);
    pair.run(1_000);
    // a quarter of the memory is for byte streams to send, and an eighth of that is reserved for others
    expect((free - core.stats().freeChunks) * CHUNK).toBeLessThan(16 * MB * 0.5);
    const other = new Pair({ core, parameters });
    expect(other.initiator.connection.streams.write(other.initiator.connection.streams.open(), PIECE.subarray(0, 20_000))).toBe(20_000);
    other.free();
    pair.free();
    expect(core.stats().freeChunks).toBe(free);
  });
});

describe('a sender in a core with capacity for 1,100 connections', () => {
  /**
   * What a new connection carries in a second beside the memory held for `vanished` peers that vanished one after the
   * other, each with its maximum in flight.
   */
  function carriedBeside(vanished: number): number {
    const core = Core.create({ connections: 1_100, memory: 32 * MB });
    const free = core.stats().freeChunks;
    const wide = { ...parameters, initialMaxData: 2 ** 30, initialMaxStreamData: 2 ** 20, maxStreams: 1_000 };
    const gone = Array.from({ length: vanished }, () => {
      const pair = new Pair({ core, parameters: wide });
      pair.intercept = () => null;
      const { connection } = pair.initiator;
      for (let i = 0; i < 100; i++) connection.streams.write(connection.streams.open(), PIECE);
      return pair;
    });
    const flow = bulk({ core, link: { delay: 1 }, granularity: 1 });
    flow.pair.run(100);
    const before = flow.received;
    flow.pair.run(100);
    const carried = 10 * (flow.received - before);
    for (const pair of [flow.pair, ...gone]) pair.free();
    expect(core.stats().freeChunks).toBe(free);
    return carried;
  }

  // It was 1.4 MB beside one: each connection received the remainder divided by 1,100.
  it.each([
    [1, 50],
    [8, 20],
    [20, 1],
  ])('beside %i peers that vanished in a download carries %i MB a second on a path of 2 ms', (vanished, megabytes) => {
    expect(carriedBeside(vanished)).toBeGreaterThan(megabytes * MB);
  });
});

describe('statistics', () => {
  it('count bytes sent, repeated, acknowledged, received and waiting', () => {
    const pair = new Pair({ parameters: { initialMaxStreamData: 100_000 }, link: { loss: 0.1, delay: 20 }, seed: 3 });
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    expect(initiator.connection.streams.write(id, PIECE.subarray(0, 60_000))).toBe(60_000);
    expect(initiator.connection.streams.stats(id)).toEqual({
      sent: 0,
      acknowledged: 0,
      repeated: 0,
      buffered: 60_000,
      sendCredit: 100_000,
      blocked: 0,
      received: 0,
      unread: 0,
      receiveWindow: 100_000,
      weight: 16,
    });
    initiator.connection.streams.setWeight(id, 40);
    initiator.connection.messages.send(PIECE.subarray(0, 1_000));
    pair.run(3_000);
    const theirs = responder.connection.streams.stats(id);
    const ours = initiator.connection.streams.stats(id);
    expect(ours).toMatchObject({ sent: 60_000, acknowledged: 60_000, buffered: 0, sendCredit: 40_000, weight: 40 });
    expect(ours?.repeated).toBeGreaterThan(1_000);
    expect(theirs).toMatchObject({ received: 60_000, unread: 60_000, sent: 0, weight: 16 });
    expect(initiator.connection.stats()).toMatchObject({
      streamBytesSent: 61_000,
      streamBytesAcknowledged: 61_000,
      streamBytesBuffered: 0,
      streams: 1,
    });
    expect(initiator.connection.stats().streamBytesRepeated).toBeGreaterThanOrEqual(ours?.repeated ?? 0);
    expect(responder.connection.stats()).toMatchObject({ streamBytesReceived: 61_000, streamBytesUnread: 61_000, streams: 1, messages: 1 });
    responder.connection.streams.read(id, new Uint8Array(50_000));
    expect(responder.connection.stats()).toMatchObject({ streamBytesUnread: 11_000 });
    expect(responder.connection.streams.stats(id)).toMatchObject({ unread: 10_000 });
    expect(initiator.connection.streams.stats(400)).toBeNull();
  });

  it('exclude data behind a gap and streams that were reset', () => {
    const pair = new Pair({ parameters });
    pair.intercept = () => null;
    pair.inject(forge({ number: 1, frames: [0x0e, 0, ...varint(5_000), ...varint(100), ...new Uint8Array(100)] }), pair.responder);
    expect(pair.responder.connection.streams.stats(0)).toMatchObject({ received: 100, unread: 0 });
    const { connection } = pair.responder;
    connection.streams.write(0, PIECE.subarray(0, 9_000));
    expect(connection.stats()).toMatchObject({ streamBytesBuffered: 9_000 });
    connection.streams.reset(0, 1);
    expect(connection.stats()).toMatchObject({ streamBytesBuffered: 0 });
    expect(connection.streams.stats(0)).toMatchObject({ buffered: 0 });
  });
});
