/** Paths of the data plane (RFC 9000 §8.2, §9): migration, validation, and their cost. */
import { describe, expect, test } from 'vitest';
import { type Core, EventKind, PathReason } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { reveal } from './forge.ts';
import { type Carried, CLIENT, DEVICE, RoutedPair, rebound } from './routed-pair.ts';

const PATH_CHALLENGE = 0x1a;
const PATH_RESPONSE = 0x1b;
const equal = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((byte, i) => byte === b[i]);
const message = (length = 100) => new Uint8Array(length).fill(5);
const sizes = (datagrams: readonly Carried[]) => datagrams.map(({ bytes }) => bytes.length);

describe('a NAT rebinds the client', () => {
  test.each([
    ['port', 'client:99'],
    ['address', 'elsewhere:1'],
  ])('another %s is followed and validated, and the old one discarded', (what, outside) => {
    const pair = new RoutedPair();
    pair.responder.connection.messages.send(message());
    pair.run(500);
    const [window, rtt] = [pair.responder.connection.stats().congestionWindow, pair.responder.connection.stats().rtt];
    rebound(pair, outside);
    pair.initiator.connection.messages.send(message());
    pair.run(25);
    expect(pair.responder.names()).toEqual([`changed 1 ${PathReason.REBOUND}`]);
    const stats = pair.responder.connection.stats();
    if (what === 'port') expect([stats.congestionWindow, stats.rtt]).toEqual([window, rtt]);
    else expect(stats.rtt).not.toBe(rtt);
    expect(pair.responder.connection.paths.stats(1)!.validated).toBe(false);
    pair.run(100);
    expect(pair.responder.connection.paths.stats(1)!.validated).toBe(true);
    pair.run(10_000);
    expect(pair.responder.names()).toEqual([`changed 1 ${PathReason.REBOUND}`, 'validated 1 0', 'failed 0 1']);
    pair.responder.connection.messages.send(message());
    expect(pair.run(100, () => pair.initiator.received.length > 0)).toBe(true);
  });

  test.each([
    ['port', 'client:99'],
    ['address', 'elsewhere:1'],
  ])('the first packet to another %s challenges it, and is answered', (_, outside) => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(200);
    rebound(pair, outside);
    const [before, own] = [pair.responder.sent.length, pair.initiator.sent.length];
    pair.responder.connection.streams.write(stream, message(30_000));
    pair.initiator.connection.messages.send(message());
    pair.run(100);
    const [first] = pair.responder.sent.slice(before).filter(({ to }) => to === outside);
    const frames = reveal(first!.bytes, 'responder')!;
    expect(frames[0]).toBe(PATH_CHALLENGE);
    const answers = pair.initiator.sent.slice(own).map(({ bytes }) => reveal(bytes, 'initiator')!);
    expect(answers.some((answer) => answer[0] === PATH_RESPONSE && equal(answer.subarray(1, 9), frames.subarray(1, 9)))).toBe(true);
  });

  test('the end that opened it reports each challenge on its path once, and the other end does not', () => {
    const pair = new RoutedPair();
    const challenges = (end: 'initiator' | 'responder') =>
      pair[end].reported.filter(({ kind }) => kind === EventKind.PATH_CHALLENGED).length;
    pair.run(500);
    expect(challenges('initiator')).toBe(0);
    rebound(pair, 'client:99');
    pair.initiator.connection.ping();
    pair.run(1_000);
    const first = challenges('initiator');
    expect(first).toBeGreaterThanOrEqual(1);
    pair.run(60_000);
    expect([challenges('initiator'), challenges('responder')]).toEqual([first, 0]);
  });

  test('nothing of it is left in memory', () => {
    const pair = RoutedPair.after(100);
    const free = pair.core.stats().freeChunks;
    for (let i = 0; i < 20; i++) {
      rebound(pair, `client:${1000 + i}`);
      pair.initiator.connection.messages.send(message());
      pair.run(30_000);
      expect(pair.core.stats().freeChunks).toBe(free);
    }
    expect(pair.responder.received.length).toBe(20);
  });

  test('packets in flight to the old address are sent again, and no longer count as in flight', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(200);
    pair.responder.connection.streams.write(stream, message(8_000));
    pair.run(1);
    rebound(pair, 'elsewhere:1');
    expect(pair.responder.connection.stats().bytesInFlight).toBeGreaterThan(8_000);
    pair.initiator.connection.messages.send(message());
    pair.run(5_000);
    const back = new Uint8Array(10_000);
    expect(pair.initiator.connection.streams.read(stream, back)).toBe(8_000);
    expect([0, 1].map((path) => pair.responder.connection.paths.stats(path)?.bytesInFlight)).toEqual([undefined, 0]);
  });
});

