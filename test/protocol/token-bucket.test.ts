/** The token bucket never grants more than burst and rate. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../protocol/token-bucket.ts';

test('a bucket never grants more than its burst and its rate over any time', () => {
  const step = fc.record({ wait: fc.integer({ min: -50, max: 500 }), amount: fc.integer({ min: 1, max: 30 }) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const bucket = new TokenBucket(100, 20, 0);
      let [now, latest, taken] = [0, 0, 0];
      for (const { wait, amount } of steps) {
        now += wait;
        latest = Math.max(latest, now);
        if (bucket.take(amount, now)) taken += amount;
        expect(taken).toBeLessThanOrEqual(20 + latest / 10 + 1e-6);
      }
    }),
    { seed: 1 },
  );
});

test('a bucket reports how long to wait, and when it is full again', () => {
  const bucket = new TokenBucket(5, 5, 1000);
  for (let i = 0; i < 5; i++) expect(bucket.take(1, 1000)).toBe(true);
  expect(bucket.take(1, 1000)).toBe(false);
  expect(bucket.wait(1, 1000)).toBe(200);
  expect(bucket.wait(1, 1150)).toBeCloseTo(50);
  expect(bucket.isFull(1500)).toBe(false);
  expect(bucket.isFull(2000)).toBe(true);
  expect(bucket.wait(5, 2000)).toBe(0);
});

test('a bucket without an initial time starts full, and time that goes back fills nothing', () => {
  const bucket = new TokenBucket(5, 5);
  const taken = (now: number) => Array.from({ length: 20 }, () => bucket.take(1, now)).filter(Boolean).length;
  expect([taken(0), taken(0), taken(200), taken(100), taken(100_000)]).toEqual([5, 0, 1, 0, 5]);
});

test('time that goes back takes nothing, either', () => {
  const bucket = new TokenBucket(5, 5, 1000);
  expect(bucket.take(4, 1000)).toBe(true);
  expect(bucket.take(1, 900)).toBe(true);
});

test('returned tokens never exceed the burst', () => {
  const bucket = new TokenBucket(5, 5, 0);
  expect(bucket.take(3, 0)).toBe(true);
  bucket.put(3);
  bucket.put(3);
  expect([bucket.take(5, 0), bucket.take(1, 0)]).toEqual([true, false]);
});
