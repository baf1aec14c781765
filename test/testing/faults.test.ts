/** Burst loss, corruption, outages and cross traffic on a link, compared with their formulas. */
import { describe, expect, it } from 'vitest';
import { Link, type LinkOptions } from '../../testing/link.ts';
import { Random } from '../../testing/random.ts';
import { seeds } from '../support/tiered.ts';

const COUNT = 100_000;

/** Verdicts of datagrams of 1,000 bytes, one every ms. */
function verdicts(options: LinkOptions, { count = COUNT, seed = 1 } = {}) {
  const link = new Link(options, new Random(`faults ${seed}`));
  return { link, verdicts: Array.from({ length: count }, (_, i) => link.offer(1000, i, () => {})) };
}

/** Lengths of the runs of `what`. */
function runs(of: readonly string[], what: string): number[] {
  const lengths: number[] = [];
  for (let i = 0; i < of.length; i++) {
    if (of[i] !== what) continue;
    if (i > 0 && of[i - 1] === what) lengths[lengths.length - 1]!++;
    else lengths.push(1);
  }
  return lengths;
}

describe('burst loss', () => {
  it.each([
    [0.02, 3],
    [0.1, 1.5],
    [0.3, 3],
    [0.3, 10],
  ])('loses the share %d in bursts of %d on average, of geometric length', (loss, burst) => {
    for (const seed of seeds(1, 3)) {
      const lengths = runs(verdicts({ loss, burst }, { seed }).verdicts, 'lost');
      const lost = lengths.reduce((sum, length) => sum + length);
      expect(Math.abs(lost / COUNT / loss - 1)).toBeLessThan(0.25);
      expect(Math.abs(lost / lengths.length / burst - 1)).toBeLessThan(0.15);
      // a burst ends after each datagram with probability 1 / burst
      expect(Math.abs(lengths.filter((length) => length === 1).length / lengths.length - 1 / burst)).toBeLessThan(0.06);
    }
  });

  it('is single loss when the burst length equals that of independent losses', () => {
    const lengths = runs(verdicts({ loss: 0.5, burst: 2 }).verdicts, 'lost');
    expect(lengths).toEqual(runs(verdicts({ loss: 0.5 }).verdicts, 'lost'));
  });

  it('is limited to the longest burst', { tags: ['slow'] }, () => {
    const lengths = runs(verdicts({ loss: 0.6, longestBurst: 3 }).verdicts, 'lost');
    expect(Math.max(...lengths)).toBe(3);
    expect(Math.max(...runs(verdicts({ loss: 0.6 }).verdicts, 'lost'))).toBeGreaterThan(6);
    expect(verdicts({ loss: 1 }, { count: 100 }).link.stats.lost).toBe(100);
    expect(verdicts({ loss: 0, burst: 3 }, { count: 100 }).link.stats.passed).toBe(100);
  });
});

describe('corruption', () => {
  it('changes one byte in the configured share of datagrams, often in the headers, and delivers them all', { tags: ['slow'] }, () => {
    const link = new Link({ corrupt: 0.3, delay: 5 }, new Random('corruption'));
    const changes: { at: number; mask: number }[] = [];
    let onTime = 0;
    for (let i = 0; i < COUNT; i++) {
      link.offer(1000, i, (time, damage) => {
        if (time === i + 5) onTime++;
        if (damage !== null) changes.push(damage);
      });
    }
    expect([onTime, changes.length]).toEqual([COUNT, link.stats.corrupted]);
    expect(Math.abs(changes.length / COUNT - 0.3)).toBeLessThan(0.02);
    expect(changes.every(({ at, mask }) => at >= 0 && at < 1000 && mask > 0 && mask < 256)).toBe(true);
    expect(Math.abs(changes.filter(({ at }) => at < 50).length / changes.length - 0.525)).toBeLessThan(0.03);
  });

  it('does not affect which datagrams are lost', { tags: ['slow'] }, () => {
    expect(verdicts({ loss: 0.3, corrupt: 0.5 }).verdicts).toEqual(verdicts({ loss: 0.3 }).verdicts);
  });

  it('is limited to the longest burst', () => {
    const link = new Link({ corrupt: 0.7, longestBurst: 3 }, new Random('longest'));
    const fates: string[] = [];
    for (let i = 0; i < 5000; i++) link.offer(100, i, (_, damage) => fates.push(damage === null ? 'whole' : 'damaged'));
    expect(Math.max(...runs(fates, 'damaged'))).toBe(3);
  });
});

