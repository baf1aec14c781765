/** Mappings of a NAT compared with a model that scans the whole history at each query; their ports; claims. */
import { describe, expect, it } from 'vitest';
import type { SocketAddress } from '../../protocol/control/index.ts';
import { type MappingRules, Mappings } from '../../testing/mappings.ts';
import { PortAllocator } from '../../testing/ports.ts';
import { Random } from '../../testing/random.ts';
import { seeds } from '../support/tiered.ts';

const TIMES = { timeout: 30_000, streamTimeout: 120_000 };
const BOX = '198.51.100.7';
const dependences = ['address', 'address-port'] as const;
const rules: MappingRules[] = (['independent', ...dependences] as const).flatMap((mapping) =>
  (['none', ...dependences] as const).flatMap((filter) =>
    (['preserve', 'sequential', 'random'] as const).map((ports) => ({ mapping, filter, ports, stride: 1, ...TIMES })),
  ),
);

function at(address: string, port: number): SocketAddress {
  return { address, port };
}

const insides = [at('192.168.1.5', 4000), at('192.168.1.5', 4001), at('192.168.1.6', 4000), at('2001:db8::5', 4000)];
const remotes = [at('203.0.113.1', 1), at('203.0.113.1', 2), at('203.0.113.2', 1)];

interface Passed {
  /** Number of the mapping. */
  mapping: number;
  inside: SocketAddress;
  outside: SocketAddress;
  remote: SocketAddress;
  isIn: boolean;
  time: number;
}

/** RFC 4787 §4.1 and §5, and the timeouts of Linux, derived from the list of all datagrams that passed. */
class Model {
  readonly #rules: MappingRules;
  readonly #passed: Passed[] = [];
  #mappings = 0;

  constructor(rules: MappingRules) {
    this.#rules = rules;
  }

  /** A datagram has passed: it belongs to the mapping of the previous one, or to a new one. */
  pass(earlier: Passed | undefined, given: Omit<Passed, 'mapping'>): void {
    this.#passed.push({ mapping: earlier?.mapping ?? ++this.#mappings, ...given });
  }

  /** The last datagram of the mapping that a datagram out has to use; undefined where it needs a new one. */
  ofFlow(inside: SocketAddress, remote: SocketAddress, now: number): Passed | undefined {
    const last = this.#passed.filter((each) => !each.isIn && this.#sharesMapping(each, { inside, remote })).at(-1);
    return last !== undefined && this.#end(last.mapping, () => true) > now ? last : undefined;
  }

  /** The last datagram of the mapping that has this address and port outside. */
  ofPort(outside: SocketAddress, now: number): Passed | undefined {
    const last = this.#passed.filter((each) => same(each.outside, outside)).at(-1);
    return last !== undefined && this.#end(last.mapping, () => true) > now ? last : undefined;
  }

  inward(remote: SocketAddress, outside: SocketAddress, now: number): SocketAddress | 'unmapped' | 'filtered' {
    const last = this.ofPort(outside, now);
    if (last === undefined) return 'unmapped';
    return this.#end(last.mapping, (other) => this.#sharesPermission(other, remote)) > now ? last.inside : 'filtered';
  }

  #sharesMapping(one: { inside: SocketAddress; remote: SocketAddress }, other: { inside: SocketAddress; remote: SocketAddress }): boolean {
    if (!same(one.inside, other.inside)) return false;
    if (this.#rules.mapping === 'independent') return true;
    return this.#rules.mapping === 'address' ? one.remote.address === other.remote.address : same(one.remote, other.remote);
  }

  #sharesPermission(one: SocketAddress, other: SocketAddress): boolean {
    if (this.#rules.filter === 'none') return true;
    return this.#rules.filter === 'address' ? one.address === other.address : same(one, other);
  }

  /** Expiry of the last permission of such remotes. */
  #end(mapping: number, concerns: (remote: SocketAddress) => boolean): number {
    const ends = remotes.filter(concerns).map((remote) => {
      const flow = this.#passed.filter((each) => each.mapping === mapping && this.#sharesPermission(each.remote, remote));
      let [since, isAnswered, end] = [0, false, 0];
      for (const { time, isIn } of flow) {
        if (time >= end) [since, isAnswered] = [time, false];
        isAnswered ||= isIn;
        end = time + (isAnswered && time - since > 2000 ? TIMES.streamTimeout : TIMES.timeout);
      }
      return end;
    });
    return Math.max(...ends);
  }
}

