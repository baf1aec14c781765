/**
 * The model: who the caller is, changes one after the other and saved before they count, settings of users, limits,
 * events.
 */
import { describe, expect, it, vi } from 'vitest';
import { defaultConfiguration, type IamChange, type IamDraft, type StateDocument } from '../../../device/iam/index.ts';
import { caller, codeOf, fakeSecrets, iamOf, key, stateOf, user } from './model.ts';

const ann = user('ann', { role: 'Guest', sct: 'sct-ann', fingerprints: [{ fingerprint: key(1), name: 'Phone' }] });
const bob = user('bob', { role: 'Standard' });
const boss = user('boss', { role: 'Administrator' });
const iamWithUsers = (options = {}) => iamOf({ state: stateOf([ann, bob, boss]), notificationCategories: ['Alarm', 'Info'], ...options });

describe('the caller', () => {
  it('is the user of its key, else of the password, else the bound one, else no user', () => {
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
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

describe('a change', () => {
  it('counts only once it is saved', async () => {
    let saved: (() => void) | undefined;
    const iam = iamWithUsers({ save: () => new Promise<void>((resolve) => (saved = resolve)) });
    const changes: IamChange[] = [];
    iam.onChange((change) => changes.push(change));
    const done = iam.update((draft) => draft.deleteUser('ann'));
    expect(iam.user('ann')).toBeDefined();
    expect(changes).toEqual([]);
    saved?.();
    await done;
    expect(iam.user('ann')).toBeUndefined();
    expect(changes).toEqual([{ kind: 'user-deleted', username: 'ann', previous: ann.user }]);
  });

  it('whose save fails is dropped with those that build on it, and the next one counts', async () => {
    let fails = true;
    const documents: StateDocument[] = [];
    const save = async (document: StateDocument) => {
      if (fails) throw new Error('the disk is full');
      documents.push(document);
    };
    const iam = iamWithUsers({ save });
    const { state } = iam;
    const first = iam.update((draft) => draft.createUser('carl'));
    const second = iam.update((draft) => draft.createUser('dora'));
    const third = iam.update((draft) => draft.createUser('dora'));
    await expect(first).rejects.toThrow('the disk is full');
    await expect(second).rejects.toThrow('the disk is full');
    await expect(third).rejects.toThrow('the disk is full');
    expect(iam.state).toBe(state);
    fails = false;
    await iam.update((draft) => draft.createUser('dora'));
    expect(iam.usernames).toEqual(['ann', 'bob', 'boss', 'dora']);
    expect(documents).toHaveLength(1);
  });

  it('that throws leaves nothing behind, and does not disturb its neighbours', async () => {
    const iam = iamWithUsers();
    const results = await Promise.all([
      codeOf(() => iam.update((draft) => draft.setFriendlyName('Kitchen'))),
      codeOf(() =>
        iam.update((draft) => {
          draft.deleteUser('ann');
          draft.deleteUser('gone');
        }),
      ),
      codeOf(() => iam.update((draft) => draft.setUserDisplayName('bob', 'Bob'))),
    ]);
    expect(results).toEqual(['OK', 'NOT_FOUND', 'OK']);
    expect([iam.state.friendlyName, iam.user('ann'), iam.user('bob')?.displayName]).toEqual(['Kitchen', ann.user, 'Bob']);
  });

  it('shares its save with others that wait, and all see each other', async () => {
    let saves = 0;
    const iam = iamWithUsers({ save: async () => void saves++ });
    const all = Array.from({ length: 50 }, () => iam.update((draft) => draft.setFriendlyName(`${draft.state.friendlyName ?? ''}x`)));
    await Promise.all(all);
    expect(iam.state.friendlyName).toBe('x'.repeat(50));
    expect(saves).toBeLessThanOrEqual(2);
  });

  it('that changes nothing is not saved', async () => {
    let saves = 0;
    const iam = iamWithUsers({ save: async () => void saves++ });
    expect(await iam.update((draft) => draft.user('ann').username)).toBe('ann');
    expect(saves).toBe(0);
  });

  it('ends with its function: a draft that is kept changes nothing', async () => {
    const iam = iamWithUsers();
    const draft = await iam.update((draft: IamDraft) => draft);
    expect(() => draft.deleteUser('ann')).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(iam.user('ann')).toBeDefined();
  });

  it('of a client is refused when an earlier change took its right', async () => {
    const iam = iamWithUsers();
    const asBoss = caller(3, { boundUsername: 'boss' });
    const demand = { action: 'IAM:DeleteUser', attributes: { 'IAM:Username': 'ann' } };
    const remove = (draft: IamDraft) => draft.deleteUser('ann');
    const demoted = iam.update((draft) => draft.setUserRole('boss', 'Guest'));
    expect(iam.check(asBoss, demand.action, demand.attributes)).toBe(true);
    expect(await codeOf(() => iam.update(remove, asBoss, demand))).toBe('FORBIDDEN');
    await demoted;
    expect(iam.user('ann')).toBeDefined();
    await iam.update((draft) => draft.setUserRole('boss', 'Administrator'));
    expect(await codeOf(() => iam.update(remove, asBoss, demand))).toBe('OK');
  });

  it('succeeds when a listener fails, and settled waits for it', async () => {
    const iam = iamWithUsers();
    iam.onChange(() => {
      throw new Error('a bug');
    });
    void iam.update((draft) => draft.deleteUser('ann'));
    await iam.settled();
    expect(iam.user('ann')).toBeUndefined();
  });
});

describe('a record of changes', () => {
  it('is made after the save and before the acknowledgement, with the caller', async () => {
    const order: unknown[] = [];
    const iam = iamWithUsers({ save: async () => void order.push('saved') });
    let recorded: (() => void) | undefined;
    iam.record(async (changes) => {
      order.push(changes.map(({ kind, by }) => [kind, by?.username]));
      await new Promise<void>((resolve) => (recorded = resolve));
    });
    const asBoss = caller(5, { passwordUsername: 'boss' });
    const done = iam.update((draft) => draft.deleteUser('boss'), asBoss).then(() => order.push('acknowledged'));
    await vi.waitFor(() => expect(recorded).toBeDefined());
    expect(order).toEqual(['saved', [['user-deleted', 'boss']]]);
    recorded?.();
    await done;
    expect(order).toHaveLength(3);
  });

  it('has values, but no secret, and the key alone of a caller that is no user', async () => {
    const iam = iamWithUsers();
    const changes: IamChange[] = [];
    iam.record(async (each) => void changes.push(...each));
    await iam.update((draft) => {
      draft.setFlag('localOpenPairing', true);
      draft.setFriendlyName('Kitchen');
      draft.setFriendlyName(undefined);
      draft.setOpenPairingSct('token-of-open-pairing');
    });
    await iam.setOpenPairingPassword('open-sesame', caller(77));
    expect(changes).toEqual([
      { kind: 'settings-changed', setting: 'local-open-pairing', value: true },
      { kind: 'settings-changed', setting: 'friendly-name', value: 'Kitchen' },
      { kind: 'settings-changed', setting: 'friendly-name' },
      { kind: 'settings-changed', setting: 'open-pairing-sct' },
      { kind: 'settings-changed', setting: 'open-pairing-password', by: caller(77) },
    ]);
  });

  it('of the configuration is made, too, and none when nothing changed', async () => {
    const iam = iamWithUsers();
    const kinds: string[] = [];
    iam.record(async (changes) => void kinds.push(...changes.map(({ kind }) => kind)));
    await iam.update((draft) => draft.user('ann'));
    await iam.setConfiguration(iam.configuration, caller(1));
    expect(kinds).toEqual(['configuration-changed']);
  });

  it('that fails stops nothing, and a removed recorder gets no more records', async () => {
    const iam = iamWithUsers();
    const heard: unknown[] = [];
    iam.record(() => {
      throw new Error('a bug');
    });
    const remove = iam.record(async (changes) => void heard.push(...changes));
    await iam.update((draft) => draft.deleteUser('ann'));
    remove();
    await iam.update((draft) => draft.deleteUser('bob'));
    expect(heard).toHaveLength(1);
    expect(iam.usernames).toEqual(['boss']);
  });
});

describe('settings of a user', () => {
  it('are changed one by one, each with its event', async () => {
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
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

  it('have a first fingerprint, which older clients set', async () => {
    const iam = iamWithUsers();
    await iam.update((draft) => draft.addUserFingerprint('ann', key(2)));
    await iam.update((draft) => draft.setUserFingerprint('ann', key(3)));
    expect(iam.user('ann')?.fingerprints).toEqual([{ fingerprint: key(3) }, { fingerprint: key(2) }]);
    await iam.update((draft) => draft.removeUserFingerprint('ann', key(3)));
    expect(iam.user('ann')?.fingerprints).toEqual([{ fingerprint: key(2) }]);
  });

  it('accept names of the maximum length', async () => {
    const iam = iamWithUsers();
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
      const iam = iamWithUsers();
      const { state } = iam;
      expect(await codeOf(() => iam.update(change))).toBe(code);
      expect(iam.state).toBe(state);
    });
  }
});

describe('passwords', () => {
  it('are kept as verifier, stay with a renamed user, and are in no record', async () => {
    const iam = iamWithUsers();
    await iam.setUserPassword('ann', 'secret');
    await iam.update((draft) => draft.setUserUsername('ann', 'anna'));
    await iam.update((draft) => draft.setUserDisplayName('anna', 'Anna'));
    expect(await iam.passwordOf('anna')).toMatchObject({ kdf: 1 });
    expect(JSON.stringify(iam.user('anna'))).not.toMatch(/salt|kdf/i);
    await iam.setUserPassword('anna', undefined);
    expect(await iam.passwordOf('anna')).toBeUndefined();
  });

  it('have 4 to 64 bytes, and need a user', async () => {
    const iam = iamWithUsers();
    expect(await codeOf(() => iam.setUserPassword('ann', 'abc'))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iam.setUserPassword('ann', 'é'.repeat(33)))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iam.setUserPassword('gone', 'secret'))).toBe('NOT_FOUND');
    expect(await codeOf(() => iam.setUserPassword('gone', undefined))).toBe('NOT_FOUND');
  });

  it('for open pairing belong to the empty name, and can be read in clear', async () => {
    const iam = iamWithUsers();
    expect(await iam.passwordOf('')).toBeUndefined();
    await iam.setOpenPairingPassword('open-sesame');
    expect(await iam.passwordOf('')).toEqual({ kdf: 0, password: 'open-sesame' });
    expect(iam.state.openPairingPasswordSealed).toBe('sealed:open-sesame');
  });
});

describe('at run time', () => {
  it('limits change, but not below the present use', async () => {
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
    iam.setLimits({ maxUsers: 2 });
    expect(iam.usernames).toHaveLength(3);
    expect(await codeOf(() => iam.update((draft) => draft.createUser('carl')))).toBe('OUT_OF_MEMORY');
    await iam.update((draft) => draft.setUserDisplayName('ann', 'Ann'));
    await iam.update((draft) => draft.setUserUsername('ann', 'anna'));
    expect(iam.user('anna')?.displayName).toBe('Ann');
  });

  it('notification categories change, but none is taken from a user', async () => {
    const iam = iamWithUsers();
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
    const iam = iamWithUsers();
    await iam.update((draft) => {
      draft.setOpenPairingSct('sct-open');
      draft.setUserSct('bob', 'sct-open');
    });
    expect(iam.serverConnectTokens).toEqual(['sct-open', 'sct-ann']);
  });
});

describe('slow passwords', () => {
  /** Secrets whose derivations and seals end when the test says so, and the names of those that run. */
  function slowSecrets() {
    const running = new Map<string, () => void>();
    const slow = (text: string) => new Promise<void>((resolve) => running.set(text, resolve));
    const { makeVerifier, seal, ...others } = fakeSecrets();
    const secrets = {
      ...others,
      makeVerifier: (password: string) => slow(password).then(() => makeVerifier(password)),
      seal: (text: string) => slow(text).then(() => seal(text)),
    };
    const end = async (text: string) => {
      running.get(text)!();
      running.delete(text);
      await new Promise(setImmediate);
    };
    return { secrets, running: () => [...running.keys()], end };
  }

  it('are derived one at a time, and the last one set counts', async () => {
    const { secrets, running, end } = slowSecrets();
    const iam = iamWithUsers({ secrets });
    const all = [iam.setUserPassword('bob', 'first'), iam.setUserPassword('bob', 'second'), iam.setUserPassword('bob', undefined)];
    await new Promise(setImmediate);
    expect(running()).toEqual(['first']);
    await end('first');
    expect(running()).toEqual(['second']);
    expect(iam.hasPassword('bob')).toBe(true);
    await end('second');
    await Promise.all(all);
    expect(iam.hasPassword('bob')).toBe(false);
  });

  it('are awaited by settled', async () => {
    const { secrets, end } = slowSecrets();
    const iam = iamWithUsers({ secrets });
    void iam.setOpenPairingPassword('slow');
    let settled = false;
    const done = iam.settled().then(() => (settled = true));
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    await end('slow');
    await done;
    expect(await iam.openPairingPassword()).toBe('slow');
  });

  it('do not block others when one fails', async () => {
    const { makeVerifier, ...others } = fakeSecrets();
    let fails = true;
    const secrets = {
      ...others,
      makeVerifier: async (password: string) => (fails ? Promise.reject(new Error('no memory')) : makeVerifier(password)),
    };
    const iam = iamWithUsers({ secrets });
    await expect(iam.setUserPassword('bob', 'secret')).rejects.toThrow('no memory');
    fails = false;
    await iam.setUserPassword('bob', 'secret');
    expect(iam.hasPassword('bob')).toBe(true);
  });
});
