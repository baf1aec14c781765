/**
 * `IamUtil` with a real device under access control: the operations of its users, through the base station and
 * directly.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { IamUtil, type PairingMode } from '../../../client/node.ts';
import { GuardedDevice } from '../../device/iam/guarded-device.ts';
import { stateOf, user } from '../../device/iam/model.ts';

const OPEN = 'open-secret';
const FP = '0123456789abcdef'.repeat(4);
const everyMode = { localOpenPairing: true, passwordOpenPairing: true, passwordInvitePairing: true, localInitialPairing: true };

let guarded: GuardedDevice;
beforeEach(async () => {
  const state = stateOf([user('admin', { role: 'Administrator' })], {
    ...everyMode,
    openPairingRole: 'Guest',
    initialPairingUsername: 'admin',
  });
  guarded = await GuardedDevice.attached({ state, notificationCategories: ['heat', 'cold'] });
  await guarded.settle(guarded.iam.setOpenPairingPassword(OPEN));
});

const outcome = (promise: Promise<unknown>) => guarded.settle(promise.catch((error: { code: string }) => error.code));

/** The administrator, paired as the first client. */
async function administrator(): Promise<IamUtil> {
  const iam = new IamUtil(await guarded.direct());
  await guarded.settle(iam.pairLocalInitial());
  return iam;
}

/** A user of open pairing: a guest. */
async function guest(username: string): Promise<IamUtil> {
  const iam = new IamUtil(await guarded.direct());
  await guarded.settle(iam.pairLocalOpen(username));
  return iam;
}

describe('pairing', () => {
  const local: PairingMode[] = ['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial'];

  test('offers the modes that are possible on the connection', { tags: ['slow'] }, async () => {
    const [near, far] = [new IamUtil(await guarded.direct()), new IamUtil(await guarded.relayed())];
    expect(await guarded.settle(near.getAvailablePairingModes())).toEqual(local);
    expect(await guarded.settle(far.getAvailablePairingModes())).toEqual(['PasswordOpen', 'PasswordInvite']);
    expect(await guarded.settle(far.getDeviceDetails())).toMatchObject({ productId: 'pr-1', deviceId: 'de-1' });
    expect(await guarded.settle(far.isCurrentUserPaired())).toBe(false);
  });

  test.each<[PairingMode, 'direct' | 'relayed', string, string]>([
    ['LocalInitial', 'direct', 'admin', 'Administrator'],
    ['LocalOpen', 'direct', 'bob', 'Guest'],
    ['PasswordOpen', 'direct', 'bob', 'Guest'],
    ['PasswordOpen', 'relayed', 'bob', 'Guest'],
    ['PasswordInvite', 'direct', 'carol', 'Standard'],
    ['PasswordInvite', 'relayed', 'carol', 'Standard'],
  ])('%s, %s: makes a client %s', async (mode, way, username, role) => {
    await guarded.settle(guarded.iam.update((draft) => draft.createUser('carol', { role: 'Standard' })));
    await guarded.settle(guarded.iam.setUserPassword('carol', 'invited'));
    const password = mode === 'PasswordOpen' ? OPEN : 'invited';
    const connection = await guarded[way]();
    const iam = new IamUtil(connection);
    const paired = await guarded.settle(iam.pair({ mode, username, password, fingerprintName: 'phone' }));
    const fingerprint = connection.getClientFingerprint();
    expect(paired).toMatchObject({ mode, user: { username, role, fingerprints: [{ fingerprint, name: 'phone' }] } });
    expect(connection.verified).toBe(mode.startsWith('Password') ? 'password' : 'none');
    // The second time it is that user already.
    expect(await guarded.settle(iam.pair({ username }))).toMatchObject({ mode: null, user: { username } });
    expect(await guarded.settle(iam.isCurrentUserPaired())).toBe(true);
  });

  test('names each refusal', { tags: ['slow'] }, async () => {
    await guest('bob');
    const [near, far] = [new IamUtil(await guarded.direct()), new IamUtil(await guarded.relayed())];
    expect(await outcome(near.pairLocalOpen('bob'))).toBe('USERNAME_EXISTS');
    expect(await outcome(near.pairLocalOpen('Bob!'))).toBe('INVALID_INPUT');
    expect(await outcome(far.pairLocalOpen('dora'))).toBe('BLOCKED_BY_DEVICE_CONFIGURATION');
    expect(await outcome(far.pairPasswordOpen('dora', 'wrong'))).toBe('AUTHENTICATION_ERROR');
    expect(await outcome(far.pairPasswordOpen('bob', OPEN))).toBe('USERNAME_EXISTS');
    expect(await outcome(far.pairPasswordInvite('bob', OPEN))).toBe('AUTHENTICATION_ERROR');
    await administrator();
    expect(await outcome(near.pairLocalInitial())).toBe('INITIAL_USER_ALREADY_PAIRED');
    await guarded.settle(guarded.iam.update((draft) => draft.setFlag('localOpenPairing', false)));
    expect(await outcome(near.pairLocalOpen('dora'))).toBe('PAIRING_MODE_DISABLED');
    expect(guarded.iam.usernames).toEqual(['admin', 'bob']);
  });

  test('an invitation works once, and a user of another name cannot take it', { tags: ['slow'] }, async () => {
    const admin = await administrator();
    await guarded.settle(admin.createUser('carol', { password: 'invited', role: 'Guest' }));
    const bob = await guest('bob');
    expect(await outcome(bob.pairPasswordInvite('carol', 'invited'))).toBe('FINGERPRINT_IN_USE');
    const [first, second] = [new IamUtil(await guarded.relayed()), new IamUtil(await guarded.relayed())];
    expect(await outcome(first.pairPasswordInvite('carol', 'invited'))).toBeUndefined();
    expect(await outcome(second.pairPasswordInvite('carol', 'invited'))).toBe('AUTHENTICATION_ERROR');
  });
});

