/** `IamUtil` against a device that gives each answer: the request, the result, and the error for each status. */
import { describe, expect, test } from 'vitest';
import { IamError, type IamUtil } from '../../../client/node.ts';
import type { CborValue } from '../../../protocol/cbor/index.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import { cbor, ScriptedDevice, user } from './scripted-device.ts';

const FP = '0123456789abcdef'.repeat(4);

let scripted: ScriptedDevice;

/** Name, call, request line, success status, request body, result. */
type Operation = [string, (iam: IamUtil) => Promise<unknown>, string, number | [number, CborValue], (CborValue | undefined)?, unknown?];

const operations: readonly Operation[] = [
  ['pairLocalOpen', (iam) => iam.pairLocalOpen('bob'), 'POST /iam/pairing/local-open', 201, { Username: 'bob' }],
  [
    'pairLocalOpen with a name of the key',
    (iam) => iam.pairLocalOpen('bob', { fingerprintName: 'phone' }),
    'POST /iam/pairing/local-open',
    201,
    { Username: 'bob', FingerprintName: 'phone' },
  ],
  ['pairLocalInitial', (iam) => iam.pairLocalInitial(), 'POST /iam/pairing/local-initial', 201],
  [
    'pairLocalInitial with a name of the key',
    (iam) => iam.pairLocalInitial({ fingerprintName: 'phone' }),
    'POST /iam/pairing/local-initial',
    201,
    { FingerprintName: 'phone' },
  ],
  [
    'getAvailablePairingModes',
    (iam) => iam.getAvailablePairingModes(),
    'GET /iam/pairing',
    [205, { Modes: ['LocalOpen', 'Teleport'] }],
    undefined,
    ['LocalOpen'],
  ],
  [
    'getDeviceDetails',
    (iam) => iam.getDeviceDetails(),
    'GET /iam/pairing',
    [205, { Modes: [], AppName: 'lamp' }],
    undefined,
    { modes: [], appName: 'lamp' },
  ],
  [
    'getCurrentUser',
    (iam) => iam.getCurrentUser(),
    'GET /iam/me',
    [205, user('bob', { Role: 'Guest' })],
    undefined,
    { username: 'bob', role: 'Guest', fingerprints: [], notificationCategories: [] },
  ],
  ['isCurrentUserPaired', (iam) => iam.isCurrentUserPaired(), 'GET /iam/me', [205, user('bob')], undefined, true],
  [
    'getUser',
    (iam) => iam.getUser('bob'),
    'GET /iam/users/bob',
    [205, user('bob', { Sct: 'token' })],
    undefined,
    { username: 'bob', sct: 'token', fingerprints: [], notificationCategories: [] },
  ],
  ['listUsers', (iam) => iam.listUsers(), 'GET /iam/users', [205, ['admin', 'bob']], undefined, ['admin', 'bob']],
  ['listRoles', (iam) => iam.listRoles(), 'GET /iam/roles', [205, ['Guest']], undefined, ['Guest']],
  ['deleteUser', (iam) => iam.deleteUser('bob'), 'DELETE /iam/users/bob', 202],
  ['renameUser', (iam) => iam.renameUser('bob', 'rob'), 'PUT /iam/users/bob/username', 204, 'rob'],
  ['updateUserPassword', (iam) => iam.updateUserPassword('bob', 'secret'), 'PUT /iam/users/bob/password', 204, 'secret'],
  ['updateUserPassword null', (iam) => iam.updateUserPassword('bob', null), 'PUT /iam/users/bob/password', 204, null],
  ['updateUserRole', (iam) => iam.updateUserRole('bob', 'Guest'), 'PUT /iam/users/bob/role', 204, 'Guest'],
  ['updateUserDisplayName', (iam) => iam.updateUserDisplayName('bob', 'Bob B.'), 'PUT /iam/users/bob/display-name', 204, 'Bob B.'],
  ['updateUserDisplayName null', (iam) => iam.updateUserDisplayName('bob', null), 'PUT /iam/users/bob/display-name', 204, null],
  ['updateUserSct', (iam) => iam.updateUserSct('bob', 'token'), 'PUT /iam/users/bob/sct', 204, 'token'],
  ['updateUserOauthSubject', (iam) => iam.updateUserOauthSubject('bob', 'sub'), 'PUT /iam/users/bob/oauth-subject', 204, 'sub'],
  ['updateUserFingerprint', (iam) => iam.updateUserFingerprint('bob', FP), 'PUT /iam/users/bob/fingerprint', 204, FP],
  ['updateUserFingerprint null', (iam) => iam.updateUserFingerprint('bob', null), 'PUT /iam/users/bob/fingerprint', 204, null],
  [
    'addUserFingerprint',
    (iam) => iam.addUserFingerprint('bob', FP, 'phone'),
    `PUT /iam/users/bob/fingerprints/${FP}`,
    204,
    { FingerprintName: 'phone' },
  ],
  ['addUserFingerprint without a name', (iam) => iam.addUserFingerprint('bob', FP), `PUT /iam/users/bob/fingerprints/${FP}`, 204, {}],
  ['removeUserFingerprint', (iam) => iam.removeUserFingerprint('bob', FP), `DELETE /iam/users/bob/fingerprints/${FP}`, 202],
  [
    'getNotificationCategories',
    (iam) => iam.getNotificationCategories(),
    'GET /iam/notification-categories',
    [205, ['heat']],
    undefined,
    ['heat'],
  ],
  [
    'updateUserNotificationCategories',
    (iam) => iam.updateUserNotificationCategories('bob', []),
    'PUT /iam/users/bob/notification-categories',
    204,
    [],
  ],
  [
    'updateUserPush',
    (iam) => iam.updateUserPush('bob', { token: 't', projectId: 'p' }),
    'PUT /iam/users/bob/push',
    204,
    { Token: 't', ProjectId: 'p' },
  ],
  [
    'sendUserPushTest',
    (iam) => iam.sendUserPushTest('bob'),
    'POST /iam/users/bob/push-test',
    [201, { StatusCode: 404, Body: 'gone' }],
    undefined,
    { statusCode: 404, body: 'gone' },
  ],
  [
    'getSettings',
    (iam) => iam.getSettings(),
    'GET /iam/settings',
    [205, { PasswordOpenPairing: true, PasswordInvitePairing: false, LocalOpenPairing: true, PasswordOpenPassword: 'pw' }],
    undefined,
    { passwordOpenPairing: true, passwordInvitePairing: false, localOpenPairing: true, passwordOpenPassword: 'pw' },
  ],
  ['updateSetting', (iam) => iam.updateSetting('local-open-pairing', false), 'PUT /iam/settings/local-open-pairing', 204, false],
  ['updateFriendlyName', (iam) => iam.updateFriendlyName('Lamp'), 'PUT /iam/device-info/friendly-name', 204, 'Lamp'],
];