function same(one: SocketAddress, other: SocketAddress): boolean {
  return one.address === other.address && one.port === other.port;
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random.fraction() * from.length)]!;
}

describe('mappings', () => {
  const name = 'are those of the model: $mapping, filter $filter, ports $ports';
  it.each(rules)(name, (each) => compares(each, seeds(1, 4)));
  it.each(rules)(`${name}, with other seeds`, { tags: ['slow'] }, (each) => compares(each, seeds(5, 100)));

  function compares(each: MappingRules, of: readonly number[]): void {
    // Over all seeds: one alone need not produce each.
    const answers = new Set<string>();
    for (const seed of of) {
      const random = new Random(`mappings ${seed}`);
      const [mappings, model] = [new Mappings(each, [BOX], random.fork('own')), new Model(each)];
      const known: SocketAddress[] = [at(BOX, 9)];
      let now = 1000;
      for (let i = 0; i < 150; i++) {
        now += pick(random, [0, 1, 500, 5000, 29_999, 30_000, 119_999, 120_000]);
        const [inside, remote, outside] = [pick(random, insides), pick(random, remotes), pick(random, known.slice(-6))];
        const context = `seed ${seed}, step ${i}`;
        if (random.fraction() < 0.5) {
          const answer = model.inward(remote, outside, now);
          expect(mappings.inward(remote, outside, now), context).toEqual(answer);
          if (typeof answer !== 'string')
            model.pass(model.ofPort(outside, now), { inside: answer, outside, remote, isIn: true, time: now });
          answers.add(typeof answer === 'string' ? answer : 'passed');
        } else {
          const had = model.ofFlow(inside, remote, now);
          const given = mappings.outward(inside, remote, now)!;
          if (had !== undefined) expect(given, context).toEqual(had.outside);
          else expect(model.ofPort(given, now), context).toBeUndefined();
          model.pass(had, { inside, outside: given, remote, isIn: false, time: now });
          known.push(given);
        }
      }
    }
    expect([...answers].sort()).toEqual(each.filter === 'none' ? ['passed', 'unmapped'] : ['filtered', 'passed', 'unmapped']);
  }

  it('keep one address outside for an address inside, and use all of them in turn', () => {
    const mappings = new Mappings({ ...rules[0]!, mapping: 'address-port' }, [BOX, '198.51.100.8'], new Random('paired'));
    const outside = (inside: SocketAddress, remote: SocketAddress) => mappings.outward(inside, remote, 0)!.address;
    expect([outside(insides[0]!, remotes[0]!), outside(insides[1]!, remotes[1]!), outside(insides[2]!, remotes[0]!)]).toEqual([
      BOX,
      BOX,
      '198.51.100.8',
    ]);
    expect(outside(insides[0]!, remotes[2]!)).toBe(BOX);
  });

  it('are discarded when they expire, however many there were', { tags: ['slow'] }, () => {
    const mappings = new Mappings({ ...rules[0]!, mapping: 'address-port', ports: 'random' }, [BOX], new Random('many'));
    // More than there are ports.
    let given = 0;
    for (let i = 0; i < 80_000; i++) given += mappings.outward(insides[0]!, at('10.0.0.1', i), 10 * i) === null ? 0 : 1;
    expect([given, mappings.made]).toEqual([80_000, 80_000]);
  });

  it('are refused when no port is free', { tags: ['slow'] }, () => {
    const mappings = new Mappings({ ...rules[0]!, mapping: 'address-port', ports: 'sequential' }, [BOX], new Random('full'));
    const given = new Set(Array.from({ length: 64_512 }, (_, i) => mappings.outward(insides[0]!, at('203.0.113.1', i), 0)?.port));
    expect([given.size, given.has(undefined), Math.min(...(given as Set<number>))]).toEqual([64_512, false, 1024]);
    expect(mappings.outward(insides[1]!, remotes[0]!, 1)).toBeNull();
    expect(mappings.outward(insides[1]!, remotes[0]!, 30_000)).not.toBeNull();
  });
});

