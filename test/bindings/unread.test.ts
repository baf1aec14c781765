/** Streams that no application reads hold what they got, and leave the others of their connection what they need. */
import { describe, expect, it } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { Pair, type PairOptions } from './pair.ts';

const KB = 1 << 10;
const MB = 1 << 20;
/** Windows of the product: announced, and of an accepted stream. */
const parameters = { initialMaxData: MB, initialMaxStreamData: 16 * KB, maxStreams: 2_000 };
const ACCEPTED = 64 * KB;
const PIECE = new Uint8Array(64 * KB);

/** The initiator writes into streams as much as they take; the responder accepts all and reads those in `read`. */
function scene(options: PairOptions = {}) {
  const core = options.core ?? Core.create({ connections: 4, memory: 32 * MB });
  const pair = new Pair({ core, parameters, link: { delay: 10 }, ...options });
  const { initiator, responder } = pair;
  const left = new Map<number, number>();
  const received = new Map<number, number>();
  const read = new Set<number>();
  const cramped: number[] = [];
  const target = new Uint8Array(64 * KB);
  const write = (id: number) => {
    for (let taken = 1; taken > 0 && left.get(id)! > 0; ) {
      taken = initiator.connection.streams.write(id, PIECE.subarray(0, Math.min(PIECE.length, left.get(id)!)));
      left.set(id, left.get(id)! - taken);
    }
  };
  const take = (id: number) => {
    for (let count = 1; count > 0 && read.has(id); ) {
      count = responder.connection.streams.read(id, target);
      received.set(id, (received.get(id) ?? 0) + Math.max(0, count));
    }
  };
  initiator.onEvent = ({ kind, stream }) => {
    if (kind === EventKind.STREAM_WRITABLE) write(stream);
  };
  responder.onEvent = ({ kind, stream, value }) => {
    if (kind === EventKind.STREAM_OPENED) responder.connection.streams.raiseWindow(stream, ACCEPTED);
    if (kind === EventKind.STREAM_READABLE) take(stream);
    if (kind === EventKind.CRAMPED) cramped.push(value);
  };
  /** Opens a stream with `bytes` to send. */
  const open = (bytes: number, isRead: boolean): number => {
    const id = initiator.connection.streams.open();
    expect(id).toBeGreaterThanOrEqual(0);
    left.set(id, bytes);
    if (isRead) read.add(id);
    write(id);
    return id;
  };
  /** ms until `bytes` of a new stream have arrived at its reader; Infinity after 5 s. */
  const carried = (bytes: number): number => {
    const id = open(bytes, true);
    const start = pair.now;
    return pair.run(5_000, () => received.get(id) === bytes) ? pair.now - start : Number.POSITIVE_INFINITY;
  };
  const readAll = () => {
    for (const id of left.keys()) {
      read.add(id);
      take(id);
    }
  };
  return { core, pair, open, carried, readAll, left, received, read, cramped };
}

