/**
 * Memory at rest of a search for a direct path, and of the rounds of a session: bytes for each, averaged over many on
 * one shared session.
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { withChildren } from '../../../bench/processes/parent.ts';

/** Figures of Node 20; other engines differ by a few words, and so does uncollected garbage. */
const MARGIN = 1.5;

function measure(call: 'searches' | 'rounds'): Promise<readonly number[]> {
  return withChildren((start) => start('rendezvous-memory').call<readonly number[]>(call));
}

test('a search keeps little before and after a failed attempt, and less once the connection has been direct for a minute', async () => {
  const [fresh, refused, rested] = await measure('searches');
  expect(fresh).toBeLessThan(MARGIN * 300);
  expect(refused).toBeLessThan(MARGIN * 800);
  expect(rested).toBeLessThan(MARGIN * 500);
});

test('the rounds of a session leave only the report of the last one', async () => {
  const [bytes] = await measure('rounds');
  expect(bytes).toBeLessThan(MARGIN * 500);
});
