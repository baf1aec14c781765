/** The queue of the relay, against an array. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DropOldestQueue } from '../../../protocol/relay/index.ts';

test('a full queue drops the oldest, like an array that is cut', () => {
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