describe('a NAT rebinds the device', () => {
  test('the client challenges the old address first, and follows when that is silent', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(500);
    pair.network = (datagram, end) => {
      if (end === pair.responder) return { ...datagram, from: 'device:99' };
      return datagram.to === 'device:99' ? { ...datagram, to: DEVICE } : null;
    };
    pair.responder.connection.streams.write(stream, message(20_000));
    pair.run(30);
    expect(pair.initiator.active).toBe(0);
    pair.run(3_000);
    expect(pair.initiator.names()).toContain(`changed 1 ${PathReason.REBOUND}`);
    pair.run(3_000);
    expect(pair.initiator.connection.streams.read(stream, new Uint8Array(30_000))).toBe(20_000);
    expect(pair.responder.active).toBe(0);
  });
});

describe('packet size on another path', () => {
  test('grows up to the limit set for that path', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.run(100);
    const index = pair.initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now);
    pair.run(500);
    pair.initiator.connection.paths.migrate(index, pair.now);
    pair.run(100);
    expect(pair.initiator.connection.stats().packetSize).toBe(1_200);
    pair.initiator.connection.paths.allowPacketSize(1_452);
    pair.initiator.connection.streams.write(stream, message(60_000));
    pair.run(3_000);
    expect(pair.initiator.connection.stats().packetSize).toBe(1_452);
  });
});

