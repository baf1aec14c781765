/** How often a user may change its own record, and that this does not hinder others. */
import { beforeEach, expect, test } from 'vitest';
import type { Connection } from '../../../../client/node.ts';
import { GuardedDevice } from '../guarded-device.ts';
import { stateOf, user } from '../model.ts';

let guarded: GuardedDevice;
let guest: Connection;
let owner: Connection;

beforeEach(async () => {
  guarded = await GuardedDevice.attached({ state: stateOf([user('guest', { role: 'Guest' }), user('owner', { role: 'Administrator' })]) });
  [guest, owner] = [await guarded.direct(), await guarded.direct()];
  await guarded.settle(
    guarded.iam.update((draft) => {
      draft.addUserFingerprint('guest', guest.getClientFingerprint());
      draft.addUserFingerprint('owner', owner.getClientFingerprint());
    }),
  );
});

function rename(connection: Connection, username: string, name: string): Promise<number> {
  return guarded.request(connection, 'PUT', `/iam/users/${username}/display-name`, name);
}

test('a user manager is not held up, neither by it nor by a rate', async () => {
  for (let change = 0; change < 31; change++) await rename(guest, 'guest', `g${change}`);
  for (let change = 0; change < 35; change++) expect(await rename(owner, 'guest', `o${change}`)).toBe(204);
  expect(await rename(owner, 'owner', 'me')).toBe(204);
});
