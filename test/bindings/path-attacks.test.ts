/**
 * Packets from other addresses and their effect on the data plane (RFC 9000 §8.1, §9.3, §21.5): which address is used,
 * and how many bytes go to each.
 */
import { describe, expect, test } from 'vitest';
import { EventKind, PathReason } from '../../bindings/index.ts';
import { forge } from './forge.ts';
import { type Carried, CLIENT, RoutedPair, rebound } from './routed-pair.ts';

const message = (length = 100) => new Uint8Array(length).fill(5);
const sizes = (datagrams: readonly Carried[]) => datagrams.map(({ bytes }) => bytes.length);

describe('the anti-amplification limit (RFC 9000 §8.1, §9.3)', () => {
  test('holds for an address that is not validated', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(200);
    // the victim never answers
    let [towards, from] = [0, 0];
    pair.network = (datagram, end) => {
      if (end === pair.initiator) {
        from += datagram.bytes.length;
        return { ...datagram, from: 'victim:1' };
      }
      if (datagram.to === 'victim:1') {
        towards += datagram.bytes.length;
        expect(towards).toBeLessThanOrEqual(3 * from);
      }
      return null;
    };
    pair.responder.connection.streams.write(stream, message(60_000));
    pair.initiator.connection.messages.send(message(10));
    pair.run(2_000);
    expect(towards).toBeGreaterThan(0);
    const challenges = pair.responder.sent.filter(({ to }) => to === 'victim:1');
    // too few bytes arrived for a full datagram: challenges are short then (§8.2.1)
    expect(Math.min(...sizes(challenges))).toBeLessThan(100);
  });

  test('a path that answered a short challenge is challenged again with a full one', () => {
    const pair = RoutedPair.after(100);
    rebound(pair, 'elsewhere:1');
    pair.initiator.connection.ping();
    pair.run(1_000);
    const lengths = sizes(pair.responder.sent.filter(({ to }) => to === 'elsewhere:1'));
    expect(lengths.filter((length) => length === 1_200).length).toBeGreaterThan(0);
    expect(lengths.filter((length) => length < 100).length).toBeGreaterThan(0);
    expect(pair.responder.names()).toContain('validated 1 0');
  });
});

test('a flood of small challenges on a warm path brings about as many bytes as it has', () => {
  const pair = RoutedPair.after(300);
  const { initiator } = pair;
  initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now, { keepInterval: 25_000 });
  pair.run(1_000);
  expect(initiator.names()).toContain('validated 1 0');
  pair.network = () => null;
  initiator.sent.length = 0;
  let flood = 0;
  for (let n = 0; n < 1_000; n++) {
    const bytes = forge({ number: 10_000 + n, frames: [0x1a, ...Buffer.from(String(n).padStart(8))], from: 'responder' });
    flood += bytes.length;
    expect(pair.inject({ from: 'device:2', to: 'client:2', bytes }, initiator)).toBe(true);
    pair.run(1);
  }
  const brought = sizes(initiator.sent).reduce((sum, size) => sum + size, 0);
  expect(brought).toBeGreaterThan(flood);
  expect(brought).toBeLessThan(2.5 * flood);
});

describe('an end that may not send to an unvalidated address', () => {
  test('stops its timers, whatever it has in flight', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(200);
    pair.network = (datagram, end) => (end === pair.initiator ? { ...datagram, from: 'elsewhere:1' } : null);
    pair.responder.connection.streams.write(stream, message(60_000));
    pair.initiator.connection.messages.send(message(10));
    pair.run(30);
    pair.network = () => null;
    expect(pair.responder.connection.paths.stats(pair.responder.active)!.validated).toBe(false);
    let timeouts = 0;
    const { connection } = pair.responder;
    const handle = connection.handleTimeout.bind(connection);
    connection.handleTimeout = (now) => {
      timeouts++;
      handle(now);
    };
    pair.run(60_000);
    expect(timeouts).toBeLessThan(100);
  });
});

describe('the address of the peer', () => {
  const there = (pair: RoutedPair) => pair.responder.connection.paths.isThere(pair.responder.active);

  test('does not change before a new address has answered', () => {
    const pair = RoutedPair.after(100);
    expect(there(pair)).toBe(true);
    rebound(pair, 'elsewhere:1');
    pair.initiator.connection.messages.send(message());
    pair.run(25);
    expect([pair.responder.active, there(pair)]).toEqual([1, false]);
    pair.run(200);
    expect([pair.responder.active, there(pair)]).toEqual([1, true]);
  });

  test('is not changed by late packets of an abandoned path', () => {
    const pair = RoutedPair.after(100);
    const held: Carried[] = [];
    pair.network = (datagram, end) => {
      if (end === pair.initiator) held.push(datagram);
      return null;
    };
    for (let i = 0; i < 3; i++) {
      pair.initiator.connection.messages.send(message());
      pair.run(1);
    }
    const [late, newest, next] = held;
    pair.inject(newest!, pair.responder);
    expect(there(pair)).toBe(true);
    expect(pair.inject({ ...late!, from: 'elsewhere:1' }, pair.responder)).toBe(true);
    pair.responder.drain();
    expect([pair.responder.active, there(pair)]).toEqual([0, false]);
    pair.inject(next!, pair.responder);
    expect(there(pair)).toBe(true);
  });
});