describe('the request and its result:', () => {
  test.each(operations)('%s', async (_, call, line, success, body, result) => {
    scripted = await ScriptedDevice.make({ [line]: typeof success === 'number' ? success : cbor(...success) });
    expect(await scripted.outcome(call(scripted.iam))).toEqual(result);
    expect(scripted.asked).toEqual([body === undefined ? [line] : [line, body]]);
  });

  test('a name is one path segment, whatever it contains', async () => {
    scripted = await ScriptedDevice.make();
    await scripted.outcome(scripted.iam.getUser('a/b c%2F'));
    expect(scripted.asked).toEqual([['GET /iam/users/a%2Fb%20c%252F']]);
  });
});

describe('each status is an error:', () => {
  const always = { 400: 'INVALID_INPUT', 401: 'AUTHENTICATION_ERROR', 403: 'BLOCKED_BY_DEVICE_CONFIGURATION', 429: 'TOO_MANY_REQUESTS' };
  const others = { 413: 'INVALID_INPUT', 418: 'BAD_RESPONSE', 500: 'FAILED', 503: 'FAILED' };
  const own: Readonly<Record<string, Readonly<Record<number, unknown>>>> = {
    pairLocalOpen: { 404: 'PAIRING_MODE_DISABLED', 409: 'USERNAME_EXISTS' },
    pairLocalInitial: { 404: 'PAIRING_MODE_DISABLED', 409: 'INITIAL_USER_ALREADY_PAIRED' },
    getDeviceDetails: { 404: 'IAM_NOT_SUPPORTED' },
    getCurrentUser: { 404: 'USER_DOES_NOT_EXIST' },
    isCurrentUserPaired: { 404: false },
    getUser: { 404: 'USER_DOES_NOT_EXIST' },
    listUsers: { 404: 'IAM_NOT_SUPPORTED' },
    deleteUser: { 404: 'USER_DOES_NOT_EXIST' },
    renameUser: { 404: 'USER_DOES_NOT_EXIST', 409: 'USERNAME_EXISTS' },
    updateUserPassword: { 404: 'USER_DOES_NOT_EXIST' },
    updateUserRole: { 404: 'USER_DOES_NOT_EXIST' },
    updateUserFingerprint: { 404: 'USER_DOES_NOT_EXIST', 409: 'FINGERPRINT_IN_USE' },
    addUserFingerprint: { 404: 'USER_DOES_NOT_EXIST', 409: 'FINGERPRINT_IN_USE' },
    removeUserFingerprint: { 404: 'USER_DOES_NOT_EXIST' },
    updateUserPush: { 404: 'USER_DOES_NOT_EXIST' },
    sendUserPushTest: { 404: 'USER_DOES_NOT_EXIST', 503: 'NOT_ATTACHED' },
    getSettings: { 404: 'IAM_NOT_SUPPORTED' },
    updateSetting: { 404: 'IAM_NOT_SUPPORTED' },
  };

  test.each(operations.filter(([name]) => own[name] !== undefined))('%s', async (name, call, line) => {
    const expected: Record<number, unknown> = { ...always, ...others, ...own[name] };
    const statuses = Object.keys(expected).map(Number);
    scripted = await ScriptedDevice.make({ [line]: statuses });
    for (const status of statuses) expect([status, await scripted.outcome(call(scripted.iam))]).toEqual([status, expected[status]]);
  });

  test('the error is remote, and has the status and the device’s text without control characters', async () => {
    const said = new TextEncoder().encode('no\u001b[2J room');
    scripted = await ScriptedDevice.make({ 'GET /iam/users': { status: 500, payload: said } });
    const error = await scripted.failure(scripted.iam.listUsers());
    expect(error).toBeInstanceOf(IamError);
    expect(error).toBeInstanceOf(RemoteError);
    expect(error).toMatchObject({ code: 'FAILED', status: 500, diagnostic: 'no [2J room' });
    expect(error.message).toBe('the device could not do it (the device answered 5.00: "no [2J room")');
  });

  test.each([
    ['broken CBOR', { status: 205, contentFormat: 60, payload: Uint8Array.of(0xff) }],
    ['another shape', cbor(205, { Users: [] })],
    ['another content format', { status: 205, contentFormat: 0, payload: Uint8Array.of(0x80) }],
    ['nothing', { status: 205 }],
  ])('%s is BAD_RESPONSE', async (_, reply) => {
    scripted = await ScriptedDevice.make({ 'GET /iam/users': reply });
    const error = await scripted.failure(scripted.iam.listUsers());
    expect(error).toBeInstanceOf(RemoteError);
    expect(error.code).toBe('BAD_RESPONSE');
  });

  test.each(['', '.', '..'])('an invalid name (%j) is INVALID_INPUT, and no request is sent', async (name) => {
    scripted = await ScriptedDevice.make();
    const error = await scripted.failure(scripted.iam.deleteUser(name));
    expect(error).toBeInstanceOf(LocalError);
    expect(error.code).toBe('INVALID_INPUT');
    expect(scripted.asked).toEqual([]);
  });

  test('a call after close is STOPPED', async () => {
    scripted = await ScriptedDevice.make();
    await scripted.settle(scripted.connection.close());
    expect(await scripted.outcome(scripted.iam.listUsers())).toBe('STOPPED');
  });
});

