/** Each IAM endpoint as a client reaches it, over connections to a device in virtual time. */
import { expect, test } from 'vitest';
import type { Connection } from '../../../../client/node.ts';
import type { CborValue } from '../../../../protocol/cbor/index.ts';
import { GuardedDevice } from '../guarded-device.ts';
import { key, stateOf, user } from '../model.ts';

const OPEN = 'open sesame';
const INVITE = 'come in';
const state = stateOf([user('admin', { role: 'Administrator' }), user('bob', { role: 'Guest' })], {
  passwordOpenPairing: true,
  passwordInvitePairing: true,
  localInitialPairing: true,
  openPairingRole: 'Guest',
  initialPairingUsername: 'admin',
});

test('all endpoints answer over connections', { tags: ['slow'] }, async () => {
  const guarded = await GuardedDevice.attached({ state, notificationCategories: ['Info'] });
  await guarded.settle(guarded.iam.setOpenPairingPassword(OPEN));
  await guarded.settle(guarded.iam.setUserPassword('bob', INVITE));
  const [admin, local] = [await guarded.direct(), await guarded.direct()];
  const [opened, invited] = [await guarded.relayed(), await guarded.relayed()];
  expect(await guarded.login(opened, '', OPEN)).toBe('OK');
  expect(await guarded.login(invited, 'bob', INVITE)).toBe('OK');
  const lines: [Connection, number, string, string, CborValue?][] = [
    [admin, 205, 'GET', '/iam/pairing'],
    [admin, 201, 'POST', '/iam/pairing/local-initial'],
    [opened, 201, 'POST', '/iam/pairing/password-open', { Username: 'eve' }],
    [invited, 201, 'POST', '/iam/pairing/password-invite'],
    [admin, 204, 'PUT', '/iam/settings/local-open-pairing', true],
    [local, 201, 'POST', '/iam/pairing/local-open', { Username: 'tom' }],
    [admin, 205, 'GET', '/iam/settings'],
    [admin, 204, 'PUT', '/iam/device-info/friendly-name', 'Attic'],
    [admin, 205, 'GET', '/iam/roles'],
    [admin, 205, 'GET', '/iam/me'],
    [admin, 205, 'GET', '/iam/notification-categories'],
    [admin, 205, 'GET', '/iam/users'],
    [admin, 201, 'POST', '/iam/users', { Username: 'ann' }],
    [admin, 205, 'GET', '/iam/users/ann'],
    [admin, 204, 'PUT', '/iam/users/ann/display-name', 'Ann'],
    [admin, 204, 'PUT', '/iam/users/ann/password', 'secret word'],
    [admin, 204, 'PUT', '/iam/users/ann/role', 'Guest'],
    [admin, 204, 'PUT', '/iam/users/ann/sct', 'sct-of-ann'],
    [admin, 204, 'PUT', '/iam/users/ann/oauth-subject', 'subject'],
    [admin, 204, 'PUT', '/iam/users/ann/fingerprint', key(7)],
    [admin, 204, 'PUT', `/iam/users/ann/fingerprints/${key(8)}`, {}],
    [admin, 202, 'DELETE', `/iam/users/ann/fingerprints/${key(8)}`],
    [admin, 204, 'PUT', '/iam/users/ann/push', { ProjectId: 'project', Token: 'token' }],
    [admin, 204, 'PUT', '/iam/users/ann/notification-categories', ['Info']],
    // The base station has no provider.
    [admin, 500, 'POST', '/iam/users/ann/push-test'],
    [admin, 204, 'PUT', '/iam/users/ann/username', 'anna'],
    [admin, 202, 'DELETE', '/iam/users/anna'],
  ];
  const answers: [number, string, string][] = [];
  for (const [connection, , method, path, body] of lines)
    answers.push([await guarded.request(connection, method, path, body), method, path]);
  expect(answers).toEqual(lines.map(([, status, method, path]) => [status, method, path]));
});
