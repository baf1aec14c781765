/** A link of the simulator: loss, delay, order, rate and queue; and its seeded randomness. */
import { describe, expect, it } from 'vitest';
import { Link, type LinkOptions } from '../../testing/link.ts';
import { Random } from '../../testing/random.ts';
import { seeds } from '../support/tiered.ts';

const COUNT = 100_000;

/** Arrival times of datagrams of `length` bytes offered every `every` ms. */
function offer(options: LinkOptions, { count = COUNT, every = 1, length = 1000, seed = 1 } = {}) {
  const link = new Link(options, new Random(`link test ${seed}`));
  const arrivals: { sent: number; time: number }[] = [];
  for (let i = 0; i < count; i++) link.offer(length, i * every, (time) => arrivals.push({ sent: i * every, time }));
  return { link, arrivals };
}

describe('link', () => {
  it('only delays by default', () => {
    const { link, arrivals } = offer({ delay: 7 }, { count: 100 });
    expect(arrivals.every(({ sent, time }) => time === sent + 7)).toBe(true);
    expect(link.stats).toEqual({
      sent: 100,
      sentBytes: 100_000,
      passed: 100,
      lost: 0,
      overflowed: 0,
      oversize: 0,
      down: 0,
      corrupted: 0,
      duplicated: 0,
      reordered: 0,
      crossSent: 0,
      crossOverflowed: 0,
    });
  });

  it.each(seeds(1, 3))('loses, duplicates and reorders at the configured rates (seed %d)', (seed) => {
    const { link } = offer({ loss: 0.05, duplicate: 0.1, reorder: 0.2 }, { seed });
    const { passed, lost, duplicated, reordered } = link.stats;
    // five standard deviations of a binomial distribution
    const expectRate = (times: number, probability: number, of: number) =>
      expect(Math.abs(times - probability * of)).toBeLessThan(5 * Math.sqrt(of * probability * (1 - probability)));
    expect(passed + lost).toBe(COUNT);
    expectRate(lost, 0.05, COUNT);
    expectRate(duplicated, 0.1, passed);
    expectRate(reordered, 0.2, passed);
  });

  it('spreads jitter evenly and keeps the order', () => {
    const { arrivals } = offer({ delay: 10, jitter: 40 }, { every: 100 });
    const extra = arrivals.map(({ sent, time }) => time - sent - 10);
    expect(Math.min(...extra.slice(0, 10_000))).toBeGreaterThanOrEqual(0);
    expect(Math.max(...extra.slice(0, 10_000))).toBeLessThan(40);
    expect(extra.reduce((sum, value) => sum + value) / extra.length).toBeCloseTo(20, 0);
    const dense = offer({ delay: 10, jitter: 40 }).arrivals;
    expect(dense.every(({ time }, i) => i === 0 || time >= dense[i - 1]!.time)).toBe(true);
  });

  it('lets others overtake a datagram that is held back', () => {
    const { link, arrivals } = offer({ delay: 10, reorder: 0.1, reorderDelay: 50 });
    const late = arrivals.filter(({ sent, time }) => time > sent + 10);
    expect(late.length).toBe(link.stats.reordered);
    expect(late.every(({ sent, time }) => time < sent + 60)).toBe(true);
    expect(arrivals.length - late.length).toBe(COUNT - link.stats.reordered);
  });

  it('carries no more than its rate and queues at most the configured bytes', () => {
    // 8 Mbit/s is 1000 bytes per ms; twice that is offered
    const { link, arrivals } = offer({ delay: 5, rate: 8e6, queue: 20_000 }, { every: 0.5, count: 2000 });
    const last = arrivals.at(-1)!;
    expect(arrivals.length).toBeGreaterThan(1000);
    expect(arrivals.length).toBeLessThan(1030);
    expect(last.time - 5).toBeCloseTo(arrivals.length, 6);
    expect(Math.max(...arrivals.map(({ sent, time }) => time - sent))).toBeLessThanOrEqual(5 + 20);
    expect(link.stats.overflowed).toBe(2000 - arrivals.length);
  });

  it('drops from the tail: queued datagrams are delivered in order, each when those before it have left', () => {
    // 1000 bytes a ms; the one on the line counts, so four of 1000 bytes fit into 4000
    const link = new Link({ delay: 5, rate: 8e6, queue: 4000 }, new Random('tail'));
    const arrivals: number[] = [];
    const burst = (count: number, now: number) => Array.from({ length: count }, () => link.offer(1000, now, (time) => arrivals.push(time)));
    expect(burst(6, 0)).toEqual(['passed', 'passed', 'passed', 'passed', 'overflowed', 'overflowed']);
    // at 1.5 ms there are 2500 bytes left: capacity for one more, and for a small one
    expect(burst(2, 1.5)).toEqual(['passed', 'overflowed']);
    expect(link.offer(500, 1.5, (time) => arrivals.push(time))).toBe('passed');
    expect(arrivals).toEqual([6, 7, 8, 9, 10, 10.5]);
  });

  it('serves an idle line at once', () => {
    const { arrivals } = offer({ delay: 5, rate: 8e6 }, { every: 10, count: 100 });
    expect(arrivals.every(({ sent, time }) => time === sent + 1 + 5)).toBe(true);
  });

  it('drops datagrams larger than the MTU', () => {
    const link = new Link({ mtu: 1200 }, new Random('mtu'));
    const never = () => expect.unreachable();
    expect(link.offer(1200, 0, () => {})).toBe('passed');
    expect(link.offer(1201, 0, never)).toBe('oversize');
    expect(link.stats).toMatchObject({ oversize: 1, passed: 1 });
  });

  it('has the same random events when another option changes', () => {
    const lost = (options: LinkOptions) => {
      const arrived = new Set(offer({ loss: 0.3, ...options }, { count: 1000 }).arrivals.map(({ sent }) => sent));
      return arrived.size;
    };
    expect(lost({ duplicate: 0.5, jitter: 3, reorder: 0.5 })).toBe(lost({}));
  });
});

describe('random', () => {
  it('is even and repeats', () => {
    const random = new Random('even');
    const buckets = new Array<number>(16).fill(0);
    for (let i = 0; i < COUNT; i++) buckets[Math.floor(random.fraction() * 16)]!++;
    for (const bucket of buckets) expect(Math.abs(bucket / COUNT - 1 / 16)).toBeLessThan(0.01);
    expect(new Random('a').bytes(1000)).toEqual(new Random('a').bytes(1000));
    expect(new Random('a').fork('b').u32()).not.toBe(new Random('a').fork('c').u32());
    const counts = new Set(new Random('bytes').bytes(10_000)).size;
    expect(counts).toBe(256);
  });
});