describe('an ambiguous 4.04:', () => {
  const role = 'PUT /iam/users/bob/role';
  test.each<[string, Parameters<typeof ScriptedDevice.make>[0], string]>([
    ['the user is there', { 'GET /iam/roles': cbor(205, ['Guest']), 'GET /iam/users/bob': cbor(205, user('bob')) }, 'ROLE_DOES_NOT_EXIST'],
    ['the user is not there', { 'GET /iam/roles': cbor(205, ['Guest']), 'GET /iam/users/bob': 404 }, 'USER_DOES_NOT_EXIST'],
    ['the role is there', { 'GET /iam/roles': cbor(205, ['Other']) }, 'USER_DOES_NOT_EXIST'],
    ['roles may not be listed', { 'GET /iam/roles': 403, 'GET /iam/users/bob': cbor(205, user('bob')) }, 'ROLE_DOES_NOT_EXIST'],
    ['the user may not be seen', { 'GET /iam/roles': cbor(205, ['Guest']), 'GET /iam/users/bob': 403 }, 'ROLE_DOES_NOT_EXIST'],
  ])('updateUserRole when %s', async (_, answers, code) => {
    scripted = await ScriptedDevice.make({ [role]: 404, ...answers });
    const error = await scripted.failure(scripted.iam.updateUserRole('bob', 'Other'));
    expect(error).toMatchObject({ code, status: 404, diagnostic: 'said so' });
  });

  test.each([
    ['removeUserFingerprint', (iam: IamUtil) => iam.removeUserFingerprint('bob', FP)],
    ['sendUserPushTest', (iam: IamUtil) => iam.sendUserPushTest('bob')],
  ])('%s for an existing user is NOT_FOUND', async (_, call) => {
    scripted = await ScriptedDevice.make({ 'GET /iam/users/bob': cbor(205, user('bob')) });
    expect(await scripted.outcome(call(scripted.iam))).toBe('NOT_FOUND');
  });
});

