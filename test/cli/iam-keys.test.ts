/** Invitations of `svc iam`: another one takes no key away, which the command says; one that fails leaves no user. */
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { SvcClient } from '../../client/node.ts';
import { Device, type Iam, type UserEntry } from '../../device/index.ts';
import { iamOf, key, stateOf, user } from '../device/iam/model.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let state: string;
let access: Iam;
let place: string[];

/** A device with these users and an administrator, which is this client. */
async function deviceWith(...users: UserEntry[]): Promise<void> {
  state = join(temporaryDirectory(), 'state');
  const client = SvcClient.create();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: await (await Known.open(state)).privateKey(client) });
  const admin = user('admin', { role: 'Administrator', fingerprints: [{ fingerprint: connection.getClientFingerprint() }] });
  const device = new Device({ productId: 'pr', deviceId: 'lamp', basestationAttach: false, localPort: 0, p2pPort: 0 });
  device.setPrivateKey(device.createPrivateKey());
  access = iamOf({ state: stateOf([admin, ...users], { passwordInvitePairing: true }), now: () => Date.UTC(2026, 0, 2) });
  device.setIam(access);
  await device.start();
  onTestFinished(() => device.close());
  place = ['--state', state, '--no-local', '--address', `127.0.0.1:${device.localPort}`, '--fingerprint', device.deviceFingerprint];
}

const iam = (...args: string[]) => svcInProcess(['iam', ...args, ...place]);

const keys = (...numbers: number[]) => numbers.map((number) => ({ fingerprint: key(number), ...(number === 2 && { name: 'Phone' }) }));
const remove = () => `a lost one is removed by  svc iam fingerprints remove bob FINGERPRINT -d pr.lamp --state ${state}`;

beforeEach(() => deviceWith(user('bob', { role: 'Guest', fingerprints: keys(1, 2) }), user('eve', { fingerprints: keys(3) }), user('new')));

test('another invitation of a user names the keys that stay valid, and how to remove one', async () => {
  const { stderr } = await iam('invite', 'bob', '--again', '--no-qr');
  const said = ['bob keeps these 2 keys, which stay valid:', key(1), `${key(2)}  Phone`, remove()];
  expect(stderr).toBe(`${said.join('\n')}\n`);
});

test('for a program the keys that stay valid are in the document', async () => {
  const { stdout } = await iam('invite', 'bob', '--again', '--no-qr', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ username: 'bob', keeps: keys(1, 2) });
  expect(JSON.parse((await iam('invite', 'carol', '--no-qr', '--json')).stdout)).not.toHaveProperty('keeps');
});

test('of a user without a key it says nothing', async () => {
  expect(await iam('invite', 'new', '--again', '--no-qr')).toMatchObject({ code: 0, stderr: '' });
});

describe('an invitation that fails leaves no user, nor another display name', () => {
  const long = 'x'.repeat(65);

  test.each([
    ['for a user name that a pairing string cannot hold', [long], /^svc: .*the username is longer than 64 bytes/],
    ['for a display name that the device refuses', ['carol', '--display-name', long], /^svc: .*the display name is longer than 64 bytes/],
  ])('%s', async (_, args, message) => {
    access.setLimits({ maxUsername: 100 });
    const { code, stderr } = await iam('invite', ...args, '--no-qr');
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(access.state.users.names).toEqual(['admin', 'bob', 'eve', 'new']);
  });
});

test('an invitation has the display name', { tags: ['slow'] }, async () => {
  expect(await iam('invite', 'carol', '--display-name', 'Carol', '--no-qr')).toMatchObject({ code: 0 });
  expect(access.state.users.user('carol')).toMatchObject({ username: 'carol', displayName: 'Carol', role: 'Guest' });
  expect(await iam('invite', 'bob', '--display-name', 'Bob', '--again', '--no-qr')).toMatchObject({ code: 0 });
  expect(access.state.users.user('bob')).toMatchObject({ username: 'bob', displayName: 'Bob' });
});

test('a user with several keys is shown with the way to remove one', { tags: ['slow'] }, async () => {
  expect((await iam('users', 'show', 'bob')).stderr).toBe(`${remove()}\n`);
  expect((await iam('users', 'show', 'eve')).stderr).toBe('');
});

test('a key has the day on which it was added, and on which it was last used', { tags: ['slow'] }, async () => {
  await iam('fingerprints', 'add', 'eve', key(4), '--key-name', 'Tablet');
  expect((await iam('users', 'show', 'eve')).stdout).toMatch(/\nfingerprint +0+4 {2}Tablet {2}added 2026-01-02\n/);
  expect((await iam('users', 'show', 'admin')).stdout).toMatch(/\nfingerprint +[0-9a-f]{64} {2}last used \d{4}-\d\d-\d\d\n/);
});
