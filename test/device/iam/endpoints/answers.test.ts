/**
 * What the IAM endpoints answer and change, apart from statuses: bodies key by key, what policies and listeners get,
 * the push test.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { PushAnswer } from '../../../../protocol/records/index.ts';
import { key } from '../model.ts';
import { type CallerName, cbor, EndpointBench, type EndpointBenchOptions } from './endpoint-bench.ts';

/** The body of a 2.05. */
async function get(caller: CallerName, path: string, options: EndpointBenchOptions = {}): Promise<unknown> {
  const { status, body } = await new EndpointBench(options).request(caller, `GET ${path}`);
  expect(status).toBe(205);
  return body;
}

const ann = {
  Username: 'ann',
  DisplayName: 'Ann',
  Role: 'Guest',
  Fingerprints: [{ Fingerprint: key(2) }, { Fingerprint: key(22), Name: 'tablet' }],
  Fingerprint: key(22),
  Sct: 'sct-ann',
  Administers: false,
  Push: { Token: 'token-ann', ProjectId: 'project' },
  NotificationCategories: ['INFO'],
  OauthSubject: 'subject-ann',
};

let bench: EndpointBench;
beforeEach(() => {
  bench = new EndpointBench();
});

describe('GET /iam/pairing', () => {
  const device = { SvcVersion: '1.2.3', AppName: 'Heater', ProductId: 'pr-1', DeviceId: 'de-1', FriendlyName: 'Cellar' };

  it('gives the facts of the device that are set', async () => {
    expect(await get('stranger', '/iam/pairing')).toMatchObject(device);
    const { FriendlyName: _, ...unnamed } = device;
    const body = await get('stranger', '/iam/pairing', { without: ['friendlyName'] });
    expect(body).toEqual({ ...unnamed, Modes: expect.any(Array) });
  });

  it.each<[string, CallerName, EndpointBenchOptions, string[]]>([
    ['locally all', 'stranger', {}, ['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial']],
    ['remotely those by password', 'remote', {}, ['PasswordOpen', 'PasswordInvite']],
    ['without a role for open pairing', 'stranger', { without: ['openPairingRole'] }, ['PasswordInvite', 'LocalInitial']],
    ['without a password', 'stranger', { without: ['openPairingPasswordSealed'] }, ['LocalOpen', 'PasswordInvite', 'LocalInitial']],
    [
      'when the initial user is paired',
      'stranger',
      { state: { initialPairingUsername: 'ann' } },
      ['PasswordOpen', 'LocalOpen', 'PasswordInvite'],
    ],
    [
      'when all is off',
      'stranger',
      { state: { localOpenPairing: false, passwordOpenPairing: false, passwordInvitePairing: false, localInitialPairing: false } },
      [],
    ],
  ])('lists the possible modes: %s', async (_why, caller, options, modes) => {
    expect(await get(caller, '/iam/pairing', options)).toMatchObject({ Modes: modes });
  });
});

describe('pairing', () => {
  it('local open makes a user with role, key and token, once', async () => {
    const pair = () => bench.request('stranger', 'POST /iam/pairing/local-open', cbor({ Username: 'new', FingerprintName: 'phone' }));
    expect(await pair()).toEqual({ status: 201, contentFormat: undefined, body: undefined });
    const user = {
      username: 'new',
      role: 'Guest',
      fingerprints: [{ fingerprint: key(9), name: 'phone' }],
      sct: 'token0000001',
      notificationCategories: [],
    };
    expect(bench.iam.user('new')).toEqual(user);
    expect(bench.changes.map(({ kind }) => kind)).toEqual(['user-created', 'user-paired']);
    expect((await pair()).status).toBe(201);
    expect(bench.changes).toHaveLength(2);
    expect(await bench.request('stranger', 'GET /iam/me')).toMatchObject({ status: 205, body: { Username: 'new' } });
  });

  it('password open takes the key of the connection', async () => {
    await bench.request('opened', 'POST /iam/pairing/password-open', cbor({ Username: 'new' }));
    expect(bench.iam.userByFingerprint(key(9))).toMatchObject({ username: 'new', fingerprints: [{ fingerprint: key(9) }] });
  });

  it('local initial gives the prepared user its key, and the mode is gone', async () => {
    await bench.request('stranger', 'POST /iam/pairing/local-initial', cbor({ FingerprintName: 'phone' }));
    expect(bench.iam.user('first')?.fingerprints).toEqual([{ fingerprint: key(9), name: 'phone' }]);
    expect((await bench.request('stranger', 'POST /iam/pairing/local-initial')).status).toBe(409);
  });

  it('password invite removes the used password', async () => {
    expect(bench.iam.hasPassword('bob')).toBe(true);
    const pair = () => bench.request('invited', 'POST /iam/pairing/password-invite', cbor({ FingerprintName: 'phone' }));
    expect((await pair()).status).toBe(201);
    expect(bench.iam.hasPassword('bob')).toBe(false);
    expect(bench.iam.user('bob')?.fingerprints).toEqual([{ fingerprint: key(9), name: 'phone' }]);
    expect((await pair()).status).toBe(201);
  });
});

