/**
 * An operation ends when the permission that it runs under ends: by any change that withdraws it, and within a second.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { defaultConfiguration } from '../../device/index.ts';
import { GuardedDevice } from './iam/guarded-device.ts';
import { stateOf, user } from './iam/model.ts';

const ACTION = 'TcpTunnel:Connect';
const SECOND = 1000;

let guarded: GuardedDevice;
let paired: Connection;
let byPassword: Connection;
let revoked: string[];

beforeEach(async () => {
  revoked = [];
  const users = ['paired', 'password', 'other'].map((name) => user(name, { role: 'Standard' }));
  guarded = await GuardedDevice.attached({ state: stateOf(users) });
  await guarded.settle(guarded.iam.setUserPassword('password', 'secret'));
  paired = await guarded.relayed();
  byPassword = await guarded.direct();
  await change((draft) => draft.addUserFingerprint('paired', paired.getClientFingerprint()));
  expect(await guarded.login(byPassword, 'password', 'secret')).toBe('OK');
  for (const [name, ref] of [
    ['paired', 1],
    ['password', 2],
  ] as const) {
    const connection = guarded.device.connection(ref);
    const grant = await guarded.settle(guarded.device.grant(connection, ACTION, {}, () => revoked.push(name)));
    expect(grant).not.toBeNull();
  }
});

const change = (edit: Parameters<GuardedDevice['iam']['update']>[0]): Promise<unknown> => guarded.settle(guarded.iam.update(edit));

const changes: [string, string[], () => Promise<unknown>][] = [
  ['a role taken down', ['paired'], () => change((draft) => draft.setUserRole('paired', 'Guest'))],
  ['a key removed', ['paired'], () => change((draft) => draft.removeUserFingerprint('paired', paired.getClientFingerprint()))],
  ['a user deleted', ['password'], () => change((draft) => draft.deleteUser('password'))],
  ['a password changed', ['password'], () => guarded.settle(guarded.iam.setUserPassword('password', 'another'))],
  ['a password cleared', ['password'], () => guarded.settle(guarded.iam.setUserPassword('password', undefined))],
  [
    'a policy taken from a role',
    ['paired', 'password'],
    () => {
      const configuration = defaultConfiguration();
      const roles = configuration.roles.map((role) => (role.id === 'Standard' ? { ...role, policies: [] } : role));
      return guarded.settle(guarded.iam.setConfiguration({ ...configuration, roles }));
    },
  ],
];

describe('a connection’s operations end with', () => {
  test.each(changes)('%s', { tags: ['slow'] }, async (_, expected, apply) => {
    await apply();
    await guarded.pass(SECOND);
    expect(revoked.toSorted()).toEqual(expected);
  });
});

test.each<[string, () => Promise<unknown>]>([
  ['another user’s role', () => change((draft) => draft.setUserRole('other', 'Guest'))],
  ['a new name', () => change((draft) => draft.setUserUsername('password', 'renamed'))],
  ['a higher role', () => change((draft) => draft.setUserRole('paired', 'Administrator'))],
  ['a display name', () => change((draft) => draft.setUserDisplayName('paired', 'Ann'))],
  ['a password of a user whose key is paired', () => guarded.settle(guarded.iam.setUserPassword('paired', 'new one'))],
])('they do not end with %s', async (_, apply) => {
  await apply();
  await guarded.pass(SECOND);
  expect(revoked).toEqual([]);
});

test('they end when the application unbinds the connection', { tags: ['slow'] }, async () => {
  const connection = await guarded.direct();
  const bound = guarded.device.connection(3);
  guarded.device.authorizeConnection(bound, 'other');
  await guarded.settle(guarded.device.grant(bound, ACTION, {}, () => revoked.push('bound')));
  guarded.device.authorizeConnection(bound, null);
  await guarded.pass(SECOND);
  expect([revoked, connection.closeReason]).toEqual([['bound'], null]);
});
