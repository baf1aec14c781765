/**
 * `svc device` with its users, through a real base station: observers, roles, alarms at a push provider, and one
 * process per directory.
 *
 * @module-tag slow
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Connection, SvcClient } from '../../client/node.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { Commands } from './commands.ts';

const { svc, svcJson } = new Commands();
const processes = new ProcessFixture();

const PRODUCT = drawnProduct();
const DEVICE = 'de-app';
const CONFIGURATION = { OverTemperature: { Limit: 24, Category: 'WARNING' }, TimeConstant: 1 };

let folder: string;
let station: SvcProcess;
let provider: SvcProcess;
let device: SvcProcess;
let deviceArguments: string[];
let serverUrl: string;
let serverFingerprint: string;
const owner = () => ['--state', join(folder, 'owner'), '--no-local'];
const guest = () => ['--state', join(folder, 'guest'), '--no-local'];

beforeAll(async () => {
  ({ folder } = processes);
  const data = join(folder, 'station');
  const account = join(folder, 'account.json');
  station = processes.station('--data', data, '--port', '0');
  provider = processes.pushProvider('--account', account);
  const { port, fingerprint } = await station.event('listening');
  serverUrl = `https://127.0.0.1:${port}`;
  serverFingerprint = String(fingerprint);
  const server = ['--server', serverUrl, '--server-fingerprint', serverFingerprint];
  deviceArguments = ['--data', join(folder, 'device'), '--product', PRODUCT, '--device-id', DEVICE, ...server];
  const identity = await svcJson('device', ...deviceArguments, '--init');
  await svcJson('admin', 'product', 'add', PRODUCT, '--data', data);
  await svcJson('admin', 'device', 'add', PRODUCT, DEVICE, '--fingerprint', String(identity.fingerprint), '--data', data);
  const { url } = await provider.event('listening');
  await svcJson('admin', 'push-credential', 'add', account, '--base-url', String(url), '--data', data);
  await writeFile(join(folder, 'offers.json'), JSON.stringify(CONFIGURATION));
  deviceArguments.push('--config', join(folder, 'offers.json'), '--local-port', '0', '--p2p-port', '0', '--no-mdns');
  device = processes.device(...deviceArguments, '--pairing', 'PasswordInvite,LocalOpen');
  await device.event('attached');
  await svcJson('pair', String(identity.invitation), ...server, '--name', 'home', ...owner());
  const { localPort } = await device.event('started');
  const straight = ['--address', `127.0.0.1:${localPort}`, '--mode', 'LocalOpen', '--username', 'guest'];
  await svcJson('pair', String(identity.pairingString), ...straight, '--name', 'home', ...guest());
}, 120_000);

test('each user is paired in its mode and has that mode’s role', async () => {
  expect(await svcJson('iam', 'me', ...owner())).toMatchObject({ username: 'admin', role: 'Administrator' });
  expect(await svcJson('iam', 'me', ...guest())).toMatchObject({ username: 'guest', role: 'Guest' });
  const { stdout } = await svc('device', 'audit', 'show', '--event', 'paired', '--data', join(folder, 'device'));
  expect([...stdout.matchAll(/Username=(\w+) Mode=(\w+)/g)].map(([, ...pair]) => pair)).toEqual([
    ['admin', 'PasswordInvite'],
    ['guest', 'LocalOpen'],
  ]);
});

test('the owner’s change reaches the observing guest, who may not change; the alarm and its end each reach the provider once', async () => {
  await svcJson('push', 'set', 'demo-project', 'telephone-of-the-owner', ...owner());
  await svcJson('push', 'categories', 'WARNING', 'INFO', ...owner());
  const client = SvcClient.create();
  const heard = new Heard();
  const connection = await connectAsGuest(client);
  void (async () => {
    for await (const { text } of connection.observe('/thermostat/target')) heard.add(text);
  })().catch(() => {});
  expect(await heard.next()).toBe('20.0');
  await svcJson('coap', 'PUT', '/thermostat/target', '--payload', '29', ...owner());
  expect(await heard.next()).toBe('29.0');

  expect(await connection.put('/thermostat/target', '5')).toMatchObject({ status: 403 });

  const alarm = await provider.event('message');
  expect(alarm.message).toMatchObject({
    token: 'telephone-of-the-owner',
    notification: { title: 'Over-temperature' },
    data: { category: 'WARNING' },
  });
  expect(await device.event('notification')).toMatchObject({ user: 'admin', category: 'WARNING', status: 200 });
  await svcJson('coap', 'PUT', '/thermostat/target', '--payload', '10', ...owner());
  expect(await heard.next()).toBe('10.0');
  const over = await provider.event('message', 2);
  expect(over.message).toMatchObject({ data: { category: 'INFO' } });
  expect(provider.events.filter(({ event }) => event === 'message')).toHaveLength(2);
  await client.stop();
}, 60_000);

test('a test notification by the command line returns the provider’s answer through base station and device', async () => {
  const pushTest = () => svc('push', 'test', '--json', ...owner());
  const before = provider.events.filter(({ event }) => event === 'message').length;
  expect(JSON.parse((await pushTest()).stdout)).toMatchObject({ username: 'admin', statusCode: 200 });
  const received = await provider.event('message', before + 1);
  expect(received).toMatchObject({ message: { token: 'telephone-of-the-owner', notification: { title: 'Test' } } });

  await svcJson('push', 'set', 'demo-project', 'UNREGISTERED', ...owner());
  const gone = await pushTest();
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('HTTP 404') });
  const { statusCode, body } = JSON.parse(gone.stdout);
  expect([statusCode, JSON.parse(body).error.details[0].errorCode]).toEqual([404, 'UNREGISTERED']);

  await svcJson('push', 'set', 'other-project', 'token', ...owner());
  expect(await pushTest()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/no push credential/) });
});

test('a second process in the directory is refused, and explain works beside the first', async () => {
  const second = await svc('device', ...deviceArguments);
  expect(second).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^svc: .* is in use by process \d+: .*\(IN_USE\)\n$/),
  });
  const explain = ['device', 'explain', '--data', join(folder, 'device'), '--as', 'guest', '--action'];
  expect(await svcJson(...explain, 'Thermostat:Set')).toMatchObject({ allowed: false, role: 'Guest', reason: 'no-match' });
  expect(await svcJson(...explain, 'Thermostat:Get')).toMatchObject({ allowed: true, policy: 'ReadThermostat', statement: 0 });
});

test('while it runs, its owner can invite an administrator', async () => {
  const data = ['--data', join(folder, 'device')];
  const { invitation } = await svcJson('device', 'invite', 'admin', ...data);
  expect(String(invitation)).toMatch(/u=admin/);
  const state = join(folder, 'recovered');
  expect(await svcJson('pair', String(invitation), '--state', state, '--no-local')).toMatchObject({
    username: 'admin',
    role: 'Administrator',
    mode: 'PasswordInvite',
  });
  const wrong = await svc('device', 'invite', 'guest', '--role', 'King', ...data);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/^svc: .*King.*\n$/) });
});

test('after a stop the directory is free, users and log are whole, and the owner can invite', async () => {
  expect(await device.end()).toBe(0);
  const data = ['--data', join(folder, 'device')];
  const { invitation } = await svcJson('device', 'invite', 'guest', '--role', 'Standard', ...data);
  expect(String(invitation)).toMatch(/u=guest/);
  expect(await svc('device', 'audit', 'verify', ...data)).toMatchObject({ code: 0 });
  const { stdout } = await svc('device', 'audit', 'show', '--event', 'role-changed', ...data);
  expect(stdout).toMatch(/Username=guest From=Guest To=Standard/);
});

test('no command printed a stack trace', () => {
  for (const { stderr } of [station, device, provider]) expect(stderr).not.toMatch(/^\s+at /m);
});

async function connectAsGuest(client: SvcClient): Promise<Connection> {
  const { fingerprint } = await device.event('started');
  const { sct } = await svcJson('iam', 'me', ...guest());
  const connection = client.createConnection();
  connection.updateOptions({
    ProductId: PRODUCT,
    DeviceId: DEVICE,
    Local: false,
    DeviceFingerprint: String(fingerprint),
    ServerConnectToken: String(sct),
    ServerUrl: serverUrl,
    ServerFingerprint: serverFingerprint,
    PrivateKey: await readFile(join(folder, 'guest', 'key.pem'), 'utf8'),
  });
  await connection.connect();
  return connection;
}

/** Received notifications of an observer, in their order. */
class Heard {
  readonly #all: string[] = [];
  #read = 0;
  #wake: () => void = () => {};

  add(text: string): void {
    this.#all.push(text);
    this.#wake();
  }

  async next(): Promise<string> {
    while (this.#read >= this.#all.length) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#all[this.#read++] as string;
  }
}
