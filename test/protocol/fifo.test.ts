/**
 * The FIFO queue against an array.
 *
 * @module-tag slow
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fifo } from '../../protocol/fifo.ts';

test('the queue agrees with an array, across its compactions', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1500, max: 1500 }), { maxLength: 20 }), (steps) => {
      const fifo = new Fifo<number>();
      const model: number[] = [];
      let next = 0;
      for (const step of steps) {
        for (let i = 0; i < step; i++) {
          fifo.push(next);
          model.push(next++);
        }
        for (let i = 0; i > step; i--) expect(fifo.shift()).toBe(model.shift());
        expect(fifo.size).toBe(model.length);
      }
    }),
    { numRuns: 30, seed: 1 },
  );
});
