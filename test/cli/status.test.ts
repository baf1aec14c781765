/** `svc status`: the contents of the state directory, and nothing more. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { SvcClient } from '../../client/node.ts';
import { Device } from '../../device/index.ts';
import { iamOf } from '../device/iam/model.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { PEM_OF_ROOT } from '../support/fixture/station-document.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FP = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);

let folder: string;
let state: string;
beforeEach(() => {
  folder = temporaryDirectory();
  state = join(folder, 'state');
});

const status = (...options: string[]) => svcInProcess(['status', '--state', state, ...options]);

test('svc status of a client that knows nothing creates nothing', async () => {
  const text = await status();
  expect([text.code, text.stderr]).toEqual([0, '']);
  expect(text.stdout).toMatch(/no key yet: create one with svc key create\n.*\nbase stations: none\ndevices: none/);
  expect(JSON.parse((await status('--json')).stdout)).toEqual({ client: null, state, stations: [], devices: [] });
  expect(existsSync(state)).toBe(false);
});

test('svc status shows key, base stations with their proof, and devices', async () => {
  const known = await Known.open(state);
  const client = SvcClient.create();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: await known.privateKey(client) });
  known.rememberStation('https://pinned.example:4433', { Fingerprint: OTHER, Seen: true });
  known.rememberStation('https://new.example:4433', { Fingerprint: FP, Seen: false });
  known.rememberStation('https://tls.example:443', { Roots: '' });
  known.rememberStation('https://own.example:4433', { Roots: PEM_OF_ROOT });
  known.remember({ ProductId: 'pr', DeviceId: 'lamp', Fingerprint: FP, Name: 'desk', ServerUrl: 'https://tls.example:443' });
  known.remember({ ProductId: 'pr', DeviceId: 'bell', Fingerprint: OTHER, Address: '192.0.2.7:5592' });
  await known.save();
  const files = await readdir(state);
  const text = await status();
  expect(text.stdout.trimEnd().split('\n')).toEqual([
    `client         ${connection.getClientFingerprint()}`,
    `remembered in  ${state}`,
    'base stations:',
    '  URL                          PROVED',
    `  https://pinned.example:4433  pinned to ${OTHER}`,
    `  https://new.example:4433     pinned to ${FP}, not reached yet`,
    '  https://tls.example:443      by TLS, with the roots of Node',
    '  https://own.example:4433     by TLS, with the roots of --root-certs',
    'devices:',
    `  NAME  DEVICE   ${'FINGERPRINT'.padEnd(64)}  WAY`,
    `  desk  pr.lamp  ${FP}  https://tls.example:443`,
    `  -     pr.bell  ${OTHER}  192.0.2.7:5592`,
  ]);
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({
    client: connection.getClientFingerprint(),
    stations: [
      { url: 'https://pinned.example:4433', verified: 'pinned', fingerprint: OTHER, reached: true },
      { url: 'https://new.example:4433', verified: 'pinned', fingerprint: FP, reached: false },
      { url: 'https://tls.example:443', verified: 'tls', roots: 'platform' },
      { url: 'https://own.example:4433', verified: 'tls', roots: 'own' },
    ],
    devices: [
      { name: 'desk', deviceId: 'lamp' },
      { deviceId: 'bell', address: '192.0.2.7:5592' },
    ],
  });
  expect(await readdir(state)).toEqual(files);
});

test('svc status of a damaged state is one line', async () => {
  await mkdir(state);
  await writeFile(join(state, 'known.json'), '{');
  const { code, stderr } = await status();
  expect([code, stderr.trim().split('\n').length]).toEqual([1, 1]);
  expect(stderr).toContain('known.json');
});

test('svc status with a device shows what makes a client that it does not know its user', async () => {
  const device = new Device({ productId: 'pr', deviceId: 'lamp', basestationAttach: false, localPort: 0, p2pPort: 0 });
  device.setPrivateKey(device.createPrivateKey());
  device.setIam(iamOf());
  await device.start();
  onTestFinished(() => device.close());
  const Fingerprint = device.deviceFingerprint;
  const user = async () => (await status('--no-local', '--address', `127.0.0.1:${device.localPort}`, '--fingerprint', Fingerprint)).stdout;
  expect(await user()).toMatch(/^user {8}none yet: ask an administrator of the device for an invitation/m);
  const known = await Known.open(state);
  known.remember({ ProductId: 'pr', DeviceId: 'lamp', Fingerprint, User: 'ann' });
  await known.save();
  expect(await user()).toMatch(/^user {8}none, and was ann: that user was deleted, or the device was set up again; ask an administrator/m);
});
