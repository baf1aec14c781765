/**
 * The tables of docs/iam.md written down by hand for each IAM endpoint: every documented status with the requests that
 * lead to it. Nothing here is taken from the implementation.
 *
 * Wherever something is changed, limits and a failing disk are 5.00. A fingerprint in a path has 64 hex digits;
 * password-open requires authentication by the empty name; `.` and `..` are no usernames; a second push test is 5.03,
 * too.
 */
import { LocalError, RemoteError } from '../../../../protocol/errors/index.ts';
import { key } from '../model.ts';
import { cbor, type EndpointBenchOptions } from './endpoint-bench.ts';
import { bad, type Case, FULL, long, none, type Reference, read } from './reference-cases.ts';
import { pairing } from './reference-pairing.ts';
import { settings } from './reference-settings.ts';

const device: readonly Reference[] = [
  read('/iam/settings', { may: 'admin', mayNot: 'ann' }),
  {
    endpoint: 'PUT /iam/settings/{setting}',
    statuses: [204, 400, 403, 404, 500],
    order: 'action, body',
    body: cbor(false),
    cases: [
      [204, 'password open', 'admin', '/iam/settings/password-open-pairing', cbor(false)],
      [204, 'password invite', 'admin', '/iam/settings/password-invite-pairing', cbor(false)],
      [204, 'local open', 'admin', '/iam/settings/local-open-pairing', cbor(false)],
      [403, 'denied', 'ann', '/iam/settings/local-open-pairing', cbor(false)],
      [404, 'an unknown setting', 'admin', '/iam/settings/local-initial-pairing', cbor(false)],
      [404, 'a name every object has', 'admin', '/iam/settings/constructor', cbor(false)],
      ...bad('admin', '/iam/settings/local-open-pairing', [
        ['null', cbor(null)],
        ['a number', cbor(1)],
        ['a text', cbor('true')],
        ['a map', cbor({ Value: true })],
      ]),
      [500, 'the disk is full', 'admin', '/iam/settings/local-open-pairing', cbor(false), FULL],
    ],
  },
  {
    endpoint: 'PUT /iam/device-info/friendly-name',
    statuses: [204, 400, 403, 404, 500],
    order: 'action, body',
    body: cbor('Attic'),
    cases: [
      [204, 'a name', 'admin', '/iam/device-info/friendly-name', cbor('Attic')],
      [204, 'a name of 64 bytes', 'admin', '/iam/device-info/friendly-name', cbor('ä'.repeat(32))],
      [403, 'denied', 'ann', '/iam/device-info/friendly-name', cbor('Attic')],
      [404, 'an unknown fact', 'admin', '/iam/device-info/product-id', cbor('pr-2')],
      ...bad('admin', '/iam/device-info/friendly-name', [
        ['null', cbor(null)],
        ['a number', cbor(7)],
        ['64 characters of 128 bytes', cbor('ä'.repeat(64))],
        ['65 bytes', cbor(long(65))],
      ]),
      [500, 'the disk is full', 'admin', '/iam/device-info/friendly-name', cbor('Attic'), FULL],
    ],
  },
  read('/iam/roles', { may: 'ann', mayNot: 'stranger' }),
  read('/iam/notification-categories', { may: 'ann', mayNot: 'stranger' }),
];

