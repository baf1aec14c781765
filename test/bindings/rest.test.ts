/** A connection without a path rests: it does not end, loses nothing, and costs nothing (PROTOCOL.md §6). */
import { describe, expect, test } from 'vitest';
import { EventKind, PathReason } from '../../bindings/index.ts';
import { Random } from '../../testing/random.ts';
import { seeds } from '../support/tiered.ts';
import { reveal } from './forge.ts';
import { CLIENT, DEVICE, type RoutedEnd, RoutedPair } from './routed-pair.ts';

const message = (value: number, length = 100) => new Uint8Array(length).fill(value);
const ROUTE = new Uint8Array(8).fill(0x77);
const KEEP_ALIVE = { interval: 5_000, retryInterval: 500, maxRetries: 3 };
const NEW_WAY = { ours: 'client:2', theirs: 'device:2' };

function kinds(end: RoutedEnd): number[] {
  return end.reported
    .map(({ kind }) => kind)
    .filter((kind) => kind === EventKind.RESTED || kind === EventKind.RESUMED || kind === EventKind.TIMED_OUT);
}

/** Passes packets only between the two addresses of the new path. */
function broken(pair: RoutedPair): void {
  pair.network = (datagram) => (datagram.from.endsWith(':2') && datagram.to.endsWith(':2') ? datagram : null);
}

function replace(pair: RoutedPair, route?: Uint8Array): void {
  expect(pair.initiator.connection.paths.replace(route, 1452, pair.now)).toBe(true);
  pair.initiator.ways[pair.initiator.active] = NEW_WAY;
}