describe('streams that no application reads', () => {
  it.each([
    ['15, one after the other', 15, true],
    ['100, one after the other', 100, true],
    ['100 at once', 100, false],
  ])('leave the next what it needs: %s', (_name, count, inTurn) => {
    const { pair, open, carried, readAll, left, received } = scene();
    for (let i = 0; i < count; i++) {
      open(200_000, false);
      if (inTurn) pair.run(100);
    }
    pair.run(1_000);
    expect(carried(200_000)).toBeLessThan(1_000);
    readAll();
    pair.run(5_000);
    expect([...left.values()].every((bytes) => bytes === 0)).toBe(true);
    expect([...received.values()]).toEqual(new Array(count + 1).fill(200_000));
  });

  it('leave it half of a whole window while there is memory', () => {
    const { pair, open, carried } = scene({ link: { delay: 50 } });
    for (let i = 0; i < 15; i++) open(200_000, false);
    pair.run(2_000);
    const alone = scene({ link: { delay: 50 } }).carried(4 * MB);
    expect(carried(4 * MB)).toBeLessThan(2 * alone);
  });

  it('and were fast before leave it what it needs, however large their windows are', { tags: ['slow'] }, () => {
    const { pair, core, open, carried, read, readAll, received } = scene({ link: { delay: 20 } });
    const ids = Array.from({ length: 5 }, () => open(200 * MB, true));
    pair.run(600);
    const windows = ids.reduce((sum, id) => sum + pair.responder.connection.streams.stats(id)!.receiveWindow, 0);
    expect(windows).toBeGreaterThan(8 * MB);
    read.clear();
    pair.run(2_000);
    expect(carried(6)).toBeLessThan(100);
    expect(carried(200_000)).toBeLessThan(1_000);
    // a quarter of the memory is for received bytes, and a quarter of that was not for them
    expect(pair.responder.connection.stats().streamBytesUnread).toBeLessThan(5.5 * MB);
    const before = received.get(ids[0]!)!;
    readAll();
    pair.run(500);
    expect(received.get(ids[0]!)! - before).toBeGreaterThan(4 * MB);
    expect(core.failed).toBe(false);
  });

  it('get no more credit than was announced', () => {
    const { pair, open } = scene();
    const id = open(10 * MB, false);
    pair.run(5_000);
    expect(pair.responder.connection.streams.stats(id)).toMatchObject({ unread: ACCEPTED, receiveWindow: ACCEPTED });
  });

  it('get the least window when memory runs short, and the caller learns when that begins and ends', () => {
    const { pair, open, carried, readAll, cramped } = scene();
    const ids = Array.from({ length: 90 }, () => {
      const id = open(200_000, false);
      pair.run(60);
      return id;
    });
    pair.run(200);
    const { connection } = pair.responder;
    expect(connection.streams.stats(ids[0]!)?.receiveWindow).toBe(ACCEPTED);
    expect(connection.streams.stats(ids[89]!)).toMatchObject({ receiveWindow: 16 * KB, unread: 16 * KB });
    expect(cramped).toEqual([1]);
    expect(carried(6)).toBeLessThan(100);
    readAll();
    pair.run(1_000);
    expect(cramped).toEqual([1, 0]);
    expect(connection.stats().streamBytesUnread).toBe(0);
  });

  it('hold bounded memory, however many there are; those that are read continue, and so do messages and other peers', () => {
    const { pair, core, open, cramped, received } = scene();
    const free = core.stats().freeChunks;
    const live = open(100 * MB, true);
    for (let i = 0; i < 400; i++) open(200_000, false);
    pair.run(5_000);
    const { streamBytesUnread } = pair.responder.connection.stats();
    expect(streamBytesUnread).toBeGreaterThan(4 * MB);
    expect(streamBytesUnread).toBeLessThan(7 * MB);
    expect((free - core.stats().freeChunks) * KB).toBeLessThan(16 * MB);
    expect(cramped).toEqual([1]);
    const before = received.get(live)!;
    pair.run(1_000);
    expect(received.get(live)! - before).toBeGreaterThan(200_000);
    pair.initiator.connection.messages.send(PIECE);
    expect(pair.run(1_000, () => pair.responder.kinds().includes(EventKind.MESSAGE))).toBe(true);
    const other = scene({ core });
    expect(other.carried(200_000)).toBeLessThan(1_000);
    expect(core.failed).toBe(false);
  });

  it('use up a window that may not grow', () => {
    const core = Core.create({ connections: 2, memory: 8 * MB, connectionWindow: 0 });
    const { pair, open } = scene({ core, parameters: { ...parameters, initialMaxData: 256 * KB } });
    for (let i = 0; i < 10; i++) open(200_000, false);
    pair.run(2_000);
    const { streamBytesUnread } = pair.responder.connection.stats();
    expect(streamBytesUnread).toBeLessThanOrEqual(256 * KB);
  });
});
