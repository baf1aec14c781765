import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DropOldestQueue, TokenBucket } from '../../../protocol/relay/index.ts';

test('a bucket never gives more than its burst and its rate over any time', () => {
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

test('a bucket says how long to wait, and when it is full again', () => {
  const bucket = new TokenBucket(5, 5, 1000);
  for (let i = 0; i < 5; i++) expect(bucket.take(1, 1000)).toBe(true);
  expect(bucket.take(1, 1000)).toBe(false);
  expect(bucket.wait(1, 1000)).toBe(200);
  expect(bucket.wait(1, 1150)).toBeCloseTo(50);
  expect(bucket.isFull(1500)).toBe(false);
  expect(bucket.isFull(2000)).toBe(true);
  expect(bucket.wait(5, 2000)).toBe(0);
});

test('a queue drops the oldest, like an array that is cut', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(fc.option(fc.nat(), { nil: undefined })), (capacity, steps) => {
      const queue = new DropOldestQueue<number>(capacity);
      const model: number[] = [];
      for (const value of steps) {
        if (value === undefined) expect(queue.shift()).toBe(model.shift());
        else {
          model.push(value);
          expect(queue.push(value)).toBe(model.length > capacity ? model.shift() : undefined);
        }
        expect(queue.length).toBe(model.length);
        expect(queue.peek()).toBe(model[0]);
      }
    }),
    { seed: 1 },
  );
});