describe('the client adds a path', () => {
  const other = { ours: 'client:2', theirs: 'device:2' };
  const otherWay = (pair: RoutedPair) => {
    pair.network = (datagram) => datagram;
    return pair.initiator.add(other, pair.now);
  };

  test('it is validated in both directions, has ids of its own, and the client migrates to it', () => {
    const pair = RoutedPair.after(100);
    const index = otherWay(pair);
    pair.run(500);
    expect(pair.initiator.names()).toEqual([`validated ${index} 0`]);
    expect(pair.responder.names()).toEqual(['validated 1 0']);
    const ids = (datagrams: readonly Carried[], to: string) =>
      new Set(datagrams.filter((datagram) => datagram.to === to).map(({ bytes }) => bytes[1]));
    expect([...ids(pair.initiator.sent, 'device:2')]).toEqual([0x21]);
    expect([...ids(pair.responder.sent, 'client:2')]).toEqual([0x11]);
    expect(pair.initiator.connection.paths.migrate(index, pair.now)).toBe(true);
    pair.run(2_000);
    expect(pair.initiator.names().slice(1)).toEqual([`changed ${index} ${PathReason.MIGRATED}`, 'failed 0 1']);
    expect(pair.responder.names()[1]).toBe(`changed 1 ${PathReason.FOLLOWED}`);
    // the first id is retired at both ends, and another one supplied for it
    for (const end of [pair.initiator, pair.responder]) {
      const { ours, theirs, room } = end.connection.paths.ids()!;
      expect([ours.length, theirs.length, room]).toEqual([4, 4, 0]);
      expect([...ours, ...theirs.map(({ id }) => id)].every((id) => id[0]! > 2)).toBe(true);
    }
    pair.responder.connection.messages.send(message());
    expect(pair.run(100, () => pair.initiator.received.length > 0)).toBe(true);
  });

  test('many times: ids never run out', { tags: ['slow'] }, () => {
    const pair = RoutedPair.after(100);
    for (let i = 0; i < 40; i++) {
      const index = pair.initiator.add({ ours: `client:${100 + i}`, theirs: DEVICE }, pair.now);
      expect(index).toBeGreaterThanOrEqual(0);
      pair.initiator.connection.paths.migrate(index, pair.now);
      pair.initiator.connection.messages.send(message());
      pair.run(3_000);
      expect(pair.initiator.active).toBe(index);
      for (const old of [0, 1, 2, 3]) if (old !== index) pair.initiator.connection.paths.remove(old);
      expect(pair.responder.received.length).toBe(i + 1);
    }
    expect(pair.initiator.connection.paths.ids()!.room).toBe(0);
  });

  test('at the same time as the other end adds one', () => {
    const pair = RoutedPair.after(100);
    const index = otherWay(pair);
    const back = pair.responder.add({ ours: 'device:3', theirs: 'client:3' }, pair.now);
    pair.run(3_000);
    expect(pair.initiator.names()).toContain(`validated ${index} 0`);
    expect(pair.responder.names()).toContain(`validated ${back} 0`);
    expect(pair.responder.connection.paths.migrate(back, pair.now)).toBe(false);
    expect(pair.initiator.connection.paths.migrate(index, pair.now)).toBe(true);
    pair.run(3_000);
    expect(pair.responder.ways[pair.responder.active]).toEqual({ ours: 'device:2', theirs: 'client:2' });
  });

  test('it reports failure when nothing answers, and the path can be removed', () => {
    const pair = new RoutedPair();
    pair.network = (datagram) => (datagram.to.endsWith(':2') ? null : datagram);
    pair.run(100);
    const index = pair.initiator.add(other, pair.now);
    pair.initiator.connection.paths.migrate(index, pair.now);
    pair.run(10_000);
    expect(pair.initiator.names()).toEqual([`failed ${index} 0`]);
    expect(pair.initiator.active).toBe(0);
    expect(pair.initiator.connection.paths.remove(index)).toBe(true);
    expect(pair.initiator.connection.paths.stats(index)).toBeNull();
    expect(pair.initiator.connection.paths.remove(0)).toBe(false);
  });

  test.each(seeds(1, 15))('it is validated although half of all packets are lost there (seed %d)', (seed) => {
    const random = generator(seed);
    const pair = RoutedPair.after(100);
    const index = pair.initiator.add(other, pair.now, { keepInterval: 1_000 });
    pair.network = (datagram) => (datagram.to.endsWith(':2') && random() < 0.5 ? null : datagram);
    pair.run(20_000);
    expect(pair.initiator.names()).toContain(`validated ${index} 0`);
  });

  const kept = (interval = 1_000) => {
    const pair = RoutedPair.after(100);
    const index = pair.initiator.add(other, pair.now, { keepInterval: interval });
    return { pair, index };
  };
  const there = ({ initiator }: RoutedPair) => initiator.sent.filter(({ to }) => to === 'device:2');
  const back = ({ responder }: RoutedPair) => responder.sent.filter(({ to }) => to === 'client:2');

  test('it is kept warm by challenges alone', () => {
    const { pair, index } = kept();
    pair.run(10_500);
    expect(pair.initiator.active).toBe(0);
    expect(there(pair).length).toBeGreaterThanOrEqual(9);
    expect(there(pair).length).toBeLessThanOrEqual(14);
    expect(pair.initiator.connection.paths.stats(index)!.rtt).toBeGreaterThan(39);
  });

  test('it is kept warm by small challenges and responses: less than 100 bytes each way, and each eighth of 1,200', () => {
    const { pair } = kept();
    pair.run(500);
    const [asked, answered] = [there(pair).length, back(pair).length];
    pair.run(16_600);
    const expected = Array.from({ length: 16 }, (_, i) => (i % 8 === 7 ? 1_200 : 38));
    expect(sizes(there(pair)).slice(asked)).toEqual(expected);
    expect(sizes(back(pair)).slice(answered)).toEqual(expected);
    expect(pair.initiator.names()).toEqual(['validated 1 0']);
  });

  test('kept warm: the end that keeps it learns when it carries only small packets, and when it recovers', () => {
    const { pair, index } = kept();
    pair.run(500);
    pair.network = (datagram) => (datagram.to === 'device:2' && datagram.bytes.length > 1_000 ? null : datagram);
    pair.run(7_000);
    expect(pair.initiator.names()).toEqual([`validated ${index} 0`]);
    pair.run(7_000);
    expect(pair.initiator.names()).toEqual([`validated ${index} 0`, `failed ${index} 0`]);
    const before = there(pair).length;
    pair.run(5_000);
    expect(new Set(sizes(there(pair)).slice(before))).toEqual(new Set([1_200]));
    pair.network = (datagram) => datagram;
    pair.run(5_000);
    expect(pair.initiator.names().at(-1)).toBe(`validated ${index} 0`);
    expect(sizes(there(pair)).at(-1)).toBe(38);
  });

  test('a response has full size when the challenge had it, even with a Route header in front', () => {
    const pair = RoutedPair.after(100);
    const index = pair.initiator.add(other, pair.now, { route: new Uint8Array(8).fill(9) });
    pair.network = (datagram) => (datagram.to === 'device:2' ? { ...datagram, bytes: datagram.bytes.slice(9) } : datagram);
    pair.run(1_000);
    expect(pair.initiator.names()).toEqual([`validated ${index} 0`]);
    // Both ends have validated it: the response is sent alone.
    const before = back(pair).length;
    pair.initiator.connection.paths.probe(index, pair.now);
    pair.run(100);
    expect(sizes(there(pair)).at(-1)).toBe(1_200);
    expect(sizes(back(pair)).slice(before)).toEqual([1_200]);
  });

  test('a fifth is refused', () => {
    const pair = RoutedPair.after(100);
    const added = [2, 3, 4, 5].map((n) => pair.initiator.add({ ours: `client:${n}`, theirs: DEVICE }, pair.now));
    expect(added).toEqual([1, 2, 3, -1]);
  });
});

