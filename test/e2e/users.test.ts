/**
 * Pairing and users by the command line: `svc`, a device with access control in this process, over UDP on loopback.
 *
 * @module-tag slow
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIamSecrets, Device, defaultConfiguration, Iam, productionState } from '../../device/index.ts';
import { ownAddresses } from '../../platform/node/index.ts';
import { decodePairing, encodePairingString, type PairingString } from '../../protocol/records/index.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { Commands, svcProcess } from './commands.ts';

const { svc, svcJson } = new Commands('pair', 'iam', 'push');

const ids = { productId: drawnProduct(), deviceId: 'de-users' };

let folder: string;
let device: Device;
let iam: Iam;
let openPairingPassword: string;
/** A pairing string of the device, without the values that it prompts for. */
let base: PairingString;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-users-'));
  device = new Device({ ...ids, basestationAttach: false, localPort: 0, p2pPort: 0 });
  const privateKey = device.createPrivateKey();
  device.setPrivateKey(privateKey);
  const secrets = createIamSecrets(privateKey);
  const first = await productionState(secrets);
  openPairingPassword = first.openPairingPassword;
  iam = new Iam({
    configuration: defaultConfiguration(),
    state: { ...first.state, localInitialPairing: true },
    secrets,
    notificationCategories: ['heat'],
  });
  device.setIam(iam);
  await device.start();
  base = { ...ids, fingerprint: device.deviceFingerprint };
});

afterAll(async () => {
  await device.close();
  await rm(folder, { recursive: true, force: true });
});

const address = () => `127.0.0.1:${device.localPort}`;
/** Options of a client with its own state that has not seen the device. */
const stranger = (name: string) => ['--state', join(folder, name), '--address', address()];
/** The same once it knows the device. */
const client = (name: string) => ['--state', join(folder, name), '--no-local'];

test('the commands of the README run as they stand: the first client becomes the administrator, without a question', async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const lines = (/```sh users\n([\s\S]*?)```/.exec(readme)?.[1] ?? '').trim().split('\n');
  const pair = /^svc (pair - --name \w+) +#/m.exec(readme)?.[1] ?? '';
  expect(lines.length).toBeGreaterThan(3);
  const input = `${encodePairingString({ ...base, addresses: [address()] })}\n`;
  expect(await svcProcess({ input }, ...pair.split(' '), ...client('admin'))).toMatchObject({ code: 0, stderr: '' });
  for (const line of lines) {
    const command = line.replace(/\s+#.*/, '');
    const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain).slice(1);
    expect({ line, ...(await svc(...words, ...client('admin'))) }).toMatchObject({ line, code: 0, stderr: '' });
  }
  expect(iam.usernames).toEqual(['admin']);
  expect(iam.user('admin')?.fingerprints).toHaveLength(1);
});

test('pairing again changes nothing', async () => {
  const again = await svc('pair', 'home', ...client('admin'));
  const said = /^connected to pr-\w+\.de-users [\s\S]*\npaired {14}before\nyou are admin \(Administrator\)\n$/;
  expect(again).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(said) });
  expect(await svcJson('iam', 'me', ...client('admin'))).toMatchObject({ username: 'admin', role: 'Administrator' });
});

test('an invitation: string, link and QR code; used once, from standard input', async () => {
  const shown = await svc('iam', 'invite', 'carol', '--qr', '--link-base', 'https://app.example/pair', ...client('admin'));
  expect(shown.code).toBe(0);
  expect(shown.stderr).toMatch(/█{20}/);
  const [, , string = '', link = ''] = shown.stdout.split('\n');
  expect(shown.stdout).toMatch(/^pair with {2}svc pair -$/m);
  const pairing = decodePairing(string);
  const { fingerprint: _, ...unpinned } = pairing;
  expect(decodePairing(link)).toEqual(unpinned);
  expect(link).toMatch(/^https:\/\/app\.example\/pair#~/);
  // The inviter came over loopback, which for other machines would be their own.
  const places = ownAddresses().slice(0, 3);
  expect(pairing).toMatchObject({
    ...base,
    addresses: places.map((host) => `${host.includes(':') ? `[${host}]` : host}:${device.localPort}`),
    username: 'carol',
    sct: iam.user('carol')?.sct,
    password: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
  });

  const paired = await svcProcess({ input: `${link}\n` }, 'pair', '-', '--json', ...stranger('carol'));
  expect(paired).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(paired.stdout)).toMatchObject({ username: 'carol', role: 'Guest', mode: 'PasswordInvite' });
  const used = await svcProcess({ input: string }, 'pair', '-', ...stranger('late'));
  expect(used).toMatchObject({ code: 1, stderr: expect.stringMatching(/AUTHENTICATION_ERROR.*once/) });
  expect(used.stderr.trim().split('\n')).toHaveLength(1);
});

