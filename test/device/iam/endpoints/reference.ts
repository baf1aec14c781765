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
import { type Body, type CallerName, cbor, type EndpointBenchOptions } from './endpoint-bench.ts';

/** A status, the reason, the caller, the path, and other conditions. */
export type Case = readonly [status: number, why: string, caller: CallerName, path: string, body?: Body, options?: EndpointBenchOptions];

export interface Reference {
  /** Method and path as in docs/iam.md. */
  readonly endpoint: string;
  readonly statuses: readonly number[];
  /** Whether policies are asked before the body is checked, or after it. */
  readonly order?: 'action, body' | 'body, action';
  /** A valid body, where one is needed. */
  readonly body?: Body;
  readonly cases: readonly Case[];
}

const FULL: EndpointBenchOptions = { save: 'fails' };
const none: Body = {};
const text = (contentFormat: number | undefined, bytes: string): Body => ({
  payload: new TextEncoder().encode(bytes),
  ...(contentFormat === undefined ? {} : { contentFormat }),
});
/** Bodies that are invalid at every endpoint that needs one. */
const broken: readonly (readonly [string, Body])[] = [
  ['no body', none],
  ['a content format without payload', { contentFormat: 60 }],
  ['no content format', { payload: cbor({ Username: 'new' }).payload! }],
  ['JSON', text(50, '{"Username":"new"}')],
  ['octets', { ...cbor('new'), contentFormat: 42 }],
  ['broken CBOR', { contentFormat: 60, payload: Uint8Array.of(0xa1, 0x68) }],
  ['bytes after the item', { contentFormat: 60, payload: Uint8Array.of(0xf5, 0xf5) }],
];
const bad = (caller: CallerName, path: string, more: readonly (readonly [string, Body])[]): Case[] =>
  [...broken, ...more].map(([why, body]) => [400, why, caller, path, body]);
/** A GET that some callers may and others may not. */
const read = (path: string, { may, mayNot }: Record<'may' | 'mayNot', CallerName>): Reference => ({
  endpoint: `GET ${path}`,
  statuses: [205, 403],
  cases: [
    [205, 'whoever may', may, path],
    [403, 'denied', mayNot, path],
  ],
});
const long = (length: number): string => 'x'.repeat(length);