describe('recovery by path (RFC 9000 §9.4)', () => {
  test('each path keeps its own window and round trip', () => {
    const pair = new RoutedPair();
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message(200_000));
    pair.run(3_000, () => pair.initiator.connection.stats().bytesInFlight === 0);
    const there = pair.initiator.connection.paths.stats(0)!;
    const index = pair.initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now);
    pair.initiator.connection.paths.keep(0, 0, pair.now);
    pair.run(500);
    pair.initiator.connection.paths.migrate(index, pair.now);
    pair.run(30);
    expect(pair.initiator.connection.paths.stats(index)!.congestionWindow).toBeLessThan(there.congestionWindow);
    expect(pair.initiator.connection.stats().packetSize).toBe(1_200);
    pair.run(500);
    expect(pair.initiator.connection.paths.stats(0)).toMatchObject({ rtt: there.rtt, minimumRtt: there.minimumRtt });
    pair.initiator.connection.paths.migrate(0, pair.now);
    pair.run(1);
    expect(pair.initiator.connection.stats().rtt).toBeCloseTo(there.rtt, 0);
  });

  test('acknowledgements over a fast path declare nothing lost on a slow one', () => {
    const pair = new RoutedPair({ delay: 200 });
    pair.run(500);
    const index = pair.initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now, { keepInterval: 50 });
    pair.run(2_000);
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message(100_000));
    pair.network = (datagram, end) => {
      if (end !== pair.initiator || datagram.to !== 'device:2') return datagram;
      pair.inject(datagram, pair.responder);
      return null;
    };
    pair.run(5_000);
    expect(pair.initiator.connection.paths.stats(index)!.packetsSent).toBeGreaterThan(20);
    expect(pair.initiator.connection.stats().packetsLost).toBe(0);
  });
});

