/** The model: who the caller is, the default roles, settings of users, limits, events. */
import { beforeEach, describe, expect, it } from 'vitest';
import { defaultConfiguration, type Iam, type IamDraft } from '../../../device/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { caller, iamOf, iamWithUsers, key, stateOf, user } from './model.ts';

let iam: Iam;
beforeEach(() => {
  iam = iamWithUsers();
});

describe('the caller', () => {
  it('is the user of its key, else of the password, else the bound one, else no user', () => {
    expect(iam.resolveCaller(caller(1, { passwordUsername: 'bob', boundUsername: 'boss' }))?.username).toBe('ann');
    expect(iam.resolveCaller(caller(2, { passwordUsername: 'bob', boundUsername: 'boss' }))?.username).toBe('bob');
    expect(iam.resolveCaller(caller(2, { passwordUsername: '', boundUsername: 'boss' }))?.username).toBe('boss');
    expect(iam.resolveCaller(caller(2, { boundUsername: 'gone' }))).toBeUndefined();
  });

  it('without a user has the UnpairedRole, and no rights if there is none', () => {
    expect(iamWithUsers().explain(caller(2), 'IAM:GetPairing')).toMatchObject({ allowed: true, role: 'Unpaired', policy: 'Pairing' });
    const { unpairedRole: _, ...configuration } = defaultConfiguration();
    expect(iamWithUsers({ configuration }).explain(caller(2), 'IAM:GetPairing')).toMatchObject({ allowed: false, reason: 'no-role' });
  });

  it('without a role, or with a role that is gone, is denied everything', () => {
    const iam = iamOf({ state: stateOf([user('none'), user('lost', { role: 'Gone' })]) });
    expect(iam.explain(caller(1, { passwordUsername: 'none' }), 'IAM:GetPairing').reason).toBe('no-role');
    expect(iam.explain(caller(1, { passwordUsername: 'lost' }), 'IAM:GetPairing').reason).toBe('unknown-role');
  });

  it('cannot change its name or locality by attributes', () => {
    expect(iam.check(caller(1), 'IAM:GetUser', { 'IAM:Username': 'ann' })).toBe(true);
    expect(iam.check(caller(1), 'IAM:GetUser', { 'IAM:Username': 'bob', 'Connection:Username': 'bob' })).toBe(false);
    const local = { operator: 'Bool', key: 'Connection:IsLocal', values: ['true'] } as const;
    const configuration = {
      policies: [{ id: 'p', statements: [{ effect: 'Allow' as const, actions: ['A'], conditions: [local] }] }],
      roles: [{ id: 'r', policies: ['p'] }],
      unpairedRole: 'r',
    };
    const localOnly = iamOf({ configuration });
    expect(localOnly.check(caller(1), 'A')).toBe(true);
    expect(localOnly.check(caller(1, { isLocal: false }), 'A', { 'Connection:IsLocal': 'true' })).toBe(false);
  });
});

describe('the default roles', () => {
  const own = [
    'GetUser',
    'DeleteUser',
    'SetUserDisplayName',
    'SetUserPush',
    'SendUserPushTest',
    'SetUserNotificationCategories',
    'SetUserFingerprint',
  ];
  const administration = [
    'SetUserRole',
    'SetUserPassword',
    'SetUserUsername',
    'SetUserSct',
    'SetUserOauthSubject',
    'CreateUser',
    'SetSettings',
  ];

  it('let a guest manage itself, and no other user', () => {
    for (const action of own) {
      expect(iam.check(caller(1), `IAM:${action}`, { 'IAM:Username': 'ann' })).toBe(true);
      expect(iam.check(caller(1), `IAM:${action}`, { 'IAM:Username': 'bob' })).toBe(false);
    }
    for (const action of administration) expect(iam.check(caller(1), `IAM:${action}`, { 'IAM:Username': 'ann' })).toBe(false);
    expect(iam.check(caller(1), 'TcpTunnel:Connect')).toBe(false);
    expect(iam.check(caller(1, { fingerprint: key(5), passwordUsername: 'bob' }), 'TcpTunnel:Connect')).toBe(true);
    expect(iam.check(caller(1, { fingerprint: key(5), passwordUsername: 'bob' }), 'UdpTunnel:Connect')).toBe(true);
  });

  it('let an administrator do all that concerns users', () => {
    const asBoss = caller(5, { passwordUsername: 'boss' });
    for (const action of [...own, ...administration]) expect(iam.check(asBoss, `IAM:${action}`, { 'IAM:Username': 'ann' })).toBe(true);
  });
});

describe('a role administers', () => {
  const roleOf = (...actions: string[]) => {
    const { policies, roles, ...rest } = defaultConfiguration();
    const statement = { effect: 'Allow' as const, actions, conditions: [] };
    const configuration = {
      ...rest,
      policies: [...policies, { id: 'Own', statements: [statement] }],
      roles: [...roles, { id: 'Own', policies: ['Own'] }],
    };
    return iamOf({ configuration });
  };

  it('when it may create users and give them roles, whatever its name is', () => {
    expect(roleOf('IAM:CreateUser', 'IAM:SetUserRole').administers('Own')).toBe(true);
    expect(roleOf('IAM:CreateUser').administers('Own')).toBe(false);
    expect(roleOf('IAM:SetUserRole').administers('Own')).toBe(false);
  });

  it('by default when it is Administrator', () => {
    const iam = iamOf();
    expect([...iam.roles, 'Gone', undefined].filter((role) => iam.administers(role))).toEqual(['Administrator']);
  });
});