describe('an administrator', () => {
  test('reads and sets everything of a user', { tags: ['slow'] }, async () => {
    const admin = await administrator();
    const { sct } = await guarded.settle(admin.createUser('carol', { password: 'invited', role: 'Standard' }));
    const first = await guarded.settle(admin.getUser('carol'));
    expect(first).toEqual({ username: 'carol', role: 'Standard', sct, administers: false, fingerprints: [], notificationCategories: [] });
    const changes = async () => {
      await admin.updateUserDisplayName('carol', 'Carol C.');
      await admin.updateUserRole('carol', 'Guest');
      await admin.updateUserSct('carol', 'her-token');
      await admin.updateUserOauthSubject('carol', 'subject');
      await admin.updateUserPush('carol', { token: 't', projectId: 'p' });
      await admin.updateUserNotificationCategories('carol', ['heat']);
      await admin.addUserFingerprint('carol', FP, 'tablet');
      await admin.renameUser('carol', 'caroline');
    };
    await guarded.settle(changes());
    const changed = {
      username: 'caroline',
      displayName: 'Carol C.',
      role: 'Guest',
      sct: 'her-token',
      administers: false,
      oauthSubject: 'subject',
      push: { token: 't', projectId: 'p' },
      notificationCategories: ['heat'],
      fingerprints: [{ fingerprint: FP, name: 'tablet' }],
    };
    expect(await guarded.settle(admin.getUser('caroline'))).toEqual(changed);
    const clearings = async () => {
      await admin.updateUserDisplayName('caroline', null);
      await admin.updateUserOauthSubject('caroline', null);
      await admin.updateUserPassword('caroline', null);
      await admin.updateUserNotificationCategories('caroline', []);
      await admin.removeUserFingerprint('caroline', FP);
    };
    await guarded.settle(clearings());
    const { displayName: _, oauthSubject: __, ...rest } = changed;
    expect(await guarded.settle(admin.getUser('caroline'))).toEqual({ ...rest, notificationCategories: [], fingerprints: [] });
    expect(guarded.iam.hasPassword('caroline')).toBe(false);
  });

  test('lists users, roles and settings, and changes the device', async () => {
    const admin = await administrator();
    expect(await guarded.settle(admin.listUsers())).toEqual(['admin']);
    expect(await guarded.settle(admin.listRoles())).toEqual(['Unpaired', 'Guest', 'Standard', 'Administrator']);
    expect(await guarded.settle(admin.getNotificationCategories())).toEqual(['heat', 'cold']);
    await guarded.settle(admin.updateSetting('password-open-pairing', false));
    expect(await guarded.settle(admin.getSettings())).toMatchObject({
      passwordOpenPairing: false,
      localOpenPairing: true,
      passwordOpenPassword: OPEN,
    });
    await guarded.settle(admin.updateFriendlyName('Lamp'));
    expect(await guarded.settle(admin.getDeviceDetails())).toMatchObject({ friendlyName: 'Lamp' });
  });

  test('gets the reason of each error', { tags: ['slow'] }, async () => {
    const admin = await administrator();
    await guest('bob');
    expect(await outcome(admin.createUser('bob'))).toBe('USERNAME_EXISTS');
    expect(await outcome(admin.createUser('Bob B.'))).toBe('INVALID_INPUT');
    expect(await outcome(admin.renameUser('admin', 'bob'))).toBe('USERNAME_EXISTS');
    expect(await outcome(admin.updateUserRole('bob', 'King'))).toBe('ROLE_DOES_NOT_EXIST');
    expect(await outcome(admin.updateUserRole('nobody', 'Guest'))).toBe('USER_DOES_NOT_EXIST');
    expect(await outcome(admin.updateUserRole('nobody', 'King'))).toBe('USER_DOES_NOT_EXIST');
    expect(await outcome(admin.updateUserPassword('bob', 'abc'))).toBe('INVALID_INPUT');
    expect(await outcome(admin.updateUserNotificationCategories('bob', ['rain']))).toBe('INVALID_INPUT');
    expect(await outcome(admin.removeUserFingerprint('bob', FP))).toBe('NOT_FOUND');
    expect(await outcome(admin.removeUserFingerprint('nobody', FP))).toBe('USER_DOES_NOT_EXIST');
    expect(await outcome(admin.sendUserPushTest('bob'))).toBe('NOT_FOUND');
    expect(await outcome(admin.getUser('nobody'))).toBe('USER_DOES_NOT_EXIST');
    const mine = guarded.iam.user('admin')?.fingerprints[0]?.fingerprint ?? '';
    expect(await outcome(admin.addUserFingerprint('bob', mine))).toBe('FINGERPRINT_IN_USE');
  });

  test('leaves no half-made user behind', { tags: ['slow'] }, async () => {
    const admin = await administrator();
    expect(await outcome(admin.createUser('carol', { role: 'King', password: 'secret' }))).toBe('ROLE_DOES_NOT_EXIST');
    expect(await outcome(admin.createUser('carol', { role: 'Guest', password: 'abc' }))).toBe('INVALID_INPUT');
    expect(guarded.iam.usernames).toEqual(['admin']);
  });

  test('deletes a user together with its connections', { tags: ['slow'] }, async () => {
    const admin = await administrator();
    const iam = await guest('bob');
    await guarded.settle(admin.deleteUser('bob'));
    await guarded.pass(1000);
    expect(await outcome(iam.getCurrentUser())).toBe('NOT_CONNECTED');
    expect(await outcome(admin.deleteUser('bob'))).toBe('USER_DOES_NOT_EXIST');
  });
});

