/** The days on which keys were used. */
import { expect, test } from 'vitest';
import { KeyUse } from '../../../device/iam/key-use.ts';

test('the latest day of each key counts, of 4,096 keys at most', () => {
  const use = new KeyUse();
  use.note('first', Date.UTC(2026, 0, 1));
  use.note('second', Date.UTC(2026, 0, 1));
  use.note('second', Date.UTC(2026, 0, 2, 23, 59));
  expect([use.day('first'), use.day('second'), use.day('other')]).toEqual(['2026-01-01', '2026-01-02', undefined]);
  for (let index = 0; index < 4_094; index++) use.note(`key ${index}`, 0);
  use.note('second', 0);
  expect(use.day('first')).toBe('2026-01-01');
  use.note('newest', 0);
  expect([use.day('first'), use.day('second'), use.day('newest')]).toEqual([undefined, '1970-01-01', '1970-01-01']);
});