describe('settings of a user', () => {
  it('are changed one by one, each with its event', async () => {
    const settings: unknown[] = [];
    iam.onChange((change) => settings.push(change.kind === 'user-changed' ? [change.username, change.setting] : change.kind));
    await iam.update((draft) => {
      draft.setUserDisplayName('ann', 'Ann');
      draft.setUserRole('ann', 'Standard');
      draft.setUserSct('ann', 'sct-new');
      draft.setUserOauthSubject('ann', 'subject');
      draft.setUserPush('ann', { token: 'token', projectId: 'project' });
      draft.setUserNotificationCategories('ann', ['Alarm', 'Alarm']);
      draft.addUserFingerprint('ann', key(2), 'Tablet');
      draft.setUserUsername('ann', 'anna');
    });
    expect(iam.user('anna')).toEqual({
      username: 'anna',
      displayName: 'Ann',
      role: 'Standard',
      sct: 'sct-new',
      oauthSubject: 'subject',
      push: { token: 'token', projectId: 'project' },
      notificationCategories: ['Alarm'],
      fingerprints: [
        { fingerprint: key(1), name: 'Phone' },
        { fingerprint: key(2), name: 'Tablet' },
      ],
    });
    expect(iam.userByFingerprint(key(2))?.username).toBe('anna');
    expect(settings).toEqual([
      ...['display-name', 'role', 'sct', 'oauth-subject', 'push', 'notification-categories', 'fingerprint'].map((each) => ['ann', each]),
      ['anna', 'username'],
    ]);
  });

  it('are removed by undefined', async () => {
    await iam.update((draft) => {
      draft.setUserDisplayName('ann', 'Ann');
      draft.setUserDisplayName('ann', undefined);
      draft.setUserRole('ann', undefined);
      draft.setUserSct('ann', undefined);
      draft.setUserFingerprint('ann', undefined);
    });
    expect(iam.user('ann')).toEqual({ username: 'ann', fingerprints: [], notificationCategories: [] });
    expect(iam.userByFingerprint(key(1))).toBeUndefined();
  });

  it('have a first fingerprint, which can be replaced', async () => {
    await iam.update((draft) => draft.addUserFingerprint('ann', key(2)));
    await iam.update((draft) => draft.setUserFingerprint('ann', key(3)));
    expect(iam.user('ann')?.fingerprints).toEqual([{ fingerprint: key(3) }, { fingerprint: key(2) }]);
    await iam.update((draft) => draft.removeUserFingerprint('ann', key(3)));
    expect(iam.user('ann')?.fingerprints).toEqual([{ fingerprint: key(2) }]);
  });

  it('accept names of the maximum length', async () => {
    await iam.update((draft) => {
      draft.createUser('a'.repeat(64));
      draft.setUserDisplayName('ann', 'x'.repeat(64));
    });
    expect(iam.user('ann')?.displayName).toBe('x'.repeat(64));
  });

  const refused: [name: string, change: (draft: IamDraft) => unknown, code: string][] = [
    ['an unknown user', (draft) => draft.setUserDisplayName('gone', 'x'), 'NOT_FOUND'],
    ['an unknown role', (draft) => draft.setUserRole('ann', 'Gone'), 'NOT_FOUND'],
    ['an unknown role of open pairing', (draft) => draft.setOpenPairingRole('Gone'), 'NOT_FOUND'],
    ['a name that is taken', (draft) => draft.setUserUsername('ann', 'bob'), 'IN_USE'],
    ['its own name', (draft) => draft.setUserUsername('ann', 'ann'), 'IN_USE'],
    ['a user that exists', (draft) => draft.createUser('ann'), 'IN_USE'],
    ['a bad name', (draft) => draft.setUserUsername('ann', 'Ann'), 'INVALID_ARGUMENT'],
    ['a name that means a folder', (draft) => draft.createUser('.'), 'INVALID_ARGUMENT'],
    ['a name that means the folder above', (draft) => draft.createUser('..'), 'INVALID_ARGUMENT'],
    ['a long name', (draft) => draft.createUser('a'.repeat(65)), 'INVALID_ARGUMENT'],
    ['a long display name', (draft) => draft.setUserDisplayName('ann', 'x'.repeat(65)), 'INVALID_ARGUMENT'],
    ['a long token', (draft) => draft.setUserSct('ann', 'x'.repeat(65)), 'INVALID_ARGUMENT'],
    ['a long OAuth subject', (draft) => draft.setUserOauthSubject('ann', 'x'.repeat(65)), 'INVALID_ARGUMENT'],
    ['a long push token', (draft) => draft.setUserPush('ann', { token: 'x'.repeat(1024), projectId: 'p' }), 'INVALID_ARGUMENT'],
    ['a long project id', (draft) => draft.setUserPush('ann', { token: 't', projectId: 'x'.repeat(256) }), 'INVALID_ARGUMENT'],
    ['an unknown category', (draft) => draft.setUserNotificationCategories('ann', ['Alarm', 'Fire']), 'INVALID_ARGUMENT'],
    ['a long friendly name', (draft) => draft.setFriendlyName('x'.repeat(65)), 'INVALID_ARGUMENT'],
    ['a key in use', (draft) => draft.addUserFingerprint('bob', key(1)), 'IN_USE'],
    ['its own key again', (draft) => draft.setUserFingerprint('ann', key(1)), 'IN_USE'],
    ['a short fingerprint', (draft) => draft.addUserFingerprint('bob', 'ab'), 'INVALID_ARGUMENT'],
    ['a key it does not have', (draft) => draft.removeUserFingerprint('bob', key(1)), 'NOT_FOUND'],
  ];
  for (const [name, change, code] of refused) {
    it(`refuse ${name}`, async () => {
      const { state } = iam;
      expect(await codeOf(() => iam.update(change))).toBe(code);
      expect(iam.state).toBe(state);
    });
  }
});

