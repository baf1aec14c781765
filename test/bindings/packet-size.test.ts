/**
 * Path MTU discovery (DPLPMTUD), and the fall of the packet size when the path carries less (RFC 8899,
 * docs/transport.md §5).
 */
import { describe, expect, test } from 'vitest';
import { Core, type CoreConnectionOptions, EventKind } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { Line, PARAMETERS, Pair, type PairOptions } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const BASE = 1_200;
const ETHERNET = { packetCeiling: 1_452 } as const;
/**
 * Within this many ms an accidental fall is undone at a round trip of 20 ms, rather than after the rest of 30 s. After
 * a probe timeout of 85 ms the first probe counts as lost; where the path, which loses in both directions, also loses
 * the acknowledgements of the second, the timeout doubles each time. Three doublings are 1,275 ms; four happen once in
 * 10,000 transfers.
 */
const BACK_AFTER = 1_300;

/** A pair in which packets above `mtu` are dropped, with the initiator's packets by size. */
class Narrow {
  mtu = Number.POSITIVE_INFINITY;
  readonly pair: Pair;
  /** Sizes of the initiator's packets above the base size, in order, with the time of each. */
  readonly large: { size: number; at: number }[] = [];
  readonly reader: Reader;
  #writers: Writer[] = [];

  constructor(initiator: Partial<CoreConnectionOptions>, options: PairOptions = {}) {
    this.pair = new Pair({ ...options, initiator: { congestion: 'newreno', ...initiator } });
    this.reader = new Reader(this.pair.responder);
    this.pair.initiator.onEvent = (event) => {
      for (const writer of this.#writers) writer.on(event);
    };
    this.pair.responder.onEvent = (event) => this.reader.on(event);
    this.pair.intercept = (datagram, from) => {
      if (from === this.pair.initiator && datagram.length > BASE) this.large.push({ size: datagram.length, at: this.pair.now });
      return datagram.length > this.mtu ? null : datagram;
    };
  }

  /** Sends `total` bytes over a new stream; true when all arrived unchanged within `limit` ms. */
  transfer(total: number, limit = 60_000): boolean {
    const id = this.begin(total);
    return this.pair.run(limit, () => this.reader.ended.has(id)) && this.reader.wrong === 0 && this.reader.lengths.get(id) === total;
  }

  begin(total: number): number {
    const id = this.pair.initiator.connection.streams.open();
    this.#writers.push(new Writer(this.pair.initiator, id, total));
    return id;
  }

  get stats() {
    return this.pair.initiator.connection.stats();
  }

  /** Different sizes above the base, in the order of their first packet. */
  get sizes(): number[] {
    return [...new Set(this.large.map(({ size }) => size))];
  }
}

describe('without path MTU discovery', () => {
  test.each([1_200, 1_452, 9_000, 65_000])('packets have the configured %d bytes', (packetSize) => {
    const core = Core.create({ maxPacketSize: 65_000 });
    const narrow = new Narrow({ packetSize }, { core, parameters: { maxUdpPayload: 65_000 } });
    narrow.pair.initiator.record = true;
    expect(narrow.transfer(400_000)).toBe(true);
    expect(Math.max(...narrow.pair.initiator.sent.map(({ length }) => length))).toBe(packetSize);
  });

  test("packets never exceed the peer's limit", () => {
    const narrow = new Narrow({}, { parameters: { maxUdpPayload: 600 } });
    narrow.pair.initiator.record = true;
    expect(narrow.transfer(20_000)).toBe(true);
    expect(Math.max(...narrow.pair.initiator.sent.map(({ length }) => length))).toBe(600);
  });
});

describe('path MTU discovery', () => {
  describe.each([0, 0.05])('climbs the table under bulk, loss %d', (loss) => {
    const climbs = (seed: number): void => {
      const narrow = new Narrow({ ...ETHERNET, congestion: 'bbr' }, { seed, link: { loss } });
      expect(narrow.transfer(2_000_000)).toBe(true);
      expect(narrow.stats.packetSize).toBe(1_452);
      expect(narrow.sizes).toEqual(expect.arrayContaining([1_232, 1_392, 1_452]));
      expect(Math.max(...narrow.sizes)).toBe(1_452);
      narrow.pair.free();
    };
    test.each(seeds(1, 1))('seed %i', climbs);
    test.each(seeds(2, 40))('seed %i', { tags: ['slow'] }, climbs);
  });

  test('tries one size at a time and carries data only in a size that was acknowledged', () => {
    const narrow = new Narrow(ETHERNET);
    const firsts = new Map<number, number>();
    narrow.transfer(600_000);
    for (const { size, at } of narrow.large) if (!firsts.has(size)) firsts.set(size, at);
    for (const size of [1_232, 1_392, 1_452]) {
      const before = narrow.large.filter(({ size: other, at }) => other > size && at < (firsts.get(size) as number));
      expect(before, `before ${size}`).toEqual([]);
      // The probe, and then nothing of its size for a round trip.
      const second = narrow.large.find(({ size: other, at }) => other === size && at > (firsts.get(size) as number));
      expect((second?.at ?? Number.POSITIVE_INFINITY) - (firsts.get(size) as number)).toBeGreaterThanOrEqual(20);
    }
  });

  test.each([65_000, 9_000, 1_300])(
    'continues up to a ceiling of %d bytes, and ends with the ceiling itself',
    { tags: ['slow'] },
    (packetCeiling) => {
      const core = Core.create({ maxPacketSize: 65_000 });
      const parameters = { ...PARAMETERS, maxUdpPayload: 65_000, initialMaxStreamData: 3_000_000, initialMaxData: 8_000_000 };
      const narrow = new Narrow({ packetCeiling }, { core, parameters });
      expect(narrow.transfer(200 * packetCeiling)).toBe(true);
      expect(narrow.stats.packetSize).toBe(packetCeiling);
      expect(Math.max(...narrow.sizes)).toBe(packetCeiling);
    },
  );

  test.each([
    ["the peer's limit", { parameters: { maxUdpPayload: 1_400 } }],
    ['our packet slots', { core: Core.create({ maxPacketSize: 1_400 }) }],
  ])('never exceeds %s', (_name, options) => {
    const narrow = new Narrow({ packetCeiling: 65_000 }, options);
    expect(narrow.transfer(600_000)).toBe(true);
    expect(narrow.stats.packetSize).toBe(1_400);
    expect(Math.max(...narrow.sizes)).toBe(1_400);
  });

  test('counts the Route header', { tags: ['slow'] }, () => {
    const narrow = new Narrow(ETHERNET);
    narrow.pair.initiator.connection.paths.setRoute(new Uint8Array(8).fill(7));
    const intercept = narrow.pair.intercept;
    narrow.pair.intercept = (datagram, from) => {
      const passed = intercept(datagram, from);
      return passed !== null && from === narrow.pair.initiator ? passed.subarray(9) : passed;
    };
    expect(narrow.transfer(600_000)).toBe(true);
    expect(Math.max(...narrow.sizes)).toBe(1_452);
    expect(narrow.sizes).toEqual(expect.arrayContaining([1_232, 1_392]));
  });

  test('does not begin for requests, and leaves nothing behind', { tags: ['slow'] }, () => {
    const core = Core.create();
    const free = core.stats().freeChunks;
    const narrow = new Narrow(ETHERNET, { core });
    narrow.pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
    };
    for (let i = 0; i < 200; i++) {
      narrow.pair.initiator.connection.messages.send(content(i, 0, 3_000));
      narrow.pair.run(50);
    }
    expect(narrow.large).toEqual([]);
    narrow.pair.run(30_000);
    expect(core.stats().freeChunks).toBe(free);
  });

  test('leaves no chunk behind when it has found the size', { tags: ['slow'] }, () => {
    const core = Core.create();
    const free = core.stats().freeChunks;
    const narrow = new Narrow(ETHERNET, { core });
    narrow.transfer(600_000);
    narrow.pair.run(30_000);
    expect(narrow.stats.packetSize).toBe(1_452);
    expect(core.stats().freeChunks).toBe(free);
  });

  test('ends at what a link of MTU 1,280 carries, after three probes at growing intervals, and no window shrinks', {
    tags: ['slow'],
  }, () => {
    const narrow = new Narrow(ETHERNET);
    narrow.mtu = 1_232;
    let window = 0;
    const id = narrow.begin(6_000_000);
    const isWhole = narrow.pair.run(60_000, () => {
      expect(narrow.stats.congestionWindow).toBeGreaterThanOrEqual(window);
      window = narrow.stats.congestionWindow;
      return narrow.reader.ended.has(id);
    });
    expect(isWhole).toBe(true);
    expect(narrow.stats).toMatchObject({ packetSize: 1_232, packetsLost: 0 });
    const probes = narrow.large.filter(({ size }) => size > 1_232);
    expect(probes.map(({ size }) => size)).toEqual([1_392, 1_392, 1_392]);
    const [first, second, third] = probes.map(({ at }) => at) as [number, number, number];
    expect(second - first).toBeGreaterThan(40);
    expect(third - second).toBeGreaterThan(second - first);
  });

  test('resumes after PMTU_RAISE_TIMER, during the transfer', { tags: ['slow'] }, () => {
    const line = new Line(75_000, 50_000);
    const narrow = new Narrow({ ...ETHERNET, congestion: 'cubic' }, { line, link: { delay: 5 } });
    narrow.mtu = 1_232;
    narrow.begin(30_000_000);
    narrow.pair.run(30_000);
    expect(narrow.stats.packetSize).toBe(1_232);
    narrow.mtu = Number.POSITIVE_INFINITY;
    const failed = narrow.large.filter(({ size }) => size > 1_232);
    expect(failed.length).toBe(3);
    narrow.pair.run(560_000);
    expect(narrow.stats.packetSize).toBe(1_232);
    narrow.pair.run(60_000);
    expect(narrow.stats.packetSize).toBe(1_452);
    const again = narrow.large.filter(({ size }) => size > 1_232)[3];
    expect((again?.at ?? 0) - (failed[2]?.at ?? 0)).toBeGreaterThan(599_900);
  });
});

