/** Places for calls to the outside: so many of one device, so many over all, each given back alone. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Places } from '../../../server/outbound/places.ts';

test('a device takes its share and no more, and another one still has its own', () => {
  const places = new Places({ perKey: 2, total: 10 });
  const leave = places.take('a');
  expect([leave, places.take('a')].every((each) => each !== null)).toBe(true);
  expect(places.take('a')).toBeNull();
  expect(places.take('b')).not.toBeNull();
  expect(places.size).toBe(3);
  leave!();
  expect(places.take('a')).not.toBeNull();
  expect(places.take('a')).toBeNull();
});

test('all together take the total and no more, and a refusal takes nothing', () => {
  const places = new Places({ perKey: 2, total: 2 });
  const leave = places.take('a')!;
  places.take('b');
  expect(places.take('c')).toBeNull();
  expect(places.size).toBe(2);
  leave();
  expect(places.take('c')).not.toBeNull();
});

test('whatever comes and goes, the counts are those of the places taken', () => {
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), leaves: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const places = new Places({ perKey: 3, total: 5 });
      const held: { key: string; leave: () => void }[] = [];
      for (const { key, leaves } of steps) {
        const ofKey = held.filter((each) => each.key === key);
        if (leaves) {
          const [first] = ofKey;
          if (first === undefined) continue;
          first.leave();
          held.splice(held.indexOf(first), 1);
        } else {
          const leave = places.take(key);
          expect(leave !== null).toBe(ofKey.length < 3 && held.length < 5);
          if (leave !== null) held.push({ key, leave });
        }
        expect(places.size).toBe(held.length);
      }
    }),
  );
});