describe('at run time', () => {
  it('limits change, but not below the present use', async () => {
    expect(() => iam.setLimits({ maxUsername: 2 })).toThrow('Users[0]: the username is longer than 2 bytes');
    expect(() => iam.setLimits({ maxUsers: Number.NaN })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    iam.setLimits({ maxUsers: 3, maxFingerprintsPerUser: 1, maxDisplayName: 2 });
    expect(await codeOf(() => iam.update((draft) => draft.createUser('carl')))).toBe('OUT_OF_MEMORY');
    expect(await codeOf(() => iam.update((draft) => draft.addUserFingerprint('ann', key(2))))).toBe('OUT_OF_MEMORY');
    expect(await codeOf(() => iam.update((draft) => draft.setUserDisplayName('ann', 'Ann')))).toBe('INVALID_ARGUMENT');
    expect(iam.limits).toMatchObject({ maxUsers: 3, maxPassword: 64 });
  });

  it('limits also hold against a change that is being saved', async () => {
    let saved: (() => void) | undefined;
    const iam = iamWithUsers({ save: () => new Promise<void>((resolve) => (saved = resolve)) });
    const done = iam.update((draft) => draft.createUser('carl-the-great'));
    expect(() => iam.setLimits({ maxUsername: 10 })).toThrow('the username is longer than 10 bytes');
    saved?.();
    await done;
  });

  it('the limit on users may be below the present use: it is for new ones', async () => {
    iam.setLimits({ maxUsers: 2 });
    expect(iam.usernames).toHaveLength(3);
    expect(await codeOf(() => iam.update((draft) => draft.createUser('carl')))).toBe('OUT_OF_MEMORY');
    await iam.update((draft) => draft.setUserDisplayName('ann', 'Ann'));
    await iam.update((draft) => draft.setUserUsername('ann', 'anna'));
    expect(iam.user('anna')?.displayName).toBe('Ann');
  });

  it('notification categories change, but none is taken from a user', async () => {
    await iam.update((draft) => draft.setUserNotificationCategories('ann', ['Alarm']));
    expect(() => iam.setNotificationCategories(['Info'])).toThrow('user "ann" has the notification category "Alarm"');
    iam.setNotificationCategories(['Alarm']);
    expect(iam.notificationCategories).toEqual(['Alarm']);
  });

  it('the configuration is replaced once it is saved', async () => {
    const saved: unknown[] = [];
    const iam = iamWithUsers({ saveConfiguration: async (configuration: unknown) => void saved.push(configuration) });
    const configuration = { policies: [], roles: [{ id: 'Guest', policies: [] }] };
    await iam.setConfiguration(configuration);
    expect(saved).toEqual([configuration]);
    expect(iam.roles).toEqual(['Guest']);
    expect(iam.explain(caller(1), 'IAM:GetPairing').reason).toBe('no-match');
    expect(await codeOf(() => iam.setConfiguration({ ...configuration, unpairedRole: 'Gone' }))).toBe('INVALID_ARGUMENT');
    expect(iam.roles).toEqual(['Guest']);
  });

  it('the configuration stays when it cannot be saved', async () => {
    const saveConfiguration = () => Promise.reject(new Error('the disk is full'));
    const iam = iamWithUsers({ saveConfiguration });
    await expect(iam.setConfiguration({ policies: [], roles: [] })).rejects.toThrow('the disk is full');
    expect(iam.roles).toHaveLength(4);
  });

  it('the tokens of open pairing and of users are listed once each', async () => {
    await iam.update((draft) => {
      draft.setOpenPairingSct('sct-open');
      draft.setUserSct('bob', 'sct-open');
    });
    expect(iam.serverConnectTokens).toEqual(['sct-open', 'sct-ann']);
  });
});
