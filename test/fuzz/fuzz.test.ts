/** A slice of the fuzzer: a few iterations of each target. `npm run fuzz` runs for any length of time. */
import { describe, expect, it } from 'vitest';
import { Random } from '../../testing/random.ts';
import { seeds } from '../support/tiered.ts';
import { hostile } from './mutate.ts';
import { targets } from './targets.ts';

describe('fuzz', () => {
  it.each(targets.map((target) => [target.name, target] as const))('%s', async (name, target) => {
    for (const seed of seeds(1, target.weight === undefined ? 5 : 1)) {
      // the same sequence as `npm run fuzz -- --seed <seed> --count 1 <name>`
      await expect(Promise.resolve(target.iterate(new Random(`${name} ${seed}`))), `seed ${seed}`).resolves.toBeUndefined();
    }
  });

  it('gives each target a unique name', () => {
    expect(new Set(targets.map(({ name }) => name)).size).toBe(targets.length);
  });

  it('damages samples in every way: shorter, longer, and of the same length', () => {
    const random = new Random('mutate');
    const sample = random.bytes(50);
    const lengths = Array.from({ length: 2000 }, () => hostile(random, [sample]).length);
    expect(lengths.filter((length) => length < 50).length).toBeGreaterThan(200);
    expect(lengths.filter((length) => length > 50).length).toBeGreaterThan(200);
    expect(lengths.filter((length) => length === 50).length).toBeGreaterThan(200);
  });
});