describe('a connection closed while the address is not validated', () => {
  test('sends CONNECTION_CLOSE within the anti-amplification limit', () => {
    const pair = RoutedPair.after(100);
    const before = pair.responder.sent.length;
    let received = 0;
    pair.network = (datagram, end) => {
      if (end === pair.responder) return { ...datagram, to: CLIENT };
      if (received > 0) return null;
      received = datagram.bytes.length;
      return { ...datagram, from: 'elsewhere:1' };
    };
    pair.initiator.connection.ping();
    pair.run(20.5);
    pair.responder.connection.close(7, new Uint8Array(100).fill(0x61), pair.now);
    pair.run(1);
    const sent = pair.responder.sent.slice(before).filter(({ to }) => to === 'elsewhere:1');
    expect(sizes(sent).reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(3 * received);
    pair.run(100);
    expect(pair.initiator.reported.find(({ kind }) => kind === EventKind.CLOSED)?.value).toBe(7);
  });
});

describe('an attacker', () => {
  test('that copies packets faster does not win: the old path still answers (RFC 9000 §9.3.3)', () => {
    const pair = RoutedPair.after(100);
    pair.network = (datagram, end) => {
      if (end === pair.initiator) pair.inject({ ...datagram, from: 'attacker:1' }, pair.responder);
      return datagram.to === 'attacker:1' ? null : datagram;
    };
    pair.initiator.connection.messages.send(message());
    pair.run(45);
    expect(pair.responder.names()[0]).toBe(`changed 1 ${PathReason.REBOUND}`);
    pair.run(3_000);
    expect(pair.responder.names()).toContain(`changed 0 ${PathReason.RETURNED}`);
    expect(pair.responder.active).toBe(0);
    // the second time the old path is challenged first
    const before = pair.responder.reported.length;
    for (let i = 0; i < 20; i++) {
      pair.initiator.connection.messages.send(message());
      pair.run(100);
    }
    expect(pair.responder.active).toBe(0);
    expect(pair.responder.reported.slice(before).filter(({ kind }) => kind === EventKind.PATH_CHANGED)).toEqual([]);
    expect(pair.responder.received.length).toBe(21);
  });

  test('that copies packets from ever new addresses costs at most four paths', { tags: ['slow'] }, () => {
    const pair = RoutedPair.after(100);
    const free = pair.core.stats().freeChunks;
    let count = 0;
    pair.network = (datagram, end) => {
      if (end === pair.initiator) pair.inject({ ...datagram, from: `attacker${count++}:1` }, pair.responder);
      return datagram.to.startsWith('attacker') ? null : datagram;
    };
    for (let i = 0; i < 100; i++) {
      pair.initiator.connection.messages.send(message());
      pair.run(50);
      expect(pair.core.stats().freeChunks).toBeGreaterThan(free - 30);
    }
    pair.network = (datagram) => (datagram.to.startsWith('attacker') ? null : datagram);
    pair.initiator.connection.messages.send(message());
    pair.run(20_000);
    expect(pair.responder.active).toBe(0);
    expect(pair.responder.received.length).toBe(101);
    expect(pair.core.stats().freeChunks).toBe(free);
  });

  test('that copies each packet of a client faster after its deliberate migration does not keep the device', () => {
    const pair = new RoutedPair();
    const way = { ours: 'client:2', theirs: 'device:2' };
    pair.run(100);
    const index = pair.initiator.add(way, pair.now);
    pair.run(500);
    pair.network = (datagram, end) => {
      if (end === pair.initiator) pair.inject({ ...datagram, from: 'attacker:1' }, pair.responder);
      return datagram.to === 'attacker:1' ? null : datagram;
    };
    expect(pair.initiator.connection.paths.migrate(index, pair.now)).toBe(true);
    for (let i = 0; i < 20; i++) {
      pair.initiator.connection.messages.send(message());
      pair.run(500);
    }
    expect(pair.responder.names()).toContain(
      `changed ${pair.responder.indexOf({ ours: 'device:2', theirs: 'client:2' })} ${PathReason.RETURNED}`,
    );
    expect(pair.responder.ways[pair.responder.active]).toEqual({ ours: 'device:2', theirs: 'client:2' });
    pair.responder.connection.messages.send(message());
    expect(pair.run(1_000, () => pair.initiator.received.length > 0)).toBe(true);
  });

  test('that repeats or forges packets causes no migration', () => {
    const pair = new RoutedPair();
    pair.initiator.connection.messages.send(message());
    pair.run(200);
    const reported = pair.responder.reported.length;
    for (const datagram of [...pair.initiator.sent]) {
      expect(pair.inject({ ...datagram, from: 'attacker:1' }, pair.responder)).toBe(false);
      const forged = datagram.bytes.slice();
      forged[forged.length - 1]! ^= 1;
      forged[12]! += 200;
      expect(pair.inject({ ...datagram, from: 'attacker:1', bytes: forged }, pair.responder)).toBe(false);
    }
    pair.run(5_000);
    expect(pair.responder.reported.length).toBe(reported);
    expect(pair.responder.connection.paths.stats(1)).toBeNull();
    expect(pair.responder.sent.every(({ to }) => to === CLIENT)).toBe(true);
  });

  test('that sends an older packet from elsewhere causes no migration', () => {
    const pair = RoutedPair.after(100);
    const held: Carried[] = [];
    pair.network = (datagram, end) => {
      if (end === pair.initiator && held.length === 0) {
        held.push(datagram);
        return null;
      }
      return datagram;
    };
    pair.initiator.connection.messages.send(message());
    pair.run(1);
    pair.initiator.connection.messages.send(message());
    pair.run(40);
    expect(pair.inject({ ...held[0]!, from: 'attacker:1' }, pair.responder)).toBe(true);
    pair.run(200);
    expect(pair.responder.reported.filter(({ kind }) => kind === EventKind.PATH_CHANGED)).toEqual([]);
  });
});
