/** The four ways to pair: who may, how the state changes, and every refusal in the order of docs/iam.md. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Iam, IamChange, IamState } from '../../../device/iam/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { caller, iamOf, key, stateOf, user } from './model.ts';

const remote = { isLocal: false };
const allModes: Partial<IamState> = {
  localOpenPairing: true,
  passwordOpenPairing: true,
  passwordInvitePairing: true,
  localInitialPairing: true,
  openPairingRole: 'Guest',
  openPairingPasswordSealed: 'sealed:open',
  initialPairingUsername: 'admin',
};
const admin = user('admin', { role: 'Administrator' });
const iamWith = (settings: Partial<IamState> = {}, ...users: ReturnType<typeof user>[]) =>
  iamOf({ state: stateOf([admin, ...users], { ...allModes, ...settings }) });

let iam: Iam;
beforeEach(() => {
  iam = iamWith();
});

async function invite(iam: Iam, username = 'guest'): Promise<void> {
  await iam.update((draft) => {
    draft.createUser(username);
    draft.setUserRole(username, 'Guest');
  });
  await iam.setUserPassword(username, 'secret');
}

describe('the modes by which a caller can pair', () => {
  it('are all four, in the order of the record', () => {
    expect(iamWith().availablePairingModes(caller(1))).toEqual(['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial']);
  });

  const cases: [name: string, settings: Partial<IamState>, from: object, modes: string[]][] = [
    [
      'nothing with all flags off',
      { localOpenPairing: false, passwordOpenPairing: false, passwordInvitePairing: false, localInitialPairing: false },
      {},
      [],
    ],
    ['no local ones for a remote caller', {}, remote, ['PasswordOpen', 'PasswordInvite']],
  ];
  for (const [name, settings, from, modes] of cases) {
    it(`are ${name}`, () => expect(iamWith(settings).availablePairingModes(caller(1, from))).toEqual(modes));
  }

  it('leave out modes without a role, a password or an unpaired initial user', async () => {
    await iam.setOpenPairingPassword(undefined);
    expect(iam.availablePairingModes(caller(1))).toEqual(['LocalOpen', 'PasswordInvite', 'LocalInitial']);
    await iam.update((draft) => draft.setOpenPairingRole(undefined));
    expect(iam.availablePairingModes(caller(1))).toEqual(['PasswordInvite', 'LocalInitial']);
    await iam.update((draft) => draft.setUserOauthSubject('admin', 'subject'));
    expect(iam.availablePairingModes(caller(1))).toEqual(['PasswordInvite']);
  });

  it('are none for a caller whose role may not pair', () => {
    const iam = iamWith({}, user('nobody', { fingerprints: [{ fingerprint: key(9) }] }));
    expect(iam.availablePairingModes(caller(9))).toEqual([]);
  });
});

describe('Local Open', () => {
  it('makes a user with the role of open pairing, the key and a fresh token, and emits an event', async () => {
    const changes: IamChange[] = [];
    iam.onChange((change) => changes.push(change));
    const paired = await iam.pairLocalOpen(caller(1), 'ann', 'Phone');
    expect(paired).toEqual({
      username: 'ann',
      role: 'Guest',
      fingerprints: [{ fingerprint: key(1), name: 'Phone' }],
      sct: 'token0000001',
      notificationCategories: [],
    });
    expect(iam.resolveCaller(caller(1))).toEqual(paired);
    expect(changes.map(({ kind }) => kind)).toEqual(['user-created', 'user-paired']);
    expect(changes[1]).toEqual({ kind: 'user-paired', username: 'ann', mode: 'LocalOpen', fingerprint: key(1), by: caller(1) });
  });

  it('again with the same name and key changes nothing', async () => {
    await iam.pairLocalOpen(caller(1), 'ann');
    const { state } = iam;
    await iam.pairLocalOpen(caller(1), 'ann', 'Other');
    expect(iam.state).toBe(state);
  });

  it('refuses a name or a key of another user', async () => {
    await iam.pairLocalOpen(caller(1), 'ann');
    expect(await codeOf(() => iam.pairLocalOpen(caller(2), 'ann'))).toBe('IN_USE');
    expect(await codeOf(() => iam.pairLocalOpen(caller(1), 'bob'))).toBe('IN_USE');
    expect(iam.usernames).toEqual(['admin', 'ann']);
  });

  it('gives one name that two clients request at once to one of them', async () => {
    const both = await Promise.all([1, 2].map((number) => codeOf(() => iam.pairLocalOpen(caller(number), 'ann'))));
    expect(both).toEqual(['OK', 'IN_USE']);
  });

  it('refuses in this order: off, not allowed, not local, no role, bad name', async () => {
    const asked = (iam: Iam, from: object = {}) => codeOf(() => iam.pairLocalOpen(caller(1, from), 'BAD'));
    expect(await asked(iamWith({ localOpenPairing: false }), remote)).toBe('NOT_FOUND');
    expect(await asked(iamWith({}, user('nobody', { fingerprints: [{ fingerprint: key(1) }] })))).toBe('FORBIDDEN');
    expect(await asked(iamWith(), remote)).toBe('FORBIDDEN');
    expect(await asked(iamOf({ state: stateOf([], { localOpenPairing: true }) }))).toBe('FORBIDDEN');
    expect(await asked(iamWith())).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iamWith().pairLocalOpen(caller(1), ''))).toBe('INVALID_ARGUMENT');
  });

  it('keeps the limit on users', async () => {
    const iam = iamOf({ state: stateOf([admin], allModes), limits: { maxUsers: 2 } });
    await iam.pairLocalOpen(caller(1), 'ann');
    expect(await codeOf(() => iam.pairLocalOpen(caller(2), 'bob'))).toBe('OUT_OF_MEMORY');
    expect(await codeOf(() => iam.update((draft) => draft.createUser('bob')))).toBe('OUT_OF_MEMORY');
  });

  it.each([
    [1_000, 750],
    [6, 5],
    [2, 2],
    [1, 1],
  ])('fills %d users up to %d, and a user that paired that way stays one', async (maxUsers, most) => {
    const iam = iamOf({ state: stateOf([], allModes), limits: { maxUsers } });
    for (let number = 1; number <= most; number++) await iam.pairLocalOpen(caller(number), `user${number}`);
    expect(await codeOf(() => iam.pairLocalOpen(caller(most + 1), 'late'))).toBe('OUT_OF_MEMORY');
    expect(iam.usernames).toHaveLength(most);
    expect((await iam.pairLocalOpen(caller(1), 'user1')).username).toBe('user1');
  });

  it('leaves a quarter to users that are invited or know the password of open pairing', async () => {
    const iam = iamOf({ state: stateOf([admin], allModes), limits: { maxUsers: 8 } });
    let strangers = 0;
    while ((await codeOf(() => iam.pairLocalOpen(caller(100 + strangers), `user${strangers}`))) === 'OK') strangers++;
    expect(strangers).toBe(5);
    await invite(iam);
    expect(await codeOf(() => iam.pairPasswordInvite(caller(1, { ...remote, passwordUsername: 'guest' })))).toBe('OK');
    expect(await codeOf(() => iam.pairPasswordOpen(caller(2, { ...remote, passwordUsername: '' }), 'ann'))).toBe('OK');
    expect(await codeOf(() => iam.pairPasswordOpen(caller(3, { ...remote, passwordUsername: '' }), 'bob'))).toBe('OUT_OF_MEMORY');
    expect(await codeOf(() => iam.pairLocalOpen(caller(100), 'user0'))).toBe('OK');
  });

  it('says whose share is full', async () => {
    const iam = iamOf({ state: stateOf([admin, user('ann'), user('bob')], allModes), limits: { maxUsers: 4 } });
    await expect(iam.pairLocalOpen(caller(1), 'carl')).rejects.toThrow('local open pairing is for 3 of 4 users, and that limit is reached');
    await iam.update((draft) => draft.deleteUser('bob'));
    expect(await codeOf(() => iam.pairLocalOpen(caller(1), 'carl'))).toBe('OK');
  });
});

describe('Password Open', () => {
  it('needs the password of open pairing, also remotely', async () => {
    expect(await codeOf(() => iam.pairPasswordOpen(caller(1, remote), 'ann'))).toBe('UNAUTHORIZED');
    expect(await codeOf(() => iam.pairPasswordOpen(caller(1, { ...remote, passwordUsername: 'admin' }), 'ann'))).toBe('UNAUTHORIZED');
    expect(await codeOf(() => iam.pairPasswordOpen(caller(1, { ...remote, passwordUsername: '' }), 'ann'))).toBe('OK');
    expect(iam.user('ann')?.role).toBe('Guest');
  });

  it('refuses in this order: off, no password, not authenticated', async () => {
    const asked = (settings: Partial<IamState>) => codeOf(() => iamOf({ state: stateOf([], settings) }).pairPasswordOpen(caller(1), 'ann'));
    expect(await asked({ openPairingRole: 'Guest' })).toBe('NOT_FOUND');
    expect(await asked({ passwordOpenPairing: true, openPairingRole: 'Guest' })).toBe('FORBIDDEN');
    expect(await asked({ passwordOpenPairing: true, openPairingPasswordSealed: 'sealed:x' })).toBe('FORBIDDEN');
    expect(await asked({ passwordOpenPairing: true, openPairingPasswordSealed: 'sealed:x', openPairingRole: 'Guest' })).toBe(
      'UNAUTHORIZED',
    );
  });
});

describe('Local Initial', () => {
  it('makes the first caller the initial user, once', async () => {
    expect((await iam.pairLocalInitial(caller(1), 'Phone')).fingerprints).toEqual([{ fingerprint: key(1), name: 'Phone' }]);
    expect(iam.check(caller(1), 'IAM:SetSettings')).toBe(true);
    expect(await codeOf(() => iam.pairLocalInitial(caller(1)))).toBe('IN_USE');
    expect(await codeOf(() => iam.pairLocalInitial(caller(2)))).toBe('IN_USE');
    expect(iam.availablePairingModes(caller(2))).not.toContain('LocalInitial');
  });

  it('refuses in this order: off, no initial user, not local', async () => {
    expect(await codeOf(() => iamWith({ localInitialPairing: false }).pairLocalInitial(caller(1)))).toBe('NOT_FOUND');
    expect(await codeOf(() => iamWith({ initialPairingUsername: 'gone' }).pairLocalInitial(caller(1, remote)))).toBe('NOT_FOUND');
    expect(await codeOf(() => iamWith().pairLocalInitial(caller(1, remote)))).toBe('FORBIDDEN');
  });

  it('refuses a key that belongs to another user', async () => {
    const iam = iamWith({}, user('ann', { role: 'Guest', fingerprints: [{ fingerprint: key(1) }] }));
    expect(await codeOf(() => iam.pairLocalInitial(caller(1)))).toBe('IN_USE');
  });

  it('still finds the initial user after a rename', async () => {
    await iam.update((draft) => draft.setUserUsername('admin', 'boss'));
    expect((await iam.pairLocalInitial(caller(1))).username).toBe('boss');
  });
});

describe('Password Invite', () => {
  it('adds the key to the invited user and removes the password', async () => {
    await invite(iam);
    expect((await iam.pairPasswordInvite(caller(1, { passwordUsername: 'guest' }))).fingerprints).toEqual([{ fingerprint: key(1) }]);
    expect(iam.hasPassword('guest')).toBe(false);
    expect(await iam.passwordOf('guest')).toBeUndefined();
  });

  it('again with the same key changes nothing', async () => {
    await invite(iam);
    await iam.pairPasswordInvite(caller(1, { passwordUsername: 'guest' }));
    const { state } = iam;
    await iam.pairPasswordInvite(caller(1, { passwordUsername: 'guest' }));
    expect(iam.state).toBe(state);
  });

  it('is for one key, even if two authenticated by the same password', async () => {
    await invite(iam);
    const both = await Promise.all(
      [1, 2].map((number) => codeOf(() => iam.pairPasswordInvite(caller(number, { passwordUsername: 'guest' })))),
    );
    expect(both).toEqual(['OK', 'UNAUTHORIZED']);
    expect(iam.user('guest')?.fingerprints).toHaveLength(1);
  });

  it('refuses without authentication, with that of open pairing, and with another user’s key', async () => {
    const iam = iamWith({}, user('ann', { role: 'Guest', fingerprints: [{ fingerprint: key(9) }] }));
    await invite(iam);
    expect(await codeOf(() => iam.pairPasswordInvite(caller(1)))).toBe('UNAUTHORIZED');
    expect(await codeOf(() => iam.pairPasswordInvite(caller(1, { passwordUsername: '' })))).toBe('UNAUTHORIZED');
    expect(await codeOf(() => iam.pairPasswordInvite(caller(9, { passwordUsername: 'guest' })))).toBe('IN_USE');
    await iam.update((draft) => draft.deleteUser('guest'));
    expect(await codeOf(() => iam.pairPasswordInvite(caller(1, { passwordUsername: 'guest' })))).toBe('INVALID_STATE');
  });
});
