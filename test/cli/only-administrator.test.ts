/** The commands of `svc iam` that would leave a device without an administrator. */
import { describe, expect, test } from 'vitest';
import { isAdministratorRole, keepAdministrator } from '../../cli/iam/only-administrator.ts';
import type { IamOpened } from '../../cli/iam/shared.ts';
import type { UserRecord } from '../../client/node.ts';
import { RemoteError } from '../../protocol/errors/index.ts';

const KEY = [{ fingerprint: 'ab'.repeat(32) }];

/** A device that shows these users. @param hidden a name that this client may not see */
function opened(users: readonly Partial<UserRecord>[], hidden?: string): IamOpened {
  const iam = {
    listUsers: async () => users.map(({ username }) => username),
    getUser: async (name: string) => {
      if (name === hidden) throw new RemoteError('BLOCKED_BY_DEVICE_CONFIGURATION', 'no');
      const user = users.find(({ username }) => username === name);
      if (user === undefined) throw new RemoteError('USER_DOES_NOT_EXIST', 'no such user');
      return { fingerprints: [], notificationCategories: [], ...user };
    },
  };
  return { iam, device: 'pr.de' } as unknown as IamOpened;
}

const admin = { username: 'admin', role: 'Administrator', administers: true, fingerprints: KEY };
const refusal = (users: readonly Partial<UserRecord>[], force?: boolean, hidden?: string) =>
  keepAdministrator(opened(users, hidden), 'admin', 'deleted', force === undefined ? {} : { force }).then(
    () => null,
    (error: Error) => error.message,
  );

describe('the only administrator', () => {
  test.each<[string, Partial<UserRecord>[]]>([
    ['alone', [admin]],
    ['beside a guest', [admin, { username: 'bob', role: 'Guest', administers: false, fingerprints: KEY }]],
    ['beside an invited one', [admin, { username: 'bob', role: 'Administrator', administers: true }]],
    ['beside one by name alone', [admin, { username: 'bob', role: 'Administrator', administers: false, fingerprints: KEY }]],
    ['of another role', [{ ...admin, role: 'Owner' }]],
  ])('%s is kept', async (_where, users) => {
    expect(await refusal(users)).toMatch(/^admin is the only administrator of pr\.de and is not deleted\. .* --force$/);
    expect(await refusal(users, true)).toBeNull();
  });

  test('is kept where this client cannot see another one', async () => {
    expect(await refusal([admin, { ...admin, username: 'bob' }], false, 'bob')).toMatch(/only administrator/);
  });

  test.each<[string, Partial<UserRecord>[]]>([
    ['another one is left', [admin, { ...admin, username: 'bob', role: 'Owner' }]],
    ['it is no administrator', [{ ...admin, administers: false }]],
    ['it was never used', [{ ...admin, fingerprints: [] }]],
    ['there is no such user: the device says so', []],
  ])('may be removed where %s', async (_where, users) => {
    expect(await refusal(users)).toBeNull();
  });

  test('keeps its role when it is given that role again', async () => {
    const device = opened([{ ...admin, role: 'Owner' }]);
    expect(await Promise.all(['Owner', 'Administrator', 'Guest'].map((role) => isAdministratorRole(device, 'admin', role)))).toEqual([
      true,
      true,
      false,
    ]);
  });
});