test('a guest does what its role allows, for itself alone', async () => {
  const iam = await guest('bob');
  const blocked = 'BLOCKED_BY_DEVICE_CONFIGURATION';
  expect(await outcome(iam.updateUserDisplayName('bob', 'Bob'))).toBeUndefined();
  expect(await outcome(iam.updateUserNotificationCategories('bob', ['cold']))).toBeUndefined();
  expect(await guarded.settle(iam.getCurrentUser())).toMatchObject({ displayName: 'Bob', notificationCategories: ['cold'] });
  expect(await outcome(iam.updateUserDisplayName('admin', 'Bob'))).toBe(blocked);
  expect(await outcome(iam.createUser('carol'))).toBe(blocked);
  expect(await outcome(iam.updateUserRole('bob', 'Administrator'))).toBe(blocked);
  expect(await outcome(iam.getSettings())).toBe(blocked);
  expect(await outcome(iam.deleteUser('admin'))).toBe(blocked);
});

test('no client is a user before pairing', async () => {
  const iam = new IamUtil(await guarded.relayed());
  expect(await outcome(iam.getCurrentUser())).toBe('USER_DOES_NOT_EXIST');
  expect(await outcome(iam.listUsers())).toBe('BLOCKED_BY_DEVICE_CONFIGURATION');
});