describe('a path stops answering', () => {
  const dead = (pair: RoutedPair, which: (datagram: Carried) => boolean) => {
    pair.network = (datagram) => (which(datagram) ? null : datagram);
  };
  const warm = (core?: Core) => {
    const pair = new RoutedPair(core === undefined ? {} : { core });
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(300);
    pair.initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now, { keepInterval: 5_000 });
    pair.run(1_000);
    return { pair, stream };
  };

  test.each([
    ['both ways', () => true],
    ['towards the device', ({ to }: Carried) => to === DEVICE],
    ['towards the client', ({ to }: Carried) => to === CLIENT],
  ])('%s: the client migrates to the warm one within 3 s, whichever end sends', (_, which) => {
    for (const sender of ['initiator', 'responder'] as const) {
      const { pair, stream } = warm();
      dead(pair, (datagram) => !datagram.to.endsWith(':2') && which(datagram));
      const from = pair.now;
      pair[sender].connection.streams.write(stream, message(20_000));
      expect(pair.run(3_000, () => pair.initiator.active === 1)).toBe(true);
      expect(pair.initiator.names()).toContain(`changed 1 ${PathReason.FAILED_OVER}`);
      expect(pair.now - from).toBeLessThan(3_000);
      const other = sender === 'initiator' ? pair.responder : pair.initiator;
      pair.run(2_000);
      const target = new Uint8Array(30_000);
      expect(other.connection.streams.read(stream, target)).toBe(sender === 'initiator' ? 20_100 : 20_000);
      expect(pair.responder.active).toBe(pair.responder.indexOf({ ours: 'device:2', theirs: 'client:2' }));
    }
  });

  test('and a warm one with it for a while: the device keeps that path, and the client migrates there on request', () => {
    const { pair, stream } = warm();
    dead(pair, () => true);
    pair.responder.connection.streams.write(stream, message(20_000));
    pair.initiator.connection.streams.write(stream, message(20_000));
    pair.run(6_000);
    expect([pair.initiator, pair.responder].map((end) => end.names().filter((name) => name.endsWith(' 1')))).toEqual([[], []]);
    dead(pair, ({ from, to }) => !from.endsWith(':2') && !to.endsWith(':2'));
    for (const path of [0, 1]) pair.initiator.connection.paths.probe(path, pair.now);
    expect(pair.run(1_000, () => pair.initiator.active === 1)).toBe(true);
    expect(pair.run(1_000, () => pair.responder.ways[pair.responder.active]?.theirs === 'client:2')).toBe(true);
  });

  const silentFor = (ms: number, isChallenged: boolean) => {
    const pair = new RoutedPair({ delay: 1 });
    const stream = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(stream, message());
    pair.run(300);
    pair.initiator.add({ ours: 'client:2', theirs: 'device:2' }, pair.now, { keepInterval: 25_000 });
    pair.run(1_000);
    dead(pair, () => true);
    pair.initiator.connection.streams.write(stream, message(20_000));
    pair.run(ms);
    dead(pair, ({ to }) => !to.endsWith(':2'));
    const from = pair.now;
    const { responder } = pair;
    if (isChallenged) responder.connection.paths.probe(responder.indexOf({ ours: 'device:2', theirs: 'client:2' }), pair.now);
    pair.run(30_000, () => pair.initiator.active === 1);
    return pair.now - from;
  };

  test('and a warm one with it until the device challenges there: the client migrates, however far its own check is', () => {
    const times = Array.from({ length: 40 }, (_, i) => silentFor(100 + 3 * i, true));
    expect(Math.max(...times)).toBeLessThan(100);
  });

  test('and a warm one with it for a while: the client asks both again every 3 s, and takes the one that answers', () => {
    for (const ms of [200, 500, 1_000, 4_000, 15_000]) expect(silentFor(ms, false), `${ms} ms`).toBeLessThan(3_200);
  });

  test('challenging a warm path again restarts its timeout', () => {
    const { pair } = warm();
    dead(pair, () => true);
    pair.initiator.connection.paths.probe(1, pair.now);
    pair.run(2_900);
    pair.delay = 100;
    pair.network = (datagram) => datagram;
    pair.initiator.connection.paths.probe(1, pair.now);
    pair.run(3_000);
    expect(pair.initiator.names()).not.toContain('failed 1 0');
  });

  test('the only path can be challenged, which leaves nothing in memory', () => {
    const pair = RoutedPair.after(100);
    const free = pair.core.stats().freeChunks;
    for (const end of [pair.initiator, pair.responder]) expect(end.connection.paths.probe(0, pair.now)).toBe(true);
    pair.run(1_000);
    const asked = [pair.initiator, pair.responder].map(({ sent }) => sent.filter(({ bytes }) => bytes.length === 1_200).length);
    expect(asked).toEqual([2, 2]);
    expect(pair.core.stats().freeChunks).toBe(free);
  });

  test('and a warm one with it: the client migrates to the one that answers', () => {
    const { pair, stream } = warm();
    pair.initiator.add({ ours: 'client:3', theirs: 'device:3' }, pair.now, { keepInterval: 5_000 });
    pair.run(1_000);
    dead(pair, ({ from, to }) => !from.endsWith(':3') && !to.endsWith(':3'));
    pair.initiator.connection.streams.write(stream, message(20_000));
    pair.run(5_000);
    const changes = pair.initiator.names().filter((name) => name.startsWith('changed'));
    expect(changes).toEqual([`changed 2 ${PathReason.FAILED_OVER}`]);
  });

  test('and a warm one carries only small packets: the client stays, or migrates to one that carries large ones', () => {
    for (const hasThird of [false, true]) {
      const { pair, stream } = warm();
      if (hasThird) pair.initiator.add({ ours: 'client:3', theirs: 'device:3' }, pair.now, { keepInterval: 5_000 });
      pair.run(6_000);
      dead(
        pair,
        ({ from, to, bytes }) => !from.endsWith(':3') && !to.endsWith(':3') && (to === DEVICE || to === CLIENT || bytes.length > 1_000),
      );
      pair.initiator.connection.streams.write(stream, message(20_000));
      pair.run(5_000);
      const changes = pair.initiator.names().filter((name) => name.startsWith('changed'));
      expect(changes).toEqual(hasThird ? [`changed 2 ${PathReason.FAILED_OVER}`] : []);
    }
  });

  test('during a small challenge of a warm one: its response does not count as full-size', () => {
    const { pair, stream } = warm();
    const held: Carried[] = [];
    // Small responses are held back, so that the end that keeps the path is still challenging when the check begins.
    pair.network = (datagram) => {
      if (datagram.to === 'client:2') held.push(datagram);
      return datagram.to === 'device:2' && datagram.bytes.length < 100 ? datagram : null;
    };
    pair.run(4_000);
    pair.initiator.connection.streams.write(stream, message(20_000));
    const asked = pair.initiator.sent.length;
    const isChecked = () => pair.initiator.sent.slice(asked).some(({ to, bytes }) => to === 'device:2' && bytes.length === 1_200);
    expect(pair.run(3_000, isChecked)).toBe(true);
    expect(new Set(sizes(held))).toEqual(new Set([38]));
    for (const answer of held.slice(-3)) expect(pair.inject(answer, pair.initiator)).toBe(true);
    pair.run(5_000);
    expect(pair.initiator.active).toBe(0);
    expect(pair.initiator.names()).toContain('failed 1 0');
  });

  test('but not one with high loss only: the client does not migrate', () => {
    const { pair, stream } = warm();
    let count = 0;
    pair.network = (datagram) => (datagram.to === DEVICE && count++ < 5 ? null : datagram);
    pair.initiator.connection.streams.write(stream, message(1_000));
    pair.run(10_000);
    expect(pair.initiator.names().filter((name) => name.startsWith('changed'))).toEqual([]);
    expect(pair.initiator.active).toBe(0);
  });

  test('the end reports the second probe timeout and each further one while nothing arrives', () => {
    const pair = RoutedPair.after(100);
    const suspicions = () => pair.initiator.reported.filter(({ kind }) => kind === EventKind.PATH_SUSPECTED).length;
    let lost = 0;
    pair.network = (datagram) => (datagram.to === DEVICE && lost++ < 1 ? null : datagram);
    pair.initiator.connection.ping();
    pair.run(5_000);
    expect([lost > 1, suspicions()]).toEqual([true, 0]);
    dead(pair, () => true);
    pair.initiator.connection.ping();
    pair.run(5_000);
    const count = suspicions();
    expect(count).toBeGreaterThanOrEqual(2);
    expect(count).toBeLessThan(10);
    dead(pair, () => false);
    pair.run(20_000);
    const last = suspicions();
    pair.initiator.connection.ping();
    pair.run(20_000);
    expect(suspicions()).toBe(last);
  });

  test('without another path nothing is challenged', () => {
    const pair = RoutedPair.after(100);
    const free = pair.core.stats().freeChunks;
    dead(pair, () => true);
    pair.initiator.connection.ping();
    pair.run(10_000);
    expect(pair.core.stats().freeChunks).toBeGreaterThan(free - 8);
    expect(pair.initiator.sent.filter(({ bytes }) => bytes.length === 1_200)).toEqual([]);
  });
});
