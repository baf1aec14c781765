/**
 * Memory at rest of a search for a direct path, and of the rounds of a session: bytes for each, averaged over many on
 * one shared session.
 */
import { expect, test } from 'vitest';
import { withChildren } from '../../../bench/processes/parent.ts';
import { size } from '../../support/size.ts';

/** Figures of Node 20; other engines differ by a few words, and so does uncollected garbage. */
const MARGIN = 1.5;
/** Two seconds of collections. */
const isShort = size(0, 1) === 0;

function measure(call: 'searches' | 'rounds'): Promise<readonly number[]> {
  return withChildren((start) => start('rendezvous-memory').call<readonly number[]>(call));
}

test.skipIf(isShort)(
  'a search keeps little before and after a failed attempt, and less once the connection has been direct for a minute (long run only)',
  async () => {
    const [fresh, refused, rested] = await measure('searches');
    expect(fresh).toBeLessThan(MARGIN * 300);
    expect(refused).toBeLessThan(MARGIN * 800);
    expect(rested).toBeLessThan(MARGIN * 500);
  },
);

test.skipIf(isShort)('the rounds of a session leave only the report of the last one (long run only)', async () => {
  const [bytes] = await measure('rounds');
  expect(bytes).toBeLessThan(MARGIN * 500);
});
