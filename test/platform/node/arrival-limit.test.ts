/** The limit of datagrams from strangers. */
import { expect, test } from 'vitest';
import { ArrivalLimit } from '../../../platform/node/arrival-limit.ts';

/** How many of the datagrams of a source are looked at. */
function admitted(limit: ArrivalLimit, source: string, count: number, now = 0): number {
  return Array.from({ length: count }, () => limit.admits(source, now)).filter(Boolean).length;
}

test('one source gets 256 at once and 64 a second, and leaves room for others', () => {
  const limit = new ArrivalLimit();
  expect(admitted(limit, 'flood', 10_000)).toBe(256);
  expect(admitted(limit, 'device', 20)).toBe(20);
  expect(admitted(limit, 'flood', 10_000, 1_000)).toBe(64);
});

test('all sources get 1,024 at once and 256 a second', () => {
  const limit = new ArrivalLimit();
  const all = (now: number) =>
    Array.from({ length: 20 }, (_, index) => admitted(limit, `source ${index}`, 60, now)).reduce((a, b) => a + b);
  expect([all(0), all(1_000)]).toEqual([1024, 256]);
});

test('a table full of sources forgets the first, and counts the newest', () => {
  const limit = new ArrivalLimit();
  for (let index = 0; index < 65; index++) limit.admits(`source ${index}`, 0);
  expect(admitted(limit, 'source 64', 300)).toBe(255);
  expect(admitted(limit, 'source 1', 300)).toBe(255);
  expect(admitted(limit, 'source 0', 300)).toBe(256);
});
