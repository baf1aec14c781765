/** Predicted ports, against NATs that assign ports in sequence while foreign flows take some. */
import { describe, expect, test } from 'vitest';
import type { NatReport } from '../../../protocol/control/index.ts';
import { classifyNat } from '../../../protocol/rendezvous/nat-class.ts';
import { predictPorts } from '../../../protocol/rendezvous/prediction.ts';
import { Random } from '../../../testing/random.ts';
import { seeds } from '../../support/tiered.ts';
import { ModelNat } from './nat-model.ts';

const sequential = (last: number, stride = 1, age = 0): NatReport => ({ mapping: 'sequential', last, stride, age });
const independent: NatReport = { mapping: 'independent' };
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
const asNumbers = (ports: readonly number[], last: number): number[] => ports.map((port) => port - last);

describe('the predicted ports of a sequential NAT, for an end with one port', () => {
  test('are the next 32, the next one first', () => {
    const ports = predictPorts(sequential(5000), { ours: independent, role: 'client', ahead: 0 });
    expect(ports).toEqual(upTo(32).map((k) => 5000 + k));
    expect(predictPorts(sequential(5000), { ours: { mapping: 'none' }, role: 'device', ahead: 0 })).toEqual(ports);
  });

  test('follow the stride, up, down and around the end of the range', () => {
    const next = (last: number, stride: number): number[] =>
      predictPorts(sequential(last, stride), { ours: independent, role: 'client', ahead: 0, count: 3 });
    expect(next(5000, 7)).toEqual([5007, 5014, 5021]);
    expect(next(5000, 65_535)).toEqual([4999, 4998, 4997]);
    expect(next(65_534, 1)).toEqual([65_535, 1024, 1025]);
    expect(next(1025, 65_534)).toEqual([65_535, 65_533, 65_531]);
    expect(next(65_535, 4096)).toEqual([5119, 9215, 13_311]);
    expect(next(1024, 32_256)).toEqual([33_280, 1024]);
  });

  test('allow for foreign flows, the likeliest first', () => {
    const numbers = (age: number, opened = 1): number[] =>
      asNumbers(predictPorts(sequential(5000, 1, age), { ours: independent, role: 'client', ahead: 0, opened }), 5000);
    expect(numbers(100).slice(0, 4)).toEqual([1, 2, 3, 4]);
    expect(
      numbers(0, 8)
        .slice(0, 8)
        .sort((a, b) => a - b),
    ).toEqual(upTo(8));
    // The fourth is the likeliest: after three other candidates, or fewer and a foreign flow.
    expect(numbers(200, 4)[0]).toBe(4);
    expect(numbers(1_000, 8).toSorted((a, b) => a - b)).toEqual(upTo(32));
    expect(numbers(20_000)[0]).toBe(1);
    expect(Math.max(...numbers(20_000))).toBeGreaterThan(60);
  });

  test('are 32 at most, and none without a complete report', () => {
    const options = { ours: independent, role: 'client' } as const;
    expect(predictPorts(sequential(5000), { ...options, count: 1_000 })).toHaveLength(32);
    expect(predictPorts({ mapping: 'random', last: 5000, stride: 1 }, options)).toEqual([]);
    expect(predictPorts({ mapping: 'sequential', stride: 1 }, options)).toEqual([]);
    expect(predictPorts({ mapping: 'sequential', last: 5000 }, options)).toEqual([]);
    expect(predictPorts(sequential(5000, 0), options)).toEqual([]);
    for (const mapping of ['random', 'unknown'] as const)
      expect(predictPorts(sequential(5000), { ours: { mapping }, role: 'device' })).toEqual([]);
  });

  test('are valid ports, whatever a peer reports', () => {
    for (const last of [0, 1, 1023, 65_535]) {
      for (const stride of [1, 32_767, 32_768, 65_535]) {
        for (const age of [0, 1e9, 2 ** 32]) {
          const ports = predictPorts(sequential(last, stride, age), { ours: independent, role: 'client', opened: 1e9 });
          expect(ports.length).toBeGreaterThan(0);
          expect(ports.every((port) => Number.isInteger(port) && port >= 1024 && port <= 65_535)).toBe(true);
        }
      }
    }
  });
});