const pairing: readonly Reference[] = [
  read('/iam/pairing', { may: 'stranger', mayNot: 'locked' }),
  {
    endpoint: 'POST /iam/pairing/local-open',
    statuses: [201, 400, 403, 404, 409, 500],
    order: 'action, body',
    body: cbor({ Username: 'new' }),
    cases: [
      [201, 'a new user', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new' })],
      [201, 'with a name for the key', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new', FingerprintName: 'phone' })],
      [201, 'null for no name', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new', FingerprintName: null })],
      [201, 'an unknown key is ignored', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new', Password: 'x', Extra: [{}] })],
      [201, 'the same user again', 'admin', '/iam/pairing/local-open', cbor({ Username: 'admin' })],
      [404, 'off', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new' }), { state: { localOpenPairing: false } }],
      [403, 'denied', 'locked', '/iam/pairing/local-open', cbor({ Username: 'new' })],
      [403, 'not local', 'remote', '/iam/pairing/local-open', cbor({ Username: 'new' })],
      [403, 'no role for it', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new' }), { without: ['openPairingRole'] }],
      [409, 'the name is another user’s', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'ann' })],
      [409, 'the key is another user’s', 'admin', '/iam/pairing/local-open', cbor({ Username: 'new' })],
      ...bad('stranger', '/iam/pairing/local-open', [
        ['no map', cbor('new')],
        ['no username', cbor({ FingerprintName: 'phone' })],
        ['a null username', cbor({ Username: null })],
        ['a number', cbor({ Username: 7 })],
        ['the empty username', cbor({ Username: '' })],
        ['an invalid username', cbor({ Username: 'New' })],
        ['a username over the limit', cbor({ Username: long(65) })],
        ['a username of 1024 bytes', cbor({ Username: long(1024) })],
        ['a name of 1024 bytes', cbor({ Username: 'new', FingerprintName: long(1024) })],
        ['a name that is no text', cbor({ Username: 'new', FingerprintName: 7 })],
      ]),
      [500, 'too many users', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new' }), { limits: { maxUsers: 5 } }],
      [500, 'the disk is full', 'stranger', '/iam/pairing/local-open', cbor({ Username: 'new' }), FULL],
    ],
  },
  {
    endpoint: 'POST /iam/pairing/password-open',
    statuses: [201, 400, 401, 403, 404, 409, 500],
    order: 'action, body',
    body: cbor({ Username: 'new' }),
    cases: [
      [201, 'a new user', 'opened', '/iam/pairing/password-open', cbor({ Username: 'new', FingerprintName: 'phone' })],
      [404, 'off', 'opened', '/iam/pairing/password-open', cbor({ Username: 'new' }), { state: { passwordOpenPairing: false } }],
      [403, 'denied', 'locked', '/iam/pairing/password-open', cbor({ Username: 'new' })],
      [403, 'no role for it', 'opened', '/iam/pairing/password-open', cbor({ Username: 'new' }), { without: ['openPairingRole'] }],
      [403, 'no password', 'opened', '/iam/pairing/password-open', cbor({ Username: 'new' }), { without: ['openPairingPasswordSealed'] }],
      [401, 'not authenticated', 'stranger', '/iam/pairing/password-open', cbor({ Username: 'new' })],
      [401, 'authenticated as a user', 'invited', '/iam/pairing/password-open', cbor({ Username: 'new' })],
      [409, 'the name is another user’s', 'opened', '/iam/pairing/password-open', cbor({ Username: 'ann' })],
      ...bad('opened', '/iam/pairing/password-open', [
        ['a password', cbor({ Username: 'new', Password: 'open-password' })],
        ['a null password', cbor({ Username: 'new', Password: null })],
        ['no username', cbor({})],
        ['an invalid username', cbor({ Username: 'a b' })],
      ]),
      [500, 'the disk is full', 'opened', '/iam/pairing/password-open', cbor({ Username: 'new' }), FULL],
    ],
  },
  {
    endpoint: 'POST /iam/pairing/local-initial',
    statuses: [201, 400, 403, 404, 409, 500],
    order: 'action, body',
    cases: [
      [201, 'without body', 'stranger', '/iam/pairing/local-initial'],
      [201, 'with a name for the key', 'stranger', '/iam/pairing/local-initial', cbor({ FingerprintName: 'phone' })],
      [404, 'off', 'stranger', '/iam/pairing/local-initial', none, { state: { localInitialPairing: false } }],
      [404, 'no initial user named', 'stranger', '/iam/pairing/local-initial', none, { without: ['initialPairingUsername'] }],
      [404, 'no such user', 'stranger', '/iam/pairing/local-initial', none, { state: { initialPairingUsername: 'ghost' } }],
      [403, 'denied', 'locked', '/iam/pairing/local-initial'],
      [403, 'not local', 'remote', '/iam/pairing/local-initial'],
      [409, 'paired already', 'stranger', '/iam/pairing/local-initial', none, { state: { initialPairingUsername: 'ann' } }],
      [409, 'the key is another user’s', 'admin', '/iam/pairing/local-initial'],
      [400, 'a body without the name', 'stranger', '/iam/pairing/local-initial', cbor({})],
      [400, 'a null name', 'stranger', '/iam/pairing/local-initial', cbor({ FingerprintName: null })],
      [400, 'a name over the limit', 'stranger', '/iam/pairing/local-initial', cbor({ FingerprintName: long(65) })],
      [400, 'a bare name', 'stranger', '/iam/pairing/local-initial', cbor('phone')],
      [400, 'JSON', 'stranger', '/iam/pairing/local-initial', text(50, '{"FingerprintName":"phone"}')],
      [400, 'broken CBOR', 'stranger', '/iam/pairing/local-initial', text(60, '\u007f')],
      [500, 'the disk is full', 'stranger', '/iam/pairing/local-initial', none, FULL],
    ],
  },
  {
    endpoint: 'POST /iam/pairing/password-invite',
    statuses: [201, 401, 403, 404, 409, 500],
    cases: [
      [201, 'without body', 'invited', '/iam/pairing/password-invite'],
      [201, 'with a name for the key', 'invited', '/iam/pairing/password-invite', cbor({ FingerprintName: 'phone' })],
      ...[...broken, ['a name over the limit', cbor({ FingerprintName: long(65) })] as const, ['a bare name', cbor('phone')] as const].map(
        ([why, body]): Case => [201, `in spite of ${why}`, 'invited', '/iam/pairing/password-invite', body],
      ),
      [201, 'paired to this user already', 'annAsAnn', '/iam/pairing/password-invite'],
      [404, 'off', 'invited', '/iam/pairing/password-invite', none, { state: { passwordInvitePairing: false } }],
      [403, 'denied', 'locked', '/iam/pairing/password-invite'],
      [401, 'not authenticated', 'stranger', '/iam/pairing/password-invite'],
      [401, 'authenticated for open pairing', 'opened', '/iam/pairing/password-invite'],
      [409, 'the key is another user’s', 'annAsBob', '/iam/pairing/password-invite'],
      [500, 'the user vanished', 'ghost', '/iam/pairing/password-invite'],
      [500, 'the disk is full', 'invited', '/iam/pairing/password-invite', none, FULL],
    ],
  },
];

const device: readonly Reference[] = [
  read('/iam/settings', { may: 'admin', mayNot: 'ann' }),
  {
    endpoint: 'PUT /iam/settings/:setting',
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
    endpoint: 'GET /iam/users/:username',
    statuses: [205, 403, 404],
    cases: [
      [205, 'any user, for an administrator', 'admin', '/iam/users/bob'],
      [205, 'oneself', 'ann', '/iam/users/ann'],
      [403, 'somebody else', 'ann', '/iam/users/bob'],
      [403, 'another user, whether it exists or not', 'ann', '/iam/users/ghost'],
      [404, 'no such user', 'admin', '/iam/users/ghost'],
      [404, 'a name every object has', 'admin', '/iam/users/constructor'],
    ],
  },
  {
    endpoint: 'DELETE /iam/users/:username',
    statuses: [202, 403, 404, 500],
    cases: [
      [202, 'any user, for an administrator', 'admin', '/iam/users/bob'],
      [202, 'oneself', 'ann', '/iam/users/ann'],
      [403, 'somebody else', 'ann', '/iam/users/bob'],
      [404, 'no such user', 'admin', '/iam/users/ghost'],
      [500, 'the disk is full', 'admin', '/iam/users/bob', none, FULL],
    ],
  },
  {
    endpoint: 'PUT /iam/users/:username/fingerprints/:fingerprint',
    statuses: [204, 400, 403, 404, 409, 500],
    order: 'body, action',
    body: cbor({ FingerprintName: 'watch' }),
    cases: [
      [204, 'with a name', 'ann', `/iam/users/ann/fingerprints/${key(7)}`, cbor({ FingerprintName: 'watch' })],
      [204, 'without a name', 'admin', `/iam/users/bob/fingerprints/${key(7)}`, cbor({})],
      [204, 'null for no name', 'admin', `/iam/users/bob/fingerprints/${key(7)}`, cbor({ FingerprintName: null })],
      [403, 'denied', 'ann', `/iam/users/bob/fingerprints/${key(7)}`, cbor({})],
      [404, 'no such user', 'admin', `/iam/users/ghost/fingerprints/${key(7)}`, cbor({})],
      [409, 'somebody else’s', 'admin', `/iam/users/bob/fingerprints/${key(2)}`, cbor({})],
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
    endpoint: 'DELETE /iam/users/:username/fingerprints/:fingerprint',
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

/** Cases that all settings of a user share. */
function setting(
  name: string,
  good: readonly (readonly [string, Body])[],
  wrong: readonly (readonly [string, Body])[],
  more: { readonly statuses?: readonly number[]; readonly cases?: readonly Case[] } = {},
): Reference {
  const [, body = none] = good[0] ?? [];
  const path = `/iam/users/ann/${name}`;
  return {
    endpoint: `PUT /iam/users/:username/${name}`,
    statuses: [204, 400, 403, 404, ...(more.statuses ?? []), 500],
    order: 'body, action',
    body,
    cases: [
      ...good.map(([why, value]): Case => [204, why, 'admin', path, value]),
      ...bad('admin', path, [...wrong, ['a number', cbor(7)], ['a text of 1024 bytes', cbor(long(1024))]]),
      [403, 'denied', 'ann', `/iam/users/bob/${name}`, body],
      [403, 'denied to an unpaired client', 'stranger', path, body],
      [404, 'no such user', 'admin', `/iam/users/ghost/${name}`, body],
      [500, 'the disk is full', 'admin', path, body, FULL],
      ...(more.cases ?? []),
    ],
  };
}

const settings: readonly Reference[] = [
  setting(
    'username',
    [
      ['another name', cbor('anna')],
      ['a name of 64 bytes', cbor(long(64))],
    ],
    [
      ['null', cbor(null)],
      ['an empty name', cbor('')],
      ['an invalid name', cbor('Ann')],
      ['a name of 65 bytes', cbor(long(65))],
    ],
    {
      statuses: [409],
      cases: [
        [409, 'taken', 'admin', '/iam/users/ann/username', cbor('bob')],
        [409, 'the same name', 'admin', '/iam/users/ann/username', cbor('ann')],
        [403, 'one’s own', 'ann', '/iam/users/ann/username', cbor('anna')],
      ],
    },
  ),
  setting(
    'display-name',
    [
      ['a name', cbor('Änne')],
      ['none', cbor(null)],
      ['64 bytes', cbor(long(64))],
    ],
    [['65 bytes', cbor(long(65))]],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/display-name', cbor('Änne')]] },
  ),
  setting(
    'password',
    [
      ['4 bytes', cbor('pass')],
      ['64 bytes', cbor(long(64))],
      ['none', cbor(null)],
    ],
    [
      ['an empty one', cbor('')],
      ['3 bytes', cbor('abc')],
      ['65 bytes', cbor(long(65))],
    ],
    { cases: [[403, 'one’s own', 'ann', '/iam/users/ann/password', cbor('pass')]] },
  ),
  setting('role', [['a role', cbor('Standard')]], [['null', cbor(null)]], {
    cases: [
      [404, 'no such role', 'admin', '/iam/users/ann/role', cbor('Emperor')],
      [404, 'a name every object has', 'admin', '/iam/users/ann/role', cbor('toString')],
    ],
  }),
  setting(
    'sct',
    [['a token', cbor('abcdefghijkl')]],
    [
      ['null', cbor(null)],
      ['65 bytes', cbor(long(65))],
    ],
  ),
  setting(
    'oauth-subject',
    [
      ['a subject', cbor('subject')],
      ['none', cbor(null)],
    ],
    [['65 bytes', cbor(long(65))]],
  ),
  setting(
    'fingerprint',
    [
      ['a fingerprint', cbor(key(7))],
      ['none', cbor(null)],
    ],
    [
      ['63 digits', cbor(key(7).slice(1))],
      ['65 digits', cbor(`0${key(7)}`)],
      ['no hex digits', cbor(long(64))],
    ],
    {
      statuses: [409],
      cases: [
        [409, 'somebody else’s', 'admin', '/iam/users/ann/fingerprint', cbor(key(1))],
        [204, 'one’s own', 'ann', '/iam/users/ann/fingerprint', cbor(key(7))],
      ],
    },
  ),
  setting(
    'push',
    [
      ['token and project', cbor({ Token: 'token', ProjectId: 'project' })],
      ['the longest', cbor({ Token: long(1023), ProjectId: long(255) })],
      ['more than that', cbor({ Token: 'token', ProjectId: 'project', Topic: 'news' })],
    ],
    [
      ['no token', cbor({ ProjectId: 'project' })],
      ['no project', cbor({ Token: 'token' })],
      ['null for a token', cbor({ Token: null, ProjectId: 'project' })],
      ['null', cbor(null)],
      ['a token of 1024 bytes', cbor({ Token: long(1024), ProjectId: 'project' })],
      ['a project id of 256 bytes', cbor({ Token: 'token', ProjectId: long(256) })],
    ],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/push', cbor({ Token: 'token', ProjectId: 'project' })]] },
  ),
  setting(
    'notification-categories',
    [
      ['some', cbor(['CRITICAL'])],
      ['none', cbor([])],
      ['one twice', cbor(['CRITICAL', 'CRITICAL'])],
    ],
    [
      ['null', cbor(null)],
      ['a bare text', cbor('INFO')],
      ['one the device does not have', cbor(['INFO', 'GOSSIP'])],
      ['one that is no text', cbor(['INFO', 1])],
      ['null among them', cbor(['INFO', null])],
    ],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/notification-categories', cbor(['INFO', 'CRITICAL'])]] },
  ),
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
  'PUT /iam/settings/:setting': 'IAM:SetSettings',
  'PUT /iam/device-info/friendly-name': 'IAM:SetDeviceInfo',
  'GET /iam/roles': 'IAM:ListRoles',
  'GET /iam/notification-categories': 'IAM:ListNotificationCategories',
  'GET /iam/users': 'IAM:ListUsers',
  'POST /iam/users': 'IAM:CreateUser',
  'GET /iam/users/:username': 'IAM:GetUser',
  'DELETE /iam/users/:username': 'IAM:DeleteUser',
  'PUT /iam/users/:username/fingerprints/:fingerprint': 'IAM:SetUserFingerprint',
  'DELETE /iam/users/:username/fingerprints/:fingerprint': 'IAM:SetUserFingerprint',
  'PUT /iam/users/:username/username': 'IAM:SetUserUsername',
  'PUT /iam/users/:username/display-name': 'IAM:SetUserDisplayName',
  'PUT /iam/users/:username/password': 'IAM:SetUserPassword',
  'PUT /iam/users/:username/role': 'IAM:SetUserRole',
  'PUT /iam/users/:username/sct': 'IAM:SetUserSct',
  'PUT /iam/users/:username/oauth-subject': 'IAM:SetUserOauthSubject',
  'PUT /iam/users/:username/fingerprint': 'IAM:SetUserFingerprint',
  'PUT /iam/users/:username/push': 'IAM:SetUserPush',
  'PUT /iam/users/:username/notification-categories': 'IAM:SetUserNotificationCategories',
  'POST /iam/users/:username/push-test': 'IAM:SendUserPushTest',
};

export const references: readonly Reference[] = [
  ...pairing,
  ...device,
  ...users,
  ...settings,
  {
    endpoint: 'POST /iam/users/:username/push-test',
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
