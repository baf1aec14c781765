/** The concurrency limit: a number of slots per key and in all, each released separately. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConcurrencyLimit } from '../../server/concurrency-limit.ts';

test('a key takes at most its share, and another key still has its own', () => {
  const limit = new ConcurrencyLimit({ perKey: 2, total: 10 });
  const release = limit.acquire('a');
  expect([release, limit.acquire('a')].every((each) => each !== null)).toBe(true);
  expect(limit.acquire('a')).toBeNull();
  expect(limit.acquire('b')).not.toBeNull();
  expect(limit.size).toBe(3);
  release!();
  expect(limit.acquire('a')).not.toBeNull();
  expect(limit.acquire('a')).toBeNull();
});

test('all keys together take at most the total, and a refusal takes nothing', () => {
  const limit = new ConcurrencyLimit({ perKey: 2, total: 2 });
  const release = limit.acquire('a')!;
  limit.acquire('b');
  expect(limit.acquire('c')).toBeNull();
  expect(limit.size).toBe(2);
  release();
  expect(limit.acquire('c')).not.toBeNull();
});

test('once half of all slots are taken a key has only its smaller share: it keeps its slots, and others get in', () => {
  const limit = new ConcurrencyLimit({ perKey: 4, perKeyAboveHalf: 1, total: 11 });
  const take = (key: string, count: number) => Array.from({ length: count }, () => limit.acquire(key)).map((release) => release !== null);
  const release = limit.acquire('a')!;
  expect(take('a', 3)).toEqual([true, true, true]);
  // Half of eleven is five.
  expect(take('b', 2)).toEqual([true, false]);
  expect([take('a', 1), take('c', 2), take('d', 2)]).toEqual([[false], [true, false], [true, false]]);
  release();
  for (const key of ['e', 'f', 'g', 'h', 'i']) expect(take(key, 2)).toEqual([true, false]);
  expect([limit.size, take('j', 1)]).toEqual([11, [false]]);
});

test('below half a key above its smaller share takes more again', () => {
  const limit = new ConcurrencyLimit({ perKey: 3, perKeyAboveHalf: 1, total: 4 });
  const [release] = [limit.acquire('a')!, limit.acquire('b')];
  expect(limit.acquire('b')).toBeNull();
  release();
  expect(limit.acquire('b')).not.toBeNull();
});

test('a slot is released only once', () => {
  const limit = new ConcurrencyLimit({ perKey: 1 });
  const release = limit.acquire('a')!;
  release();
  expect(limit.acquire('a')).not.toBeNull();
  release();
  expect([limit.size, limit.acquire('a')]).toEqual([1, null]);
});

test('without a total only the share of a key limits', () => {
  const limit = new ConcurrencyLimit({ perKey: 1 });
  for (let i = 0; i < 1_000; i++) expect(limit.acquire(`key ${i}`)).not.toBeNull();
  expect(limit.size).toBe(1_000);
});

test('a stranger fills its share with one key, and the total with many: an honest client is then refused until a slot is released', () => {
  const limit = new ConcurrencyLimit({ perKey: 4, total: 12 });
  const taken = Array.from({ length: 100 }, () => limit.acquire('stranger'));
  expect(taken.filter((release) => release !== null)).toHaveLength(4);
  const honest = limit.acquire('honest');
  expect(honest).not.toBeNull();
  honest!();
  for (let i = 0; i < 100; i++) limit.acquire(`stranger ${i}`);
  expect([limit.size, limit.acquire('honest')]).toEqual([12, null]);
  taken[0]!();
  expect(limit.acquire('honest')).not.toBeNull();
});

test('the counts are always those of the taken slots', () => {
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), leaves: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const limit = new ConcurrencyLimit({ perKey: 3, total: 5 });
      const held: { key: string; release: () => void }[] = [];
      for (const { key, leaves } of steps) {
        const ofKey = held.filter((each) => each.key === key);
        if (leaves) {
          const [first] = ofKey;
          if (first === undefined) continue;
          first.release();
          held.splice(held.indexOf(first), 1);
        } else {
          const release = limit.acquire(key);
          expect(release !== null).toBe(ofKey.length < 3 && held.length < 5);
          if (release !== null) held.push({ key, release });
        }
        expect(limit.size).toBe(held.length);
      }
    }),
  );
});