const users: readonly Reference[] = [
  {
    endpoint: 'GET /iam/me',
    statuses: [205, 404],
    cases: [
      [205, 'by key', 'ann', '/iam/me'],
      [205, 'by password', 'invited', '/iam/me'],
      [205, 'whatever the role', 'locked', '/iam/me'],
      [404, 'nobody', 'stranger', '/iam/me'],
      [404, 'authenticated for open pairing', 'opened', '/iam/me'],
      [404, 'authenticated as a user that is gone', 'ghost', '/iam/me'],
    ],
  },
  read('/iam/users', { may: 'ann', mayNot: 'stranger' }),
  {
    endpoint: 'POST /iam/users',
    statuses: [201, 400, 403, 409, 500],
    order: 'body, action',
    body: cbor({ Username: 'new' }),
    cases: [
      [201, 'a new user', 'admin', '/iam/users', cbor({ Username: 'new' })],
      [201, 'a username of 64 bytes', 'admin', '/iam/users', cbor({ Username: long(64) })],
      [201, 'unknown keys are ignored', 'admin', '/iam/users', cbor({ Username: 'new', Role: 'Administrator', Password: 'pass' })],
      [403, 'denied', 'ann', '/iam/users', cbor({ Username: 'new' })],
      [409, 'there is one', 'admin', '/iam/users', cbor({ Username: 'bob' })],
      ...bad('admin', '/iam/users', [
        ['no username', cbor({})],
        ['a null username', cbor({ Username: null })],
        ['a key of other case', cbor({ username: 'new' })],
        ['the empty username', cbor({ Username: '' })],
        ['an invalid username', cbor({ Username: 'née' })],
        ['a username no path can hold', cbor({ Username: '..' })],
        ['a username over the limit', cbor({ Username: long(65) })],
        ['a bare username', cbor('new')],
      ]),
      [500, 'too many users', 'admin', '/iam/users', cbor({ Username: 'new' }), { limits: { maxUsers: 5 } }],
      [500, 'the disk is full', 'admin', '/iam/users', cbor({ Username: 'new' }), FULL],
    ],
  },
  {
    endpoint: 'GET /iam/users/{username}',
    statuses: [205, 403, 404],
    cases: [
      [205, 'any user, for an administrator', 'admin', '/iam/users/bob'],
      [205, 'oneself', 'ann', '/iam/users/ann'],
      [403, 'another user', 'ann', '/iam/users/bob'],
      [403, 'another user, whether it exists or not', 'ann', '/iam/users/ghost'],
      [404, 'no such user', 'admin', '/iam/users/ghost'],
      [404, 'a name every object has', 'admin', '/iam/users/constructor'],
    ],
  },
  {
    endpoint: 'DELETE /iam/users/{username}',
    statuses: [202, 403, 404, 500],
    cases: [
      [202, 'any user, for an administrator', 'admin', '/iam/users/bob'],
      [202, 'oneself', 'ann', '/iam/users/ann'],
      [403, 'another user', 'ann', '/iam/users/bob'],
      [404, 'no such user', 'admin', '/iam/users/ghost'],
      [500, 'the disk is full', 'admin', '/iam/users/bob', none, FULL],
    ],
  },
  {
    endpoint: 'PUT /iam/users/{username}/fingerprints/{fingerprint}',
    statuses: [204, 400, 403, 404, 409, 500],
    order: 'body, action',
    body: cbor({ FingerprintName: 'watch' }),
    cases: [
      [204, 'with a name', 'ann', `/iam/users/ann/fingerprints/${key(7)}`, cbor({ FingerprintName: 'watch' })],
      [204, 'without a name', 'admin', `/iam/users/bob/fingerprints/${key(7)}`, cbor({})],
      [204, 'null for no name', 'admin', `/iam/users/bob/fingerprints/${key(7)}`, cbor({ FingerprintName: null })],
      [403, 'denied', 'ann', `/iam/users/bob/fingerprints/${key(7)}`, cbor({})],
      [404, 'no such user', 'admin', `/iam/users/ghost/fingerprints/${key(7)}`, cbor({})],
      [409, 'another user’s', 'admin', `/iam/users/bob/fingerprints/${key(2)}`, cbor({})],
      [409, 'the user’s own', 'ann', `/iam/users/ann/fingerprints/${key(22)}`, cbor({})],
      [400, 'a short fingerprint', 'admin', '/iam/users/bob/fingerprints/0123', cbor({})],
      [400, 'capital digits', 'admin', `/iam/users/bob/fingerprints/${'AB'.repeat(32)}`, cbor({})],
      ...bad('admin', `/iam/users/bob/fingerprints/${key(7)}`, [
        ['a bare name', cbor('watch')],
        ['null', cbor(null)],
        ['a name over the limit', cbor({ FingerprintName: long(65) })],
        ['a name that is no text', cbor({ FingerprintName: true })],
      ]),
      [500, 'too many', 'ann', `/iam/users/ann/fingerprints/${key(7)}`, cbor({}), { limits: { maxFingerprintsPerUser: 2 } }],
      [500, 'the disk is full', 'ann', `/iam/users/ann/fingerprints/${key(7)}`, cbor({}), FULL],
    ],
  },
  {
    endpoint: 'DELETE /iam/users/{username}/fingerprints/{fingerprint}',
    statuses: [202, 403, 404, 500],
    cases: [
      [202, 'one’s own', 'ann', `/iam/users/ann/fingerprints/${key(22)}`],
      [403, 'denied', 'ann', `/iam/users/admin/fingerprints/${key(1)}`],
      [404, 'no such user', 'admin', `/iam/users/ghost/fingerprints/${key(2)}`],
      [404, 'no such fingerprint', 'admin', `/iam/users/ann/fingerprints/${key(7)}`],
      [404, 'another user’s fingerprint', 'admin', `/iam/users/ann/fingerprints/${key(1)}`],
      [500, 'the disk is full', 'ann', `/iam/users/ann/fingerprints/${key(22)}`, none, FULL],
    ],
  },
];