test('a first contact without a fingerprint is authenticated by the right password, and only by it', async () => {
  await svcJson('iam', 'settings', 'set', 'password-open-pairing', 'on', ...client('admin'));
  const string = encodePairingString(ids);
  const wrong = await svcProcess({ variables: { SVC_PASSWORD: 'wrong' } }, 'pair', string, '--username', 'dora', ...stranger('dora'));
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/AUTHENTICATION_ERROR/) });
  expect(await svcJson('connect', '--list', ...client('dora'))).toEqual([]);
  await writeFile(join(folder, 'password'), `${openPairingPassword}\n`);
  const right = await svcJson(
    'pair',
    string,
    '--username',
    'dora',
    '--mode',
    'PasswordOpen',
    '--password-file',
    join(folder, 'password'),
    ...stranger('dora'),
  );
  expect(right).toMatchObject({ username: 'dora', mode: 'PasswordOpen', verified: 'password', fingerprint: device.deviceFingerprint });
});

test('--no-user, and svc connect, verify and remember, and make no user', async () => {
  const before = [...iam.usernames];
  const looked = await svc('pair', encodePairingString(base), '--no-user', '--name', 'desk', ...stranger('looker'));
  expect(looked).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(
      /\nnot a user yet: `svc pair desk --state \S+` asks for a user name and the password of the device[^\n]*\n$/,
    ),
  });
  expect(await svcJson('connect', 'desk', ...client('looker'))).toMatchObject({ outcome: 'not-a-user', verified: 'pinned' });
  expect(iam.usernames).toEqual(before);
  expect(await svcJson('connect', '--list', ...client('looker'))).toMatchObject([{ name: 'desk', fingerprint: device.deviceFingerprint }]);
  const admin = await svc('connect', 'home', ...client('admin'));
  expect(admin.stdout).toMatch(/\nyou are admin \(Administrator\)\n$/);
});

test('an invitation is not used where its result cannot be saved', async () => {
  const { link } = await svcJson('iam', 'invite', 'ivan', ...client('admin'));
  const blocked = join(folder, 'ivan', 'known.json');
  await mkdir(blocked, { recursive: true });
  const failed = await svc('pair', String(link), ...stranger('ivan'));
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('known.json') });
  await rm(blocked, { recursive: true });
  expect(await svcJson('pair', String(link), ...stranger('ivan'))).toMatchObject({ username: 'ivan' });
  await svc('iam', 'users', 'delete', 'ivan', ...client('admin'));
});

test('an invitation authenticates the device to a client that becomes no user, and can still be used', async () => {
  const { link } = await svcJson('iam', 'invite', 'hugo', ...client('admin'));
  const looked = await svcJson('connect', String(link), ...stranger('hugo'));
  expect(looked).toMatchObject({ outcome: 'not-a-user', verified: 'password', fingerprint: device.deviceFingerprint });
  expect(iam.user('hugo')?.fingerprints).toEqual([]);
  const shown = await svc('pair', String(link), '--no-user', ...client('hugo'));
  expect(shown.stdout).toMatch(/\nnot a user yet: `svc pair -` with the same pairing string makes this client hugo\n$/);
  expect(await svcJson('pair', String(link), ...client('hugo'))).toMatchObject({
    outcome: 'user',
    username: 'hugo',
    mode: 'PasswordInvite',
  });
  const used = await svc('connect', String(link), ...stranger('late-looker'));
  expect(used).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/\nsvc: the device does not have this password.*Ask for a new one/),
  });
  expect(await svcJson('connect', '--list', ...client('late-looker'))).toEqual([]);
});

test('a client without an invitation is advised to ask for one, and the device is remembered', async () => {
  await svcJson('iam', 'settings', 'set', 'password-open-pairing', 'off', ...client('admin'));
  const refused = await svc('pair', encodePairingString(base), ...stranger('early'));
  await svcJson('iam', 'settings', 'set', 'password-open-pairing', 'on', ...client('admin'));
  expect(refused).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^svc: not a user yet: ask an administrator of the device for an invitation/),
  });
  expect(await svcJson('connect', '--list', ...client('early'))).toHaveLength(1);
});