describe('the predicted ports of two sequential NATs', () => {
  const client = predictPorts(sequential(5000), { ours: sequential(9000), role: 'client' });
  const device = predictPorts(sequential(9000), { ours: sequential(5000), role: 'device' });
  const sums = asNumbers(device, 9000).map((number, j) => number - (j + 1));

  test('are the next 32 for the client; for the device each has a sum of shifts, the likely ones first, and 15 of them twice', () => {
    expect(asNumbers(client, 5000)).toEqual(upTo(32));
    expect(sums).toEqual([...upTo(15), ...upTo(15), 1, 2].map((sum) => sum - 1));
  });

  test('are all different, so that each packet makes a mapping', () => {
    expect(new Set(device).size).toBe(32);
  });

  test('have sums up to 31 when samples are old', () => {
    const far = predictPorts(sequential(9000, 1, 1_000), { ours: sequential(5000, 1, 1_000), role: 'device' });
    expect(asNumbers(far, 9000)).toEqual(upTo(32).map((j) => 2 * j - 1));
  });
});

/**
 * Model of a round without a network: which packets leave from where, and whether two of them match each other's
 * addresses.
 */
interface Round {
  readonly seed: string;
  readonly foreign: number;
  /** Range of the age of a sample when the first packet leaves, ms. */
  readonly ages: readonly [number, number];
  /** Time between packets, ms. */
  readonly pace: number;
  /** Share of packets that are lost before they reach the NAT. */
  readonly loss: number;
  readonly strides: readonly [number, number];
  /** Number of mappings that each end makes before, for other candidates. */
  readonly others: number;
}

const usual: Round = { seed: '', foreign: 5, ages: [50, 400], pace: 10, loss: 0, strides: [1, 1], others: 0 };

class End {
  readonly nat: ModelNat;
  readonly report: NatReport;
  readonly start: number;
  readonly #round: Round;
  readonly #random: Random;

  constructor(round: Round, name: string, address: string, stride: number) {
    this.#round = round;
    this.#random = new Random(`${round.seed} ${name}`);
    this.nat = new ModelNat(this.#random.fork('nat'), {
      mapping: 'address-port',
      ports: 'sequential',
      stride,
      foreign: round.foreign,
      address,
    });
    // Samples 10 ms apart, of which the last counts.
    const samples = [1, 2, 3, 4, 5].map((n) => this.nat.sample(n < 3 ? 1 : n, '203.0.113.1', n < 3 ? n : 2, 1_000 + 10 * n));
    const [least, most] = round.ages;
    const age = least + this.#random.fraction() * (most - least);
    this.start = 1_050 + age;
    // Classified when the report is written; the rest of its age is the way to the peer and back.
    this.report = { ...classifyNat(samples, [], 1_050), stride: (stride + 0x1_0000) % 0x1_0000, age: Math.round(age / 2) };
  }

  /** Sends to the ports in turn. Returns external ports by destination port. */
  send(to: string, ports: readonly number[]): Map<number, number> {
    const { others, pace, loss } = this.#round;
    for (let i = 1; i <= others; i++) this.nat.send(1, '203.0.113.9', i, this.start - pace * (others + 1 - i));
    const sent = new Map<number, number>();
    for (const [i, port] of ports.entries()) {
      if (this.#random.fraction() < loss) continue;
      sent.set(port, this.nat.send(1, to, port, this.start + pace * i));
    }
    return sent;
  }
}