const pushFails = (error: Error): EndpointBenchOptions => ({ push: () => Promise.reject(error) });

/** The action that policies are asked for (docs/iam.md, Endpoints); only `GET /iam/me` asks for none. */
export const actions: Readonly<Record<string, string>> = {
  'GET /iam/pairing': 'IAM:GetPairing',
  'POST /iam/pairing/local-open': 'IAM:PairingLocalOpen',
  'POST /iam/pairing/password-open': 'IAM:PairingPasswordOpen',
  'POST /iam/pairing/local-initial': 'IAM:PairingLocalInitial',
  'POST /iam/pairing/password-invite': 'IAM:PairingPasswordInvite',
  'GET /iam/settings': 'IAM:GetSettings',
  'PUT /iam/settings/{setting}': 'IAM:SetSettings',
  'PUT /iam/device-info/friendly-name': 'IAM:SetDeviceInfo',
  'GET /iam/roles': 'IAM:ListRoles',
  'GET /iam/notification-categories': 'IAM:ListNotificationCategories',
  'GET /iam/users': 'IAM:ListUsers',
  'POST /iam/users': 'IAM:CreateUser',
  'GET /iam/users/{username}': 'IAM:GetUser',
  'DELETE /iam/users/{username}': 'IAM:DeleteUser',
  'PUT /iam/users/{username}/fingerprints/{fingerprint}': 'IAM:SetUserFingerprint',
  'DELETE /iam/users/{username}/fingerprints/{fingerprint}': 'IAM:SetUserFingerprint',
  'PUT /iam/users/{username}/username': 'IAM:SetUserUsername',
  'PUT /iam/users/{username}/display-name': 'IAM:SetUserDisplayName',
  'PUT /iam/users/{username}/password': 'IAM:SetUserPassword',
  'PUT /iam/users/{username}/role': 'IAM:SetUserRole',
  'PUT /iam/users/{username}/sct': 'IAM:SetUserSct',
  'PUT /iam/users/{username}/oauth-subject': 'IAM:SetUserOauthSubject',
  'PUT /iam/users/{username}/fingerprint': 'IAM:SetUserFingerprint',
  'PUT /iam/users/{username}/push': 'IAM:SetUserPush',
  'PUT /iam/users/{username}/notification-categories': 'IAM:SetUserNotificationCategories',
  'POST /iam/users/{username}/push-test': 'IAM:SendUserPushTest',
};

export const references: readonly Reference[] = [
  ...pairing,
  ...device,
  ...users,
  ...settings,
  {
    endpoint: 'POST /iam/users/{username}/push-test',
    statuses: [201, 403, 404, 500, 503],
    cases: [
      [201, 'sent', 'ann', '/iam/users/ann/push-test'],
      [201, 'the provider refuses', 'ann', '/iam/users/ann/push-test', none, { push: async () => ({ statusCode: 404, body: '{}' }) }],
      [403, 'denied', 'ann', '/iam/users/bob/push-test'],
      [404, 'no such user', 'admin', '/iam/users/ghost/push-test'],
      [404, 'no push settings', 'admin', '/iam/users/bob/push-test'],
      ...['NOT_ATTACHED', 'STOPPED', 'CLOSED'].map(
        (code): Case => [503, code, 'ann', '/iam/users/ann/push-test', none, pushFails(new LocalError(code as 'CLOSED', 'gone'))],
      ),
      ...['FORBIDDEN', 'BAD_RESPONSE', 'TOO_MANY_REQUESTS', 'NOT_FOUND'].map(
        (code): Case => [500, code, 'ann', '/iam/users/ann/push-test', none, pushFails(new RemoteError(code as 'FORBIDDEN', 'no'))],
      ),
      [500, 'an error that is in no catalogue', 'ann', '/iam/users/ann/push-test', none, pushFails(new TypeError('no'))],
    ],
  },
];