describe('a claim', () => {
  const make = (more: Partial<MappingRules> = {}) =>
    new Mappings(
      { mapping: 'independent', filter: 'address-port', ports: 'preserve', stride: 1, ...TIMES, ...more },
      [BOX],
      new Random('claim'),
    );
  const [inside, , ,] = insides as [SocketAddress, ...SocketAddress[]];
  const [station, , peer] = remotes as [SocketAddress, SocketAddress, SocketAddress];

  it('gives the flow to its source another port, and only that flow', () => {
    const mappings = make();
    expect(mappings.outward(inside, station, 0)).toEqual(at(BOX, 4000));
    expect(mappings.inward(peer, at(BOX, 4000), 10)).toBe('filtered');
    mappings.claim(peer, at(BOX, 4000), 10);
    expect(mappings.outward(inside, peer, 20)).toEqual(at(BOX, 4001));
    expect(mappings.outward(inside, station, 30)).toEqual(at(BOX, 4000));
    expect(mappings.outward(inside, at(peer.address, 99), 40)).toEqual(at(BOX, 4000));
    // The flow keeps its port while it lives, even after the claim has expired.
    for (const now of [29_000, 58_000]) expect(mappings.outward(inside, peer, now)).toEqual(at(BOX, 4001));
    expect(mappings.inward(peer, at(BOX, 4001), 58_001)).toEqual(inside);
    expect(mappings.inward(peer, at(BOX, 4000), 58_002)).toBe('unmapped');
  });

  it('precedes the first flow of a socket, too, and expires after its time', () => {
    const mappings = make();
    mappings.claim(peer, at(BOX, 4000), 0);
    expect(mappings.outward(inside, peer, 29_999)).toEqual(at(BOX, 4001));
    expect(mappings.outward(inside, station, 29_999)).toEqual(at(BOX, 4000));
    const later = make();
    later.claim(peer, at(BOX, 4000), 0);
    expect(later.outward(inside, peer, 30_000)).toEqual(at(BOX, 4000));
  });

  it('takes a port from a sequence', () => {
    const mappings = make({ mapping: 'address-port', ports: 'sequential', stride: 5 });
    const { port } = mappings.outward(inside, station, 0)!;
    const next = (port + 5) % 65_536;
    mappings.claim(peer, at(BOX, next), 1);
    expect(mappings.outward(inside, peer, 2)!.port).toBe((next + 5) % 65_536);
  });
});

describe('ports', () => {
  const first = (allocator: PortAllocator, count: number) => {
    const taken = new Set<number>();
    return Array.from({ length: count }, () => {
      const port = allocator.allocate(0, (each) => !taken.has(each))!;
      taken.add(port);
      return port;
    });
  };

  it.each([1, 2, -1, 7, -100, 1000, 32_768])('of a sequence are %i apart, and all are assigned', (stride) => {
    const given = first(new PortAllocator('sequential', stride, new Random(`stride ${stride}`)), 64_512);
    expect([new Set(given).size, Math.min(...given)]).toEqual([64_512, 1024]);
    const steps = given.slice(1, 60).map((port, i) => (port - given[i]! + 65_536) % 65_536);
    const expected = (stride + 65_536) % 65_536;
    // A step over the ports below 1,024 is a multiple.
    if (stride !== 32_768) expect(steps.filter((step) => step === expected).length).toBeGreaterThan(50);
  });

  it('of a socket are preserved, or are the next free one above, wrapping after the last', () => {
    const allocator = new PortAllocator('preserve', 1, new Random('preserve'));
    expect(allocator.allocate(5000, () => true)).toBe(5000);
    expect(allocator.allocate(5000, (port) => port > 5003)).toBe(5004);
    expect(allocator.allocate(65_535, (port) => port < 1030)).toBe(1024);
    expect(allocator.allocate(80, (port) => port !== 80)).toBe(1024);
    expect(allocator.allocate(80, () => false)).toBeNull();
  });

  it('at random are spread over all, and differ by seed', () => {
    const given = first(new PortAllocator('random', 1, new Random('a')), 10_000);
    expect(Math.min(...given)).toBeGreaterThanOrEqual(1024);
    const mean = given.reduce((sum, port) => sum + port) / given.length;
    expect(Math.abs(mean - (1024 + 65_535) / 2)).toBeLessThan(1000);
    expect(first(new PortAllocator('random', 1, new Random('a')), 10)).toEqual(given.slice(0, 10));
    expect(first(new PortAllocator('random', 1, new Random('b')), 10)).not.toEqual(given.slice(0, 10));
  });
});
