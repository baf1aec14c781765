/**
 * Memory of a connection for its further ids and its second path after a migration, excluding the core: bytes of both
 * ends together, averaged over many.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { withChildren } from '../../../bench/processes/parent.ts';

test('three further ids each way and a second path take less than 1,650 bytes of both ends together', async () => {
  const bytes = await withChildren((start) => start('migrated-memory').call<number>('moves'));
  expect(bytes).toBeLessThan(1.5 * 1_100);
});