describe('settings', () => {
  it('show the open password in clear', async () => {
    expect(await get('admin', '/iam/settings', { state: { localOpenPairing: false } })).toEqual({
      PasswordOpenPairing: true,
      PasswordInvitePairing: true,
      LocalOpenPairing: false,
      PasswordOpenSct: 'sct-open',
      PasswordOpenPassword: 'open-password',
    });
  });

  it('leave out unset values', async () => {
    const body = await get('admin', '/iam/settings', { without: ['openPairingSct', 'openPairingPasswordSealed'] });
    expect(body).toEqual({ PasswordOpenPairing: true, PasswordInvitePairing: true, LocalOpenPairing: true });
  });

  it.each([
    ['password-open-pairing', 'passwordOpenPairing'],
    ['password-invite-pairing', 'passwordInvitePairing'],
    ['local-open-pairing', 'localOpenPairing'],
  ] as const)('%s is %s', async (setting, flag) => {
    const bench = new EndpointBench();
    for (const on of [false, true]) {
      await bench.request('admin', `PUT /iam/settings/${setting}`, cbor(on));
      expect(bench.iam.state[flag]).toBe(on);
    }
    expect(bench.changes.map((change) => ('setting' in change ? change.setting : ''))).toEqual([setting, setting]);
  });

  it('the friendly name is part of the state', async () => {
    await bench.request('admin', 'PUT /iam/device-info/friendly-name', cbor('Attic'));
    expect(bench.iam.state.friendlyName).toBe('Attic');
  });

  it('a sealed password that does not open is 5.00 without a reason', async () => {
    const bench = new EndpointBench({ unseal: 'fails' });
    expect(await bench.request('admin', 'GET /iam/settings')).toEqual({ status: 500, contentFormat: undefined, body: 'Request unhandled' });
    expect(bench.errors).toHaveLength(1);
  });
});

describe('lists are arrays:', () => {
  it.each<[string, string[]]>([
    ['/iam/roles', ['Unpaired', 'Guest', 'Standard', 'Administrator', 'Locked']],
    ['/iam/users', ['admin', 'ann', 'locked', 'bob', 'first']],
    ['/iam/notification-categories', ['INFO', 'CRITICAL']],
  ])('%s', async (path, names) => {
    expect(await get('ann', path)).toEqual(names);
  });
});

describe('a user', () => {
  it('is given whole, by name and at /iam/me', async () => {
    expect(await get('ann', '/iam/me')).toEqual(ann);
    expect(await get('admin', '/iam/users/ann')).toEqual(ann);
  });

  it('has empty arrays where it has no entries, and never a password', async () => {
    expect(await get('admin', '/iam/users/bob')).toEqual({
      Username: 'bob',
      Role: 'Guest',
      Administers: false,
      Fingerprints: [],
      NotificationCategories: [],
    });
  });

  it('that is created has a name and a token, no role and no password', async () => {
    const reply = await bench.request('admin', 'POST /iam/users', cbor({ Username: 'new', Role: 'Administrator' }));
    const body = { Username: 'new', Administers: false, Fingerprints: [], Sct: 'token0000001', NotificationCategories: [] };
    expect(reply).toEqual({ status: 201, contentFormat: 60, body });
    expect(bench.iam.hasPassword('new')).toBe(false);
  });

  it('that is deleted is gone', async () => {
    expect(await bench.request('ann', 'DELETE /iam/users/ann')).toEqual({ status: 202, contentFormat: undefined, body: undefined });
    expect((await bench.request('ann', 'GET /iam/me')).status).toBe(404);
    expect(bench.iam.usernames).not.toContain('ann');
  });

  it('has fingerprints added and removed one by one', async () => {
    const line = `/iam/users/ann/fingerprints/${key(7)}`;
    await bench.request('ann', `PUT ${line}`, cbor({ FingerprintName: 'watch' }));
    expect(bench.iam.userByFingerprint(key(7))?.fingerprints.at(-1)).toEqual({ fingerprint: key(7), name: 'watch' });
    await bench.request('ann', `DELETE ${line}`);
    expect(bench.iam.user('ann')?.fingerprints.map(({ fingerprint }) => fingerprint)).toEqual([key(2), key(22)]);
  });
});