describe('createUser', () => {
  const created = { 'POST /iam/users': cbor(201, user('bob', { Sct: 'token' })) };
  const lines = () => scripted.asked.map(([line]) => line);

  test('makes the user, gives it role and display name and then the password', async () => {
    const set = { 'PUT /iam/users/bob/role': 204, 'PUT /iam/users/bob/display-name': 204, 'PUT /iam/users/bob/password': 204 };
    scripted = await ScriptedDevice.make({ ...created, ...set });
    const made = await scripted.outcome(scripted.iam.createUser('bob', { password: 'secret', role: 'Guest', displayName: 'Bob' }));
    expect(made).toEqual({
      username: 'bob',
      sct: 'token',
      role: 'Guest',
      displayName: 'Bob',
      fingerprints: [],
      notificationCategories: [],
    });
    expect(scripted.asked).toEqual([
      ['POST /iam/users', { Username: 'bob' }],
      ['PUT /iam/users/bob/role', 'Guest'],
      ['PUT /iam/users/bob/display-name', 'Bob'],
      ['PUT /iam/users/bob/password', 'secret'],
    ]);
  });

  test('sends no more requests for a user without role and password', async () => {
    scripted = await ScriptedDevice.make(created);
    await scripted.outcome(scripted.iam.createUser('bob'));
    expect(lines()).toEqual(['POST /iam/users']);
  });

  test.each<[string, Parameters<typeof ScriptedDevice.make>[0], string]>([
    ['a role there is not', { 'PUT /iam/users/bob/role': 404 }, 'ROLE_DOES_NOT_EXIST'],
    ['a role this client may not give', { 'PUT /iam/users/bob/role': 403 }, 'BLOCKED_BY_DEVICE_CONFIGURATION'],
    ['a display name that is too long', { 'PUT /iam/users/bob/role': 204, 'PUT /iam/users/bob/display-name': 400 }, 'INVALID_INPUT'],
    [
      'a password of one character',
      { 'PUT /iam/users/bob/role': 204, 'PUT /iam/users/bob/display-name': 204, 'PUT /iam/users/bob/password': 400 },
      'INVALID_INPUT',
    ],
  ])('leaves no user behind with %s', async (_, answers, code) => {
    scripted = await ScriptedDevice.make({ ...created, 'DELETE /iam/users/bob': 202, ...answers });
    expect(await scripted.outcome(scripted.iam.createUser('bob', { password: 'x', role: 'Other', displayName: 'B' }))).toBe(code);
    expect(lines().at(-1)).toBe('DELETE /iam/users/bob');
  });

  test('reports that the user stays when it cannot be deleted either', async () => {
    scripted = await ScriptedDevice.make({ ...created, 'PUT /iam/users/bob/role': 404, 'DELETE /iam/users/bob': 403 });
    const error = await scripted.failure(scripted.iam.createUser('bob', { role: 'Other' }));
    expect(error).toMatchObject({
      code: 'ROLE_DOES_NOT_EXIST',
      status: 404,
      message: expect.stringMatching(/"bob" was created.*not be deleted/),
    });
  });

  test('deletes no user that existed before', async () => {
    scripted = await ScriptedDevice.make({ 'POST /iam/users': 409 });
    expect(await scripted.outcome(scripted.iam.createUser('bob', { role: 'Guest' }))).toBe('USERNAME_EXISTS');
    expect(lines()).toEqual(['POST /iam/users']);
  });
});
