/** Sprayed ports: which ports, at what times, and how soon one hits. */
import { describe, expect, test } from 'vitest';
import { SPRAY_INTERVAL, SPRAY_PORTS, SPRAY_SOCKETS, SprayPlan } from '../../../protocol/rendezvous/spray.ts';
import { Random } from '../../../testing/random.ts';
import { seeds } from '../../support/tiered.ts';

const PORTS = 65_536 - 1024;

function planOf(seed: string, count?: number): SprayPlan {
  const random = new Random(seed);
  return new SprayPlan(() => random.fraction(), 0, count);
}

/** Returns all ports with their times. */
function ports(plan: SprayPlan): number[] {
  const all: number[] = [];
  while (!plan.done) all.push(plan.next(plan.nextTimeout()) ?? Number.NaN);
  return all;
}

describe('the ports of a spray', () => {
  test('are 1,024 different ones from 1,024 to 65,535, for each seed', () => {
    for (const seed of seeds(1, 100)) {
      const all = ports(planOf(`${seed}`));
      expect(all).toHaveLength(SPRAY_PORTS);
      expect(new Set(all).size).toBe(SPRAY_PORTS);
      expect(all.every((port) => Number.isInteger(port) && port >= 1024 && port <= 65_535)).toBe(true);
    }
  });

  test('are a permutation like that of a plain shuffle', () => {
    const random = new Random('model');
    const range = Array.from({ length: PORTS }, (_, i) => 1024 + i);
    const model: number[] = [];
    for (let i = 0; i < SPRAY_PORTS; i++) {
      const place = i + Math.floor(random.fraction() * (PORTS - i));
      [range[i], range[place]] = [range[place]!, range[i]!];
      model.push(range[i]!);
    }
    expect(ports(planOf('model'))).toEqual(model);
  });

  test('differ between seeds, and are spread over the range', () => {
    expect(ports(planOf('a'))).not.toEqual(ports(planOf('b')));
    const all = seeds(1, 100).flatMap((seed) => ports(planOf(`spread ${seed}`)));
    for (let eighth = 0; eighth < 8; eighth++) {
      const inIt = all.filter((port) => Math.floor(((port - 1024) / PORTS) * 8) === eighth).length;
      expect(inIt / all.length).toBeGreaterThan(0.1);
      expect(inIt / all.length).toBeLessThan(0.15);
    }
  });

  test('reach the ends of the range', () => {
    const lowest = new SprayPlan(() => 0, 0);
    const highest = new SprayPlan(() => 1 - 2 ** -32, 0);
    expect([lowest.next(0), lowest.next(10), highest.next(0), highest.next(10)]).toEqual([1024, 1025, 65_535, 1024]);
  });

  test('are each returned once when a position is drawn again', () => {
    const places = [1025, 2000, 2000];
    let first = 1024;
    const plan = new SprayPlan(() => (places[first - 1024]! - first + 0.5) / (65_536 - first++), 0, 3);
    expect(ports(plan)).toEqual([1025, 2000, 1024]);
  });

  test('are limited to a count, 1,024 at most', () => {
    expect(ports(planOf('few', 3))).toHaveLength(3);
    expect(ports(planOf('many', 5_000))).toHaveLength(SPRAY_PORTS);
    const none = planOf('none', 0);
    expect([none.done, none.next(0), none.nextTimeout()]).toEqual([true, null, Number.POSITIVE_INFINITY]);
  });
});

describe('the pace of a spray', () => {
  test('is one every 10 ms, none early, and Infinity after the last', () => {
    const plan = planOf('pace', 3);
    expect([plan.nextTimeout(), plan.next(-1)]).toEqual([0, null]);
    expect([plan.next(0), plan.next(0), plan.nextTimeout()]).toEqual([expect.any(Number), null, SPRAY_INTERVAL]);
    expect([plan.next(9.9), plan.next(10), plan.nextTimeout()]).toEqual([null, expect.any(Number), 20]);
    plan.next(20);
    expect([plan.done, plan.nextTimeout(), plan.next(1_000)]).toEqual([true, Number.POSITIVE_INFINITY, null]);
  });

  test('catches up by five after a late timer, and leaves the rest for later', () => {
    const plan = planOf('late');
    plan.next(0);
    const due = (now: number): number => {
      let count = 0;
      while (plan.next(now) !== null) count++;
      return count;
    };
    expect([due(35), due(1_000), due(1_009), due(1_010)]).toEqual([3, 5, 0, 1]);
    expect(plan.nextTimeout()).toBe(1_020);
  });
});

/** Returns after how many ports one of the sockets is hit; Infinity if none is. */
function triesUntilHit(seed: number): number {
  const random = new Random(`hit ${seed}`);
  const open = new Set<number>();
  while (open.size < SPRAY_SOCKETS) open.add(1024 + Math.floor(random.fraction() * PORTS));
  const plan = new SprayPlan(() => random.fraction(), 0);
  for (let tries = 1; !plan.done; tries++) if (open.has(plan.next(plan.nextTimeout()) ?? 0)) return tries;
  return Number.POSITIVE_INFINITY;
}

test('of 1,000 sprays at 256 sockets half hit within 2 s and 95 % within 15 s, as in the model', () => {
  const tries = seeds(1, 1_000)
    .map(triesUntilHit)
    .sort((a, b) => a - b);
  const within = (count: number): number => tries.filter((n) => n <= count).length / tries.length;
  expect(tries[Math.floor(tries.length / 2)]! * SPRAY_INTERVAL).toBeLessThan(2_000);
  expect(within(15_000 / SPRAY_INTERVAL)).toBeGreaterThanOrEqual(0.95);
  for (const count of [50, 100, 174, 300, 600, 1_024]) {
    const model = 1 - (1 - SPRAY_SOCKETS / PORTS) ** count;
    expect(Math.abs(within(count) - model), `${count} ports`).toBeLessThan(0.05);
  }
});