describe('the settings of a user', () => {
  const set = async (setting: string, value: Parameters<typeof cbor>[0]) => {
    const bench = new EndpointBench();
    const reply = await bench.request('admin', `PUT /iam/users/ann/${setting}`, cbor(value));
    expect(reply).toEqual({ status: 204, contentFormat: undefined, body: undefined });
    return bench;
  };
  const record = async (setting: string, value: Parameters<typeof cbor>[0], username = 'ann') =>
    (await (await set(setting, value)).request('admin', `GET /iam/users/${username}`)).body;

  it.each<[string, Parameters<typeof cbor>[0], Record<string, unknown>]>([
    ['display-name', 'Änne', { DisplayName: 'Änne' }],
    ['role', 'Standard', { Role: 'Standard' }],
    ['sct', 'abcdefghijkl', { Sct: 'abcdefghijkl' }],
    ['oauth-subject', 'subject', { OauthSubject: 'subject' }],
    ['push', { Token: 't', ProjectId: 'p' }, { Push: { Token: 't', ProjectId: 'p' } }],
    ['notification-categories', ['CRITICAL'], { NotificationCategories: ['CRITICAL'] }],
    ['notification-categories', [], { NotificationCategories: [] }],
  ])('%s %j', async (setting, value, fields) => {
    expect(await record(setting, value)).toEqual({ ...ann, ...fields });
  });

  it('username renames the record', async () => {
    const bench = await set('username', 'anna');
    expect((await bench.request('admin', 'GET /iam/users/anna')).body).toEqual({ ...ann, Username: 'anna' });
    expect((await bench.request('admin', 'GET /iam/users/ann')).status).toBe(404);
  });

  it.each([
    ['display-name', 'DisplayName'],
    ['oauth-subject', 'OauthSubject'],
  ] as const)('%s null clears', async (setting, field) => {
    const { [field]: _, ...rest } = ann;
    expect(await record(setting, null)).toEqual(rest);
  });

  it('fingerprint is the first one: it can be set and removed', async () => {
    const second = { Fingerprint: key(22), Name: 'tablet' };
    expect(await record('fingerprint', key(7))).toEqual({ ...ann, Fingerprints: [{ Fingerprint: key(7) }, second] });
    expect(await record('fingerprint', null)).toEqual({ ...ann, Fingerprints: [second] });
  });

  it('password is kept only as a verifier, and cleared by null', async () => {
    const bench = await set('password', 'secret');
    expect(bench.iam.hasPassword('ann')).toBe(true);
    await bench.request('admin', 'PUT /iam/users/ann/password', cbor(null));
    expect(bench.iam.hasPassword('ann')).toBe(false);
  });
});