describe('outages', () => {
  it('let nothing pass from their start to their end, once or repeatedly', () => {
    const down = (options: LinkOptions) =>
      verdicts(options, { count: 40 }).verdicts.flatMap((verdict, i) => (verdict === 'down' ? [i] : []));
    expect(down({ outages: [{ from: 10, length: 3 }] })).toEqual([10, 11, 12]);
    expect(down({ outages: [{ from: 5, length: 2, every: 7 }] })).toEqual([5, 6, 12, 13, 19, 20, 26, 27, 33, 34]);
    expect(
      down({
        outages: [
          { from: 1, length: 1 },
          { from: 20, length: 2 },
        ],
      }),
    ).toEqual([1, 20, 21]);
  });

  it('are counted, and datagrams sent before arrive', () => {
    const link = new Link({ delay: 20, outages: [{ from: 1, length: 100 }] }, new Random('down'));
    const arrivals: number[] = [];
    expect(link.offer(10, 0, (time) => arrivals.push(time))).toBe('passed');
    expect(link.offer(10, 1, (time) => arrivals.push(time))).toBe('down');
    expect(link.offer(10, 101, (time) => arrivals.push(time))).toBe('passed');
    expect(arrivals).toEqual([20, 121]);
    expect(link.stats).toMatchObject({ sent: 3, passed: 2, down: 1 });
  });
});

describe('cross traffic', () => {
  const rate = 8e6; // 1000 bytes a ms

  it('takes its share of the line: our datagrams wait behind it', () => {
    const link = new Link({ delay: 0, rate, crossTraffic: { rate: rate / 2, size: 1000 } }, new Random('cross'));
    let waited = 0;
    const count = 100_000;
    for (let i = 0; i < count; i++) link.offer(100, i * 5, (time) => (waited += time - i * 5 - 0.1));
    expect(Math.abs(link.stats.crossSent / (count * 5) / 0.5 - 1)).toBeLessThan(0.03);
    // M/D/1 at load 0.5 (our own adds 0.02): mean wait rho / 2 (1 - rho) of a service time
    expect(waited / count).toBeGreaterThan(0.4);
    expect(waited / count).toBeLessThan(0.65);
    expect(link.stats.crossOverflowed).toBe(0);
  });

  it('fills the queue when it offers more than the line carries, and both lose', () => {
    const link = new Link({ delay: 0, rate, queue: 20_000, crossTraffic: { rate: 2 * rate, size: 1000 } }, new Random('flood'));
    // at irregular times: in step with the line we would always find the slot that has just become free
    const random = new Random('times');
    let time = 0;
    const fates = Array.from({ length: 10_000 }, () => {
      time += 2 * random.fraction();
      return link.offer(1000, time, () => {});
    });
    // three are offered for one that fits
    expect(fates.filter((fate) => fate === 'passed').length / fates.length).toBeLessThan(0.5);
    expect(fates.filter((fate) => fate === 'passed').length / fates.length).toBeGreaterThan(0.2);
    const carried = link.stats.passed + link.stats.crossSent - link.stats.crossOverflowed;
    expect(Math.abs(carried / time - 1)).toBeLessThan(0.01);
  });

  it('repeats for the same seed and begins when the link is first used', () => {
    const waits = (seed: string, start: number) => {
      const link = new Link({ delay: 0, rate, crossTraffic: { rate: rate * 0.8 } }, new Random(seed));
      return Array.from({ length: 200 }, (_, i) => {
        let wait = Number.NaN;
        link.offer(10, start + i, (time) => (wait = time - start - i));
        return wait.toFixed(6);
      });
    };
    expect(waits('a', 0)).toEqual(waits('a', 0));
    expect(waits('a', 0)).not.toEqual(waits('b', 0));
    expect(waits('a', 3_600_000)).toEqual(waits('a', 0));
  });
});
