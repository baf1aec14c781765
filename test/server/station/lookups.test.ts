/** Questions to the directory, without a base station. */
import { expect, test } from 'vitest';
import type { Directory } from '../../../server/station/directory.ts';
import { Lookups } from '../../../server/station/lookups.ts';
import type { Session } from '../../../transport/session/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { nativeSimulation } from '../../support/simulation.ts';

test('a session that ends while its question is sent leaves nothing pending', async () => {
  let notified = false;
  const directory: Directory = {
    locate: (_device, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.onabort = () => {
          notified = true;
          reject(new Error('given up'));
        };
      }),
  };
  const { clock, log } = nativeSimulation().host('station');
  const lookups = new Lookups({ directory, clock, log, limits: { perKey: 1, total: 1 }, timeout: 1_000 });
  const session = { isOpen: true };
  const located = lookups.locate({ device: ids, session: session as Session, exchange: 1 }, 'here');
  session.isOpen = false;
  lookups.removeSession(session as Session);
  expect(await located).toEqual({ failure: 'cancelled' });
  await null;
  expect({ notified, size: lookups.size }).toEqual({ notified: true, size: 0 });
});