function meets(round: Round, sums?: readonly number[]): boolean {
  const client = new End(round, 'client', '198.51.100.1', round.strides[0]);
  const device = new End(round, 'device', '198.51.100.2', round.strides[1]);
  const fromClient = client.send(device.nat.address, predictPorts(device.report, { ours: client.report, role: 'client' }));
  const guesses = predictPorts(client.report, { ours: device.report, role: 'device' });
  const last = client.report.last!;
  const fromDevice = device.send(client.nat.address, sums?.map((sum, j) => last + j + 1 + sum) ?? guesses);
  return [...fromClient].some(([to, from]) => fromDevice.get(from) === to);
}

function share(round: Partial<Round>, sums?: readonly number[]): number {
  const runs = seeds(1, 500);
  return runs.filter((seed) => meets({ ...usual, ...round, seed: `${seed}` }, sums)).length / runs.length;
}

describe('two sequential NATs with 5 foreign flows a second', () => {
  test('hardly ever meet with sum 0 alone, and in less than half of the rounds with sums 0 to 3 in blocks of eight', {
    tags: ['slow'],
  }, () => {
    expect(share({}, new Array(32).fill(0))).toBeLessThan(0.25);
    expect(
      share(
        {},
        upTo(32).map((j) => (j - 1) >> 3),
      ),
    ).toBeLessThan(0.6);
  });

  test.each([
    { ages: [50, 200], pace: 1, least: 0.99 },
    { ages: [50, 200], pace: 10, least: 0.99 },
    { ages: [50, 400], pace: 1, least: 0.99 },
    { ages: [50, 400], pace: 10, least: 0.99 },
    { ages: [400, 600], pace: 10, least: 0.98 },
    { ages: [1_000, 1_500], pace: 10, least: 0.85 },
  ] as const)('meet in a round: samples of $ages ms, a packet every $pace ms', ({ ages, pace, least }) => {
    expect(share({ ages, pace })).toBeGreaterThanOrEqual(least);
  });

  test('meet when packets are lost before the NAT, which shifts all later ones', () => {
    expect(share({ loss: 0.01 })).toBeGreaterThan(0.98);
    expect(share({ loss: 0.03 })).toBeGreaterThan(0.96);
  });

  test('meet with any strides', { tags: ['slow'] }, () => {
    for (const strides of [
      [-1, 1],
      [2, -3],
      [64, 1],
      [-2_000, 4_000],
    ] as const)
      expect(share({ strides }), `${strides}`).toBeGreaterThan(0.98);
  });

  test('meet when each end opens up to three other candidates before', { tags: ['slow'] }, () => {
    for (const others of [1, 2, 3]) expect(share({ others, pace: 1 }), `${others}`).toBeGreaterThan(0.98);
  });

  test('always meet without foreign flows', () => {
    expect(share({ foreign: 0 })).toBe(1);
  });
});

describe('a sequential NAT and an end with one port', () => {
  /**
   * The end behind the NAT opens `opened` candidates in any order. Returns whether the port that counts is among those
   * predicted.
   */
  function hit(seed: number, age: number, opened: number): boolean {
    const random = new Random(`single ${seed}`);
    const end = new End({ ...usual, seed: `${seed}`, ages: [age, age] }, 'hard', '198.51.100.1', 1);
    const ours = Math.floor(random.fraction() * opened);
    let port = 0;
    for (let i = 0; i <= ours; i++) port = end.nat.send(1, `203.0.113.${10 + i}`, 4433, end.start + 10 * i);
    return predictPorts(end.report, { ours: independent, role: 'device', opened }).includes(port);
  }

  test.each([
    { age: 200, opened: 1, least: 0.99 },
    { age: 1_000, opened: 8, least: 0.99 },
    { age: 3_000, opened: 8, least: 0.9 },
  ])('meet in a round: a sample of $age ms, $opened candidates', ({ age, opened, least }) => {
    const runs = seeds(1, 1_000);
    expect(runs.filter((seed) => hit(seed, age, opened)).length / runs.length).toBeGreaterThanOrEqual(least);
  });
});