describe('rest', () => {
  test('stops all timers and sends nothing', () => {
    const pair = new RoutedPair();
    pair.initiator.connection.setKeepAlive(KEEP_ALIVE, pair.now);
    pair.run(1_000);
    pair.initiator.connection.messages.send(message(1));
    pair.initiator.connection.rest();
    pair.responder.connection.rest();
    const sent = [pair.initiator.sent.length, pair.responder.sent.length];
    pair.run(3_600_000);
    expect([pair.initiator.sent.length, pair.responder.sent.length]).toEqual(sent);
    expect(kinds(pair.initiator)).toEqual([]);
    expect(pair.initiator.connection.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    expect(pair.responder.connection.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test.each([
    ['an address', undefined],
    ['a route', ROUTE],
  ])('ends over %s that replaces the lost path, with the data in flight and the data written', (_, route) => {
    const pair = RoutedPair.after(500);
    broken(pair);
    pair.initiator.connection.messages.send(message(1));
    pair.responder.connection.messages.send(message(2));
    pair.run(100);
    pair.initiator.connection.rest();
    pair.responder.connection.rest();
    pair.initiator.connection.messages.send(message(3));
    pair.responder.connection.messages.send(message(4));
    pair.run(30_000);
    if (route !== undefined) {
      pair.network = (datagram, end) => {
        if (!datagram.from.endsWith(':2')) return null;
        if (end !== pair.initiator) return datagram;
        expect(datagram.bytes.subarray(1, 9)).toEqual(route);
        return { ...datagram, bytes: datagram.bytes.subarray(9) };
      };
    }
    replace(pair, route);
    pair.run(500);
    expect(kinds(pair.initiator)).toEqual([EventKind.RESUMED]);
    expect(kinds(pair.responder)).toEqual([EventKind.RESUMED]);
    expect(pair.responder.received.map(([first]) => first).sort()).toEqual([1, 3]);
    expect(pair.initiator.received.map(([first]) => first).sort()).toEqual([2, 4]);
    expect(pair.responder.names()[0]).toBe(`changed 1 ${PathReason.FAILED_OVER}`);
    expect(pair.responder.connection.paths.stats(1)!.validated).toBe(true);
  });

  test('ends with a packet of the peer on the same path: data in flight is sent again at once', () => {
    const pair = RoutedPair.after(500);
    pair.network = () => null;
    pair.initiator.connection.messages.send(message(1));
    pair.run(5);
    pair.initiator.connection.rest();
    pair.run(10_000);
    pair.network = (datagram) => datagram;
    pair.responder.connection.messages.send(message(2));
    const since = pair.now;
    pair.run(5_000, () => pair.responder.received.length > 0);
    expect(kinds(pair.initiator)).toEqual([EventKind.RESUMED]);
    // From the peer to here, and back.
    expect(pair.now - since).toBeLessThanOrEqual(2 * pair.delay);
  });

  test('what arrived before it does not go out again, although its acknowledgement was lost', () => {
    const pair = RoutedPair.after(500);
    const { connection } = pair.responder;
    const stream = connection.streams.open();
    connection.streams.write(stream, message(1, 8_000));
    pair.network = (datagram, end) => (end === pair.initiator ? null : datagram);
    pair.run(100);
    connection.streams.write(stream, message(2, 100));
    broken(pair);
    pair.run(5);
    pair.initiator.connection.rest();
    connection.rest();
    const sent = pair.responder.sent.length;
    replace(pair);
    pair.run(500);
    expect(kinds(pair.responder)).toEqual([EventKind.RESUMED]);
    const frames = pair.responder.sent.slice(sent).map(({ bytes }) => reveal(bytes, 'responder') ?? []);
    expect(frames.map((bytes) => bytes.filter((byte) => byte === 1).length).filter((count) => count > 100)).toEqual([]);
    expect(frames.some((bytes) => bytes.filter((byte) => byte === 2).length >= 100)).toBe(true);
  });

  test('a path that replaces the lost one has a round trip of its own', () => {
    const pair = RoutedPair.after(500);
    pair.initiator.connection.rest();
    replace(pair);
    pair.initiator.connection.messages.send(message(1));
    pair.run(500);
    expect(pair.initiator.connection.stats().minimumRtt).toBeGreaterThanOrEqual(2 * pair.delay);
  });

  test('of one end only: the other follows it', () => {
    const pair = RoutedPair.after(500);
    broken(pair);
    pair.initiator.connection.rest();
    replace(pair);
    pair.run(500);
    pair.responder.connection.messages.send(message(5));
    pair.run(500);
    expect(pair.initiator.received.map(([first]) => first)).toEqual([5]);
    expect(kinds(pair.responder)).toEqual([]);
  });

  test('begins when keep-alive finds no answer and resting is allowed; otherwise the connection ends', () => {
    for (const allowed of [true, false]) {
      const pair = new RoutedPair();
      pair.initiator.connection.allowRest(allowed);
      pair.initiator.connection.setKeepAlive(KEEP_ALIVE, pair.now);
      pair.run(100);
      pair.network = () => null;
      pair.run(20_000);
      expect(kinds(pair.initiator)).toEqual([allowed ? EventKind.RESTED : EventKind.TIMED_OUT]);
    }
  });

  test('reports a path that does not answer, and another one may be tried', () => {
    const pair = RoutedPair.after(100);
    pair.network = () => null;
    pair.initiator.connection.rest();
    replace(pair, ROUTE);
    pair.run(10_000);
    expect(pair.initiator.names()).toEqual(['failed 0 0']);
    broken(pair);
    replace(pair);
    pair.run(500);
    expect(kinds(pair.initiator)).toEqual([EventKind.RESUMED]);
  });

  test('ends only with a packet under its keys', () => {
    const pair = RoutedPair.after(500);
    pair.responder.connection.rest();
    for (const bytes of [new Uint8Array(60).fill(0xc0), ...pair.initiator.sent.map((datagram) => datagram.bytes)])
      pair.inject({ from: CLIENT, to: DEVICE, bytes }, pair.responder);
    pair.run(1_000);
    expect(kinds(pair.responder)).toEqual([]);
  });

  test('is required: without it no path is replaced', () => {
    const pair = new RoutedPair();
    expect(pair.initiator.connection.paths.replace(ROUTE, 1452, pair.now)).toBe(false);
    pair.initiator.connection.rest();
    pair.initiator.connection.close(0, new Uint8Array(0), pair.now);
    expect(pair.initiator.connection.paths.replace(ROUTE, 1452, pair.now)).toBe(false);
  });

  test('restarts keep-alive when it ends', () => {
    const pair = new RoutedPair();
    pair.initiator.connection.setKeepAlive(KEEP_ALIVE, pair.now);
    pair.run(500);
    broken(pair);
    pair.initiator.connection.rest();
    pair.responder.connection.rest();
    pair.run(60_000);
    replace(pair);
    pair.run(4_000);
    expect(kinds(pair.initiator)).toEqual([EventKind.RESUMED]);
    pair.run(120_000);
    expect(kinds(pair.initiator)).toEqual([EventKind.RESUMED]);
  });

  test('takes the Complete packet of the lost path out of every window', () => {
    const pair = new RoutedPair({ initiator: { complete: new Uint8Array(300).fill(0x83) } });
    // Complete arrives; its acknowledgement does not.
    pair.network = (datagram, end) => (end === pair.responder ? datagram : null);
    pair.initiator.connection.messages.send(message(1));
    pair.run(100);
    pair.responder.connection.completeReceived(pair.now);
    pair.initiator.connection.rest();
    pair.responder.connection.rest();
    broken(pair);
    replace(pair);
    pair.run(30_000);
    expect(pair.responder.received.map(([first]) => first)).toEqual([1]);
    expect(pair.initiator.connection.stats().bytesInFlight).toBe(0);
  });

  test('begins again when the path is lost right after its end', () => {
    const pair = RoutedPair.after(500);
    const { connection } = pair.initiator;
    connection.setKeepAlive(KEEP_ALIVE, pair.now);
    const held: Uint8Array[] = [];
    pair.network = ({ bytes }) => {
      held.push(bytes.slice());
      return null;
    };
    connection.rest();
    pair.responder.connection.messages.send(message(3));
    pair.run(10);
    // The driver has read none of the events when its path is lost again.
    connection.receive(held[0]!, 0, pair.now, 0);
    connection.rest();
    pair.initiator.drain();
    expect(kinds(pair.initiator)).toEqual([]);
    expect(connection.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('leaves nothing in memory', () => {
    const pair = RoutedPair.after(500);
    const free: number[] = [];
    for (let i = 0; i < 10; i++) {
      pair.initiator.connection.messages.send(message(i, 5_000));
      pair.run(5);
      pair.initiator.connection.rest();
      pair.responder.connection.rest();
      replace(pair);
      pair.run(10_000);
      free.push(pair.core.stats().freeChunks);
    }
    expect(pair.responder.received.length).toBe(10);
    expect(new Set(free).size, String(free)).toBe(1);
  });

  const atRandomTimes = (seed: number): void => {
    const random = new Random(`rest ${seed}`);
    const below = (limit: number): number => Math.floor(random.fraction() * limit);
    const pair = new RoutedPair();
    pair.initiator.connection.setKeepAlive(KEEP_ALIVE, pair.now);
    pair.initiator.connection.allowRest(true);
    const stream = pair.initiator.connection.streams.open();
    const bytes = new Uint8Array(200_000).map((_, i) => (i * 7 + (i >> 8)) & 0xff);
    const got: number[] = [];
    let written = 0;
    let place = 0;
    const work = (): void => {
      written += pair.initiator.connection.streams.write(stream, bytes, written);
      const part = new Uint8Array(10_000);
      for (let n = pair.responder.connection.streams.read(stream, part); n > 0; n = pair.responder.connection.streams.read(stream, part))
        got.push(...part.subarray(0, n));
    };
    for (let round = 0; round < 2_000 && got.length < bytes.length; round++) {
      work();
      pair.run(below(60));
      if (below(30) > 0) continue;
      place++;
      const way = { ours: `client:${100 + place}`, theirs: DEVICE };
      pair.network = (datagram) => (datagram.from === way.ours || datagram.to === way.ours ? datagram : null);
      pair.run(below(3) * 4_000);
      pair.initiator.connection.rest();
      if (below(2) > 0) pair.responder.connection.rest();
      pair.run(below(20_000));
      expect(pair.initiator.connection.paths.replace(undefined, 1452, pair.now)).toBe(true);
      pair.initiator.ways[pair.initiator.active] = way;
      pair.run(2_000);
    }
    expect(got.length).toBe(bytes.length);
    expect(got.every((byte, i) => byte === bytes[i])).toBe(true);
  };

  describe('at random times in a transfer: every byte arrives once, in order', () => {
    test.each(seeds(1, 40))('seed %i', { tags: ['slow'] }, atRandomTimes);
  });
});