describe('black hole', () => {
  /** A transfer that has reached 1,452 bytes and continues. */
  function climbed(
    total: number,
    initiator: Partial<CoreConnectionOptions> = {},
    options: PairOptions = {},
  ): { narrow: Narrow; id: number } {
    const narrow = new Narrow({ ...ETHERNET, ...initiator }, options);
    const id = narrow.begin(total);
    expect(narrow.pair.run(20_000, () => narrow.stats.packetSize === 1_452)).toBe(true);
    return { narrow, id };
  }

  test.each(['newreno', 'cubic', 'bbr'] as const)(
    'in a transfer of %s: base size after one timeout, and the window stays',
    (congestion) => {
      const { narrow, id } = climbed(3_000_000, { congestion });
      narrow.pair.run(200);
      const { congestionWindow } = narrow.stats;
      const start = narrow.pair.now;
      narrow.mtu = 1_400;
      expect(narrow.pair.run(5_000, () => narrow.stats.packetSize === BASE)).toBe(true);
      // A probe timeout of about 20 ms + 4 × variation + 25 ms after the last packet, and the round trip of the probe.
      expect(narrow.pair.now - start).toBeLessThan(200);
      expect(narrow.stats.packetsLost).toBeGreaterThanOrEqual(3);
      if (congestion !== 'bbr') expect(narrow.stats.congestionWindow).toBeGreaterThanOrEqual(congestionWindow);
      else expect(narrow.stats.congestionWindow).toBeGreaterThanOrEqual(congestionWindow / 2);
      const fell = narrow.pair.now;
      expect(narrow.pair.run(10_000, () => narrow.reader.ended.has(id))).toBe(true);
      expect(narrow.reader.wrong).toBe(0);
      // Two probes confirm it while there is data to send.
      expect(narrow.transfer(100_000)).toBe(true);
      expect(narrow.large.filter(({ at }) => at >= fell).map(({ size }) => size)).toEqual([1_452, 1_452]);
    },
  );

  test('found by the third large packet, however far apart they are', () => {
    const { narrow, id } = climbed(400_000);
    narrow.pair.run(10_000, () => narrow.reader.ended.has(id));
    let messages = 0;
    narrow.pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE && connection.messages.read(stream).length === 1_400) messages++;
    };
    narrow.pair.run(1_000);
    narrow.mtu = BASE;
    const before = narrow.large.length;
    for (let i = 0; i < 6; i++) {
      narrow.pair.initiator.connection.messages.send(content(i, 0, 1_400));
      narrow.pair.run(2_000);
      expect(messages).toBe(i + 1);
      expect(narrow.stats.packetSize === BASE).toBe(i >= 2);
    }
    // Three messages, and two probes of the previous size once more was sent.
    expect(narrow.large.slice(before + 3).map(({ size }) => size)).toEqual([1_452, 1_452]);
    expect(narrow.stats.packetSize).toBe(BASE);
  });

  // At 10 % loss one transfer in 40 falls; short bursts on a worse path do so often.
  const lossy = [
    { loss: 0.1, bursts: 1, bytes: 1_500_000 },
    { loss: 0.2, bursts: 50, bytes: 15_000 },
  ];

  function fallsAndRises(path: (typeof lossy)[number], tried: readonly number[]): void {
    let falls = 0;
    for (const seed of tried) {
      const { narrow, id } = climbed(400_000, { congestion: 'bbr' }, { seed });
      const random = generator(seed);
      // The fate of large packets that carried data, and of probes of the previous size, which are sent while packets
      // are small.
      const data: { isLost: boolean; at: number }[] = [];
      let probes: boolean[] = [];
      narrow.pair.intercept = (datagram, from) => {
        const isLost = random() < path.loss;
        if (from === narrow.pair.initiator && datagram.length > BASE) {
          if (narrow.stats.packetSize > BASE) data.push({ isLost, at: narrow.pair.now });
          else probes.push(isLost);
        }
        return isLost ? null : datagram;
      };
      let fell = 0;
      const look = () => {
        if (narrow.stats.packetSize === 1_452) {
          fell = 0;
          probes = [];
        } else if (fell === 0) {
          fell = narrow.pair.now;
          falls++;
          // Packets of the last 100 ms may not have been acknowledged yet.
          const run = data.findLastIndex(({ isLost }, n) => isLost && data[n - 1]?.isLost && data[n - 2]?.isLost);
          expect(run, `seed ${seed}`).toBeGreaterThanOrEqual(2);
          for (const { at } of data.slice(run + 1)) expect(fell - at, `seed ${seed}`).toBeLessThan(100);
        } else if (!(probes[0] && probes[1])) expect(narrow.pair.now - fell, `seed ${seed}`).toBeLessThan(BACK_AFTER);
      };
      narrow.pair.run(60_000, () => narrow.reader.ended.has(id));
      for (let i = 0; i < path.bursts; i++) {
        const burst = narrow.begin(path.bytes);
        const isWhole = narrow.pair.run(60_000, () => {
          look();
          return narrow.reader.ended.has(burst);
        });
        expect(isWhole, `seed ${seed}`).toBe(true);
      }
      narrow.pair.free();
    }
    if (path.bursts > 1) expect(falls).toBeGreaterThan(0);
  }

  describe('is assumed under random loss only after three large packets lost in a row, and undone soon', () => {
    test.each(lossy)('$loss, $bursts bursts', { tags: ['slow'] }, (path) => fallsAndRises(path, seeds(1, 2)));
    test.each(lossy)('$loss, $bursts bursts, more seeds', { tags: ['slow'] }, (path) => fallsAndRises(path, seeds(3, 40)));
  });

  /**
   * A transfer that pauses once; the last three packets before the pause are lost, and so are `probes` probes of their
   * size.
   */
  function fallenByChance(congestion: 'newreno' | 'cubic' | 'bbr', probes: number): Narrow {
    const options = { core: Core.create({ maxPacketSize: 2_000 }), parameters: { maxUdpPayload: 2_000 } };
    const { narrow, id } = climbed(400_000, { congestion }, options);
    narrow.pair.run(20_000, () => narrow.reader.ended.has(id));
    narrow.pair.run(500);
    const burst = 20;
    const first = narrow.large.length;
    const pass = narrow.pair.intercept;
    narrow.pair.intercept = (datagram, from) => {
      const passed = pass(datagram, from);
      const n = narrow.large.length - first;
      const isLarge = from === narrow.pair.initiator && datagram.length > BASE;
      return isLarge && n > burst && n <= burst + 3 + probes ? null : passed;
    };
    narrow.begin((burst + 3) * 1_410);
    narrow.pair.run(1_000, () => narrow.stats.packetSize === BASE);
    expect(narrow.stats.packetSize).toBe(BASE);
    // With the first probe.
    expect(narrow.large.length - first).toBe(burst + 4);
    return narrow;
  }

  test.each(['newreno', 'cubic', 'bbr'] as const)(
    'of %s, undone: its losses count as one, and larger sizes wait for 30 s',
    { tags: ['slow'] },
    (congestion) => {
      const narrow = fallenByChance(congestion, 0);
      const { congestionWindow } = narrow.stats;
      const fell = narrow.pair.now;
      expect(narrow.pair.run(1_000, () => narrow.stats.packetSize === 1_452)).toBe(true);
      expect(narrow.pair.now - fell).toBeLessThan(30);
      if (congestion !== 'bbr') expect(narrow.stats.congestionWindow).toBeLessThan(0.8 * congestionWindow);
      narrow.pair.initiator.connection.paths.allowPacketSize(2_000);
      expect(narrow.transfer(400_000)).toBe(true);
      expect(Math.max(...narrow.sizes)).toBe(1_452);
      narrow.pair.run(30_000);
      expect(narrow.transfer(400_000)).toBe(true);
      expect(Math.max(...narrow.sizes)).toBe(2_000);
    },
  );

  test('undone by the second probe when the first is lost, too', { tags: ['slow'] }, () => {
    const narrow = fallenByChance('cubic', 1);
    const fell = narrow.pair.now;
    narrow.begin(4_000_000);
    expect(narrow.pair.run(1_000, () => narrow.stats.packetSize === 1_452)).toBe(true);
    expect(narrow.pair.now - fell).toBeLessThan(BACK_AFTER);
  });

  test('that lets probes through and swallows data costs at most 8 probes in 30 s', { tags: ['slow'] }, () => {
    const { narrow } = climbed(30_000_000, { congestion: 'cubic' }, { line: new Line(1_000_000, 10_000) });
    const probes: number[] = [];
    narrow.pair.intercept = (datagram, from) => {
      if (from !== narrow.pair.initiator || datagram.length <= BASE) return datagram;
      if (narrow.stats.packetSize > BASE) return null;
      probes.push(narrow.pair.now);
      return datagram;
    };
    const start = narrow.pair.now;
    narrow.pair.run(20_000);
    expect(probes.length).toBe(4);
    expect((probes[3] as number) - start).toBeLessThan(5_000);
    narrow.pair.run(40_000);
    for (const at of probes) expect(probes.filter((other) => other >= at && other < at + 30_000).length).toBeLessThanOrEqual(8);
  });

  test('does not excuse the loss of small packets: an outage is congestion', () => {
    const { narrow, id } = climbed(3_000_000);
    narrow.pair.run(200);
    const { congestionWindow } = narrow.stats;
    narrow.mtu = 0;
    narrow.pair.run(1_000);
    narrow.mtu = Number.POSITIVE_INFINITY;
    narrow.pair.run(5_000, () => narrow.stats.packetsLost > 0);
    expect(narrow.stats.congestionWindow).toBeLessThan(congestionWindow / 2);
    const over = narrow.pair.now;
    expect(narrow.pair.run(5_000, () => narrow.stats.packetSize === 1_452)).toBe(true);
    expect(narrow.pair.now - over).toBeLessThan(2_000);
    expect(narrow.pair.run(60_000, () => narrow.reader.ended.has(id))).toBe(true);
  });

  test('over: path MTU discovery resumes after a wait', { tags: ['slow'] }, () => {
    const { narrow } = climbed(30_000_000, { congestion: 'cubic' }, { line: new Line(1_000_000, 100_000) });
    narrow.mtu = BASE;
    expect(narrow.pair.run(5_000, () => narrow.stats.packetSize === BASE)).toBe(true);
    // Two probes confirm it; the first has been sent.
    const sent = narrow.large.length - 1;
    narrow.pair.run(5_000);
    expect(narrow.large.length).toBe(sent + 2);
    const confirmed = (narrow.large[sent + 1] as { at: number }).at;
    narrow.mtu = Number.POSITIVE_INFINITY;
    expect(narrow.pair.run(60_000, () => narrow.stats.packetSize === 1_452)).toBe(true);
    expect((narrow.large[sent + 2] as { at: number }).at - confirmed).toBeGreaterThanOrEqual(29_999);
    expect(narrow.pair.now - confirmed).toBeLessThan(35_000);
  });

  test('datagrams that no longer fit are dropped and counted, smaller ones arrive', () => {
    const { narrow } = climbed(400_000, {}, { parameters: { maxDatagram: 1_400 } });
    const { connection } = narrow.pair.initiator;
    const arrived: number[] = [];
    narrow.pair.responder.onEvent = (event, { connection: to }) => {
      narrow.reader.on(event);
      if (event.kind === EventKind.DATAGRAM) arrived.push(to.messages.readDatagram().length);
    };
    narrow.pair.run(2_000);
    expect(connection.messages.sendDatagram(content(1, 0, 1_400))).toBe(true);
    narrow.pair.run(100);
    expect(arrived).toEqual([1_400]);
    // One waits while the connection migrates to a path of unknown MTU.
    expect(connection.messages.sendDatagram(content(1, 0, 1_400))).toBe(true);
    expect(connection.messages.sendDatagram(content(2, 0, 1_000))).toBe(true);
    connection.paths.resetPacketSize(1_452);
    narrow.pair.run(100);
    expect(arrived).toEqual([1_400, 1_000]);
    expect(narrow.stats.datagramsDropped).toBe(1);
    expect(connection.messages.sendDatagram(content(3, 0, 1_300))).toBe(false);
  });
});

describe('another path', () => {
  test('begins with the base size and has its own ceiling', () => {
    const narrow = new Narrow(ETHERNET);
    expect(narrow.transfer(400_000)).toBe(true);
    narrow.pair.initiator.connection.paths.resetPacketSize(1_300);
    expect(narrow.stats.packetSize).toBe(BASE);
    const before = narrow.large.length;
    expect(narrow.transfer(900_000)).toBe(true);
    expect(narrow.stats.packetSize).toBe(1_300);
    const sizes = narrow.large.slice(before).map(({ size }) => size);
    expect([...new Set(sizes)].slice(0, 2)).toEqual([1_232, 1_300]);
    expect(Math.max(...sizes)).toBe(1_300);
  });

  test('ignores a probe that was in flight on the old one', () => {
    const narrow = new Narrow(ETHERNET, { link: { delay: 50 } });
    narrow.begin(400_000);
    narrow.pair.run(5_000, () => narrow.large.length > 0);
    narrow.pair.initiator.connection.paths.resetPacketSize(BASE);
    narrow.pair.run(5_000);
    expect(narrow.stats.packetSize).toBe(BASE);
    expect(narrow.large.length).toBe(1);
  });
});
