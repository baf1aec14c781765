/** Users and roles of `svc device`: rights of its roles, first states, keys and invitations, explain. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type Access,
  type AccessOptions,
  administratorRole,
  invite,
  openAccess,
  pairingOf,
  pairKeys,
  readAccess,
  setPairing,
  thermostatConfiguration,
} from '../../cli/device-app/access.ts';
import type { IamSecrets } from '../../device/iam/index.ts';
import { silentLog } from '../../platform/environment.ts';
import { fakeSecrets, iamOf, stateOf, user } from '../device/iam/model.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const KEY = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);

let directory: string;
let secrets: IamSecrets;
beforeEach(() => {
  secrets = fakeSecrets();
  directory = temporaryDirectory();
});

const open = (options: Partial<AccessOptions> = {}): Promise<Access> =>
  openAccess(directory, { secrets, first: 'production', log: silentLog, now: () => 0, ...options });

describe('roles', () => {
  const users = [user('guest', { role: 'Guest' }), user('standard', { role: 'Standard' }), user('admin', { role: 'Administrator' })];
  const on = { localOpenPairing: true, openPairingRole: 'Guest' };

  test.each([
    ['nobody', []],
    ['guest', ['Thermostat:Get']],
    ['standard', ['Thermostat:Get', 'Thermostat:Set', 'File:Transfer', 'TcpTunnel:Connect']],
    ['admin', ['Thermostat:Get', 'Thermostat:Set', 'File:Transfer', 'TcpTunnel:Connect', 'IAM:CreateUser']],
  ])('%s may do %j', (username, expected) => {
    const actions = ['Thermostat:Get', 'Thermostat:Set', 'File:Transfer', 'TcpTunnel:Connect', 'IAM:CreateUser'];
    const caller = { fingerprint: KEY, isLocal: true, boundUsername: username };
    const access = iamOf({ configuration: thermostatConfiguration(), state: stateOf(users, on) });
    expect(actions.filter((action) => access.check(caller, action))).toEqual(expected);
    expect(access.check(caller, 'IAM:PairingLocalOpen')).toBe(true);
  });
});

describe('first state', () => {
  test('production: admin is invited, and its password is shown once', async () => {
    const { iam, adminPassword } = await open();
    expect(adminPassword).toMatch(/^\w{4,}$/);
    expect(pairingOf(iam)).toEqual(['PasswordInvite']);
    expect(iam.user('admin')).toMatchObject({ role: 'Administrator' });
    const again = await open({ first: 'demo' });
    expect(again.adminPassword).toBeUndefined();
    expect(again.iam.usernames).toEqual(['admin']);
  });

  test('demo: any client becomes an administrator', async () => {
    const { iam, adminPassword } = await open({ first: 'demo' });
    expect(adminPassword).toBeUndefined();
    expect(pairingOf(iam)).toEqual(['PasswordOpen', 'LocalOpen', 'PasswordInvite']);
    expect(iam.state).toMatchObject({ openPairingRole: 'Administrator', friendlyName: 'Thermostat' });
  });
});

test('pairing modes are set together and persist', async () => {
  const { iam } = await open();
  await setPairing(iam, ['LocalInitial', 'PasswordOpen']);
  expect(pairingOf((await open()).iam)).toEqual(['PasswordOpen', 'LocalInitial']);
  await setPairing(iam, []);
  expect(pairingOf(iam)).toEqual([]);
});

test('an allowed key becomes an administrator once; the key of a user keeps its role', async () => {
  const { iam } = await open();
  await iam.update((draft) => draft.createUser('guest', { role: 'Guest', fingerprints: [{ fingerprint: OTHER }] }));
  await pairKeys(iam, [KEY, OTHER]);
  await pairKeys(iam, [KEY]);
  expect(iam.usernames).toEqual(['admin', 'guest', 'key-abababababab']);
  expect(iam.userByFingerprint(KEY)).toMatchObject({ role: 'Administrator' });
  expect(iam.userByFingerprint(OTHER)).toMatchObject({ username: 'guest', role: 'Guest' });
});

describe('an invitation', () => {
  test('makes a user, or a new password for an existing one', async () => {
    const { iam } = await open();
    const first = await invite(iam, secrets, 'guest', 'Guest');
    expect(first.user).toMatchObject({ username: 'guest', role: 'Guest' });
    const second = await invite(iam, secrets, 'guest');
    expect(second.user).toMatchObject({ role: 'Guest', sct: first.user.sct });
    expect(second.password).not.toBe(first.password);
    expect(iam.hasPassword('guest')).toBe(true);
  });

  test.each<[string, string | undefined]>([
    ['deleted', undefined],
    ['made a guest', 'Guest'],
  ])('restores the role of an admin that was %s, and of no other user', async (_what, role) => {
    const { iam } = await open();
    await iam.update((draft) => (role === undefined ? draft.deleteUser('admin') : draft.setUserRole('admin', role)));
    expect((await invite(iam, secrets, 'admin')).user).toMatchObject({ role: 'Administrator' });
    expect((await invite(iam, secrets, 'admin', 'Standard')).user).toMatchObject({ role: 'Standard' });
    expect((await invite(iam, secrets, 'bob')).user.role).toBeUndefined();
  });

  test('gives admin the role that manages users, whatever its name is', async () => {
    const { policies, roles, ...rest } = thermostatConfiguration();
    const renamed = roles.map((each) => (each.id === 'Administrator' ? { ...each, id: 'Owner' } : each));
    const empty = { id: 'Administrator', policies: ['Pairing'] };
    const iam = iamOf({
      configuration: { ...rest, policies, roles: [empty, ...renamed] },
      state: stateOf([user('admin', { role: 'Administrator' })]),
    });
    expect(administratorRole(iam)).toBe('Owner');
    expect((await invite(iam, secrets, 'admin')).user.role).toBe('Owner');
  });

  test('that is refused leaves no user behind', async () => {
    const { iam } = await open();
    await expect(invite(iam, secrets, 'guest', 'Gast')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(invite(iam, secrets, 'Guest')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(iam.usernames).toEqual(['admin']);
  });
});

describe('reading only', () => {
  test('the files show who may do what, and stay unchanged', async () => {
    await open();
    const before = await readFile(join(directory, 'iam-state.json'), 'utf8');
    const iam = await readAccess(directory, secrets);
    expect(iam.explain({ fingerprint: '', isLocal: false, boundUsername: 'admin' }, 'Thermostat:Set')).toMatchObject({
      allowed: true,
      role: 'Administrator',
      policy: 'ControlThermostat',
    });
    await expect(iam.update((draft) => draft.createUser('x'))).rejects.toMatchObject({ code: 'FAILED' });
    expect(await readFile(join(directory, 'iam-state.json'), 'utf8')).toBe(before);
  });

  test('a directory without users is reported, and stays empty', async () => {
    await expect(readAccess(directory, secrets)).rejects.toThrow(/first start/);
    expect(await readdir(directory)).toEqual([]);
  });

  test('an error in the configuration is reported with its place', async () => {
    await open();
    const file = join(directory, 'iam-configuration.json');
    const document = JSON.parse(await readFile(file, 'utf8'));
    document.Policies[1].Statements[0].Condition = [];
    await writeFile(file, JSON.stringify(document));
    const message = /iam-configuration\.json: Policies\[1\]\.Statements\[0\].*Condition/;
    await expect(open()).rejects.toThrow(message);
    await expect(readAccess(directory, secrets)).rejects.toThrow(message);
  });
});