describe('the caller', () => {
  it('is passed with each change', async () => {
    await bench.request('admin', 'PUT /iam/users/ann/password', cbor('secret'));
    await bench.request('admin', 'PUT /iam/settings/local-open-pairing', cbor(false));
    await bench.request('stranger', 'POST /iam/pairing/password-open', cbor({ Username: 'new' }));
    await bench.request('ann', 'DELETE /iam/users/ann');
    expect(bench.changes.map(({ by }) => by?.username)).toEqual(['admin', 'admin', 'ann']);
  });

  it.each<[CallerName, string, Parameters<typeof cbor>[0] | undefined, string, Record<string, string>]>([
    ['locked', 'GET /iam/pairing', undefined, 'IAM:GetPairing', {}],
    ['remote', 'POST /iam/pairing/local-initial', undefined, 'IAM:PairingLocalInitial', {}],
    ['ann', 'GET /iam/users/bob', undefined, 'IAM:GetUser', { 'IAM:Username': 'bob' }],
    ['ann', 'PUT /iam/users/ann/role', 'Administrator', 'IAM:SetUserRole', { 'IAM:Username': 'ann', 'IAM:RoleId': 'Administrator' }],
    ['ann', 'POST /iam/users', { Username: 'new' }, 'IAM:CreateUser', {}],
  ])('is passed with a refusal: %s, %s', async (caller, line, body, action, attributes) => {
    expect((await bench.request(caller, line, body === undefined ? {} : cbor(body))).status).toBe(403);
    expect(bench.denied).toEqual([
      { caller: expect.objectContaining({ isLocal: caller !== 'remote' && caller !== 'ann' }), action, attributes },
    ]);
  });

  it('is subject to policies on the requested role', async () => {
    const { configuration } = bench.iam;
    const values = ['Guest', 'Standard'];
    const policies = [
      ...configuration.policies,
      {
        id: 'Promote',
        statements: [
          { effect: 'Allow', actions: ['IAM:SetUserRole'], conditions: [{ operator: 'StringEquals', key: 'IAM:RoleId', values }] },
        ],
      } as const,
    ];
    const roles = configuration.roles.map((role) => (role.id === 'Guest' ? { ...role, policies: [...role.policies, 'Promote'] } : role));
    await bench.iam.setConfiguration({ ...configuration, policies, roles });
    expect((await bench.request('ann', 'PUT /iam/users/bob/role', cbor('Administrator'))).status).toBe(403);
    expect((await bench.request('ann', 'PUT /iam/users/bob/role', cbor('Standard'))).status).toBe(204);
  });

  it('does not learn whose a name or a key is', async () => {
    const taken = { status: 409, contentFormat: undefined, body: 'Already in use' };
    expect(await bench.request('ann', `PUT /iam/users/ann/fingerprints/${key(1)}`, cbor({}))).toEqual(taken);
    expect(await bench.request('ann', 'PUT /iam/users/ann/fingerprint', cbor(key(1)))).toEqual(taken);
    expect(await bench.request('admin', 'POST /iam/pairing/local-open', cbor({ Username: 'new' }))).toEqual(taken);
  });
});

describe('a push test', () => {
  const line = 'POST /iam/users/ann/push-test';

  it('sends the provider’s document to the user’s token, and returns its answer', async () => {
    const bench = new EndpointBench({ push: async () => ({ statusCode: 404, body: '{"error":"UNREGISTERED"}' }) });
    expect(await bench.request('admin', line)).toEqual({
      status: 201,
      contentFormat: 60,
      body: { StatusCode: 404, Body: '{"error":"UNREGISTERED"}' },
    });
    const notification = { title: 'Test', body: 'This is a test notification' };
    expect(bench.pushes).toEqual([{ projectId: 'project', body: { message: { token: 'token-ann', notification } } }]);
  });

  it.each([{ token: 'token' }, { projectId: 'project' }, { token: '', projectId: 'project' }, { token: 'token', projectId: '' }])(
    'needs token and project: %j',
    async (push) => {
      await bench.iam.update((draft) => draft.setUserPush('ann', push));
      expect((await bench.request('admin', line)).status).toBe(404);
      expect(bench.pushes).toEqual([]);
    },
  );

  it('runs one at a time on a device', async () => {
    const answers: ((answer: PushAnswer) => void)[] = [];
    const bench = new EndpointBench({ push: () => new Promise((resolve) => answers.push(resolve)) });
    const [first, second] = [bench.request('ann', line), bench.request('admin', line)];
    expect((await second).status).toBe(503);
    answers[0]!({ statusCode: 200, body: '' });
    expect((await first).status).toBe(201);
    const third = bench.request('admin', line);
    answers[1]!({ statusCode: 200, body: '' });
    expect((await third).status).toBe(201);
  });

  it('does not block another device', async () => {
    const never: EndpointBenchOptions = { push: () => new Promise(() => {}) };
    void new EndpointBench(never).request('ann', line);
    expect((await new EndpointBench().request('ann', line)).status).toBe(201);
  });

  it('can be tried again after it failed', async () => {
    let fails = true;
    const bench = new EndpointBench({
      push: async () => {
        if (fails) throw new TypeError('no');
        return { statusCode: 200, body: '' };
      },
    });
    expect((await bench.request('ann', line)).status).toBe(500);
    fails = false;
    expect((await bench.request('ann', line)).status).toBe(201);
  });
});

it('a user changes its own record 30 times at once, then once each 2 s', async () => {
  const bench = new EndpointBench();
  const rename = async (name: string, pace = 0): Promise<number> => {
    bench.pace = pace;
    return (await bench.request('ann', 'PUT /iam/users/ann/display-name', cbor(name))).status;
  };
  const statuses: number[] = [];
  for (let change = 0; change < 32; change++) statuses.push(await rename(`g${change}`));
  expect(statuses).toEqual([...Array(30).fill(204), 429, 429]);
  expect([await rename('a', 2_000), await rename('b')]).toEqual([204, 429]);
  expect(bench.iam.user('ann')?.displayName).toBe('a');
});