test('a device without access control has no users', async () => {
  const bare = new Device({ productId: ids.productId, deviceId: 'de-bare', basestationAttach: false, localPort: 0, p2pPort: 0 });
  bare.setPrivateKey(bare.createPrivateKey());
  await bare.start();
  const string = encodePairingString({
    productId: ids.productId,
    deviceId: 'de-bare',
    addresses: [`127.0.0.1:${bare.localPort}`],
    fingerprint: bare.deviceFingerprint,
  });
  for (const more of [[], ['--no-user'], ['--mode', 'LocalOpen', '--username', 'ida']]) {
    const { code, stdout } = await svc('pair', string, ...more, ...client('bare'));
    expect([more, code, stdout]).toEqual([more, 0, expect.stringMatching(/\nthis device has no users\n$/)]);
  }
  await bare.close();
});

test('a password in an argument causes a warning, a missing name is requested by its option', async () => {
  const string = encodePairingString({ ...base, password: openPairingPassword });
  const unnamed = await svc('pair', string, ...stranger('emil'));
  expect(unnamed).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^warning: the password was in the arguments.*\nsvc: .*--username/),
  });
  expect(unnamed.stderr).not.toContain(openPairingPassword);
  expect(await svc('pair', string, '--username', 'emil', ...stranger('emil'))).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^warning: /),
  });
});

test('the administrator manages users', async () => {
  const admin = (...args: string[]) => svcJson('iam', ...args, ...client('admin'));
  await admin('users', 'create', 'frida', '--role', 'Guest');
  await admin('users', 'set', 'frida', '--role', 'Standard', '--display-name', 'Frida F.', '--token', 'her-token');
  await admin('fingerprints', 'add', 'frida', 'ab'.repeat(32), '--key-name', 'watch');
  await admin('users', 'rename', 'frida', 'fr');
  expect(await admin('users', 'show', 'fr')).toEqual({
    username: 'fr',
    displayName: 'Frida F.',
    role: 'Standard',
    sct: 'her-token',
    administers: false,
    fingerprints: [{ fingerprint: 'ab'.repeat(32), name: 'watch' }],
    notificationCategories: [],
  });
  await Promise.all([admin('users', 'set', 'fr', '--clear', 'display-name'), admin('fingerprints', 'remove', 'fr', 'ab'.repeat(32))]);
  const shown = 'username       fr\nrole           Standard\ntoken          her-token\n';
  expect((await svc('iam', 'users', 'show', 'fr', ...client('admin'))).stdout).toBe(shown);
});

test('the administrator gets the reason of an error', async () => {
  const refusals: [string[], RegExp][] = [
    [['users', 'show', 'nobody'], /^svc: there is no such user .*USER_DOES_NOT_EXIST.*svc iam users list/],
    [
      ['users', 'set', 'fr', '--role', 'Guest', '--display-name', 'x'.repeat(65)],
      /^svc: display-name: .*INVALID_INPUT.*changed before that: role/,
    ],
    [['users', 'create', 'gina', '--role', 'King'], /ROLE_DOES_NOT_EXIST.*svc iam roles/],
    [['users', 'create', 'Gina!'], /INVALID_INPUT/],
  ];
  const runs = await Promise.all(refusals.map(([args]) => svc('iam', ...args, ...client('admin'))));
  expect(runs).toEqual(refusals.map(([, stderr]) => ({ code: 1, stdout: '', stderr: expect.stringMatching(stderr) })));
  expect(iam.user('gina')).toBeUndefined();
});

test('the administrator manages the device', async () => {
  const named = await svcJson('iam', 'friendly-name', 'Lamp', ...client('admin'));
  expect(named).toEqual({ friendlyName: 'Lamp' });
  expect((await svc('iam', 'modes', ...client('admin'))).stdout).toMatch(
    /^device .*pr-\w+\.de-users\nname .*Lamp\n[\s\S]*pairing .*PasswordOpen/,
  );
  expect((await svc('iam', 'settings', 'show', ...client('admin'))).stdout).toContain(`password of open pairing  ${openPairingPassword}\n`);
});

test('a guest chooses its notifications, and gets the reason when it has no right', async () => {
  const guest = client('carol');
  expect(await svcJson('push', 'set', 'my-project', 'my-token', ...guest)).toEqual({ username: 'carol', projectId: 'my-project' });
  expect(await svcJson('push', 'categories', 'heat', ...guest)).toEqual({ username: 'carol', chosen: ['heat'] });
  expect((await svc('push', 'categories', ...guest)).stdout).toBe('* heat\n');
  expect(iam.user('carol')).toMatchObject({ push: { token: 'my-token', projectId: 'my-project' }, notificationCategories: ['heat'] });
  expect(await svc('push', 'test', ...guest)).toMatchObject({ code: 1, stderr: expect.stringMatching(/NOT_ATTACHED/) });
  expect(await svc('iam', 'users', 'delete', 'admin', ...guest)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/BLOCKED_BY_DEVICE_CONFIGURATION.*svc iam me/),
  });
});
