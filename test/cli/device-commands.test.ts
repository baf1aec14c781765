/**
 * Commands about a device: `svc devices`, `forget`, `status`, `ping`, `coap --observe`, `coap discover`, with a device
 * in this process over loopback.
 *
 * @module-tag slow
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { createIamSecrets, Device, defaultConfiguration, Iam, productionState } from '../../device/index.ts';
import { encode } from '../../protocol/cbor/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';

const ids = { productId: 'pr-cmd', deviceId: 'de-1' };

let folder: string;
let device: Device;
let state: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-device-commands-'));
  state = join(folder, 'state');
  device = new Device({ ...ids, basestationAttach: false, localPort: 0, p2pPort: 0 });
  const privateKey = device.createPrivateKey();
  device.setPrivateKey(privateKey);
  const secrets = createIamSecrets(privateKey);
  const first = await productionState(secrets);
  device.setIam(new Iam({ configuration: defaultConfiguration(), state: { ...first.state, localInitialPairing: true }, secrets }));
  let count = 0;
  const counter = device.addCoapResource('GET', '/count', () => ({ status: 205, payload: String(++count) }), {
    observable: true,
    type: 'count',
    title: 'A counter',
  });
  device.addCoapResource('POST', '/count', () => {
    counter.notify();
    return { status: 204 };
  });
  device.addCoapResource('GET', '/cbor', () => ({
    status: 205,
    contentFormat: 60,
    payload: encode({ a: [1, null], b: Uint8Array.of(1, 255) }),
  }));
  device.addCoapResource('GET', '/bytes', () => ({ status: 205, contentFormat: 42, payload: Uint8Array.of(0, 255) }));
  device.addCoapResource('GET', '/secret', () => ({ status: 205 }), { action: 'Secret:Read' });
  await device.start();
});

afterAll(async () => {
  await device.close();
  await rm(folder, { recursive: true, force: true });
});

const svc = (...args: string[]) => svcInProcess([...args, '--state', state]);
const onDevice = (...args: string[]) => svc(...args, '--no-local');
const lines = ({ stdout }: { stdout: string }): string[] => stdout.trimEnd().split('\n');
const first = () => ['--address', `127.0.0.1:${device.localPort}`, '--fingerprint', device.deviceFingerprint];

test('an unknown client: status and ping report that', async () => {
  expect(await svc('devices')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^no device is known yet in .*: svc pair/) });
  const status = await onDevice('status', ...first());
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(lines(status)).toEqual([
    'device      pr-cmd.de-1',
    'user        none yet: `svc pair pr-cmd.de-1 --state STATE` makes this client the first one'.replace('STATE', state),
    expect.stringMatching(/^path {8}directly over IPv4, 127\.0\.0\.1:\d+$/),
    expect.stringMatching(/^round trip {2}\d+\.\d ms$/),
  ]);
});

test('a user: its name is remembered, and listed with path and day', async () => {
  expect((await onDevice('pair', '--mode', 'LocalInitial', '--name', 'home', ...first())).code).toBe(0);
  expect(lines(await onDevice('status', 'home')).slice(0, 2)).toEqual([
    'device      pr-cmd.de-1 (home)',
    'user        admin (Administrator)',
  ]);
  const day = new Date().toISOString().slice(0, 10);
  const listed = await svc('devices');
  expect(lines(listed).map((line) => line.split(/ {2,}/))).toEqual([
    ['NAME', 'DEVICE', 'WAY', 'USER', 'LAST USED', 'FINGERPRINT'],
    ['home', 'pr-cmd.de-1', `127.0.0.1:${device.localPort}`, 'admin', day, device.deviceFingerprint],
  ]);
  expect(JSON.parse((await svc('devices', '--json')).stdout)).toEqual([
    expect.objectContaining({ name: 'home', productId: 'pr-cmd', user: 'admin', lastUsed: day }),
  ]);
  expect((await svc('connect', '--list')).stdout).toBe(listed.stdout);
});

test('ping: times, a summary, and a document for each', async () => {
  const pinged = await onDevice('ping', 'home', '--count', '2', '--interval', '1');
  expect(pinged).toMatchObject({ code: 0, stderr: 'pr-cmd.de-1, directly over IPv4\n' });
  expect(lines(pinged)).toEqual([
    expect.stringMatching(/^1 {2}[\d.]+ ms {2}directly over IPv4$/),
    expect.stringMatching(/^2 {2}[\d.]+ ms {2}directly over IPv4$/),
    expect.stringMatching(/^2 sent, 2 answered; round trip min [\d.]+ ms, avg [\d.]+ ms, max [\d.]+ ms$/),
  ]);
  const json = lines(await onDevice('ping', '--count', '1', '--json')).map((line) => JSON.parse(line));
  expect(json).toEqual([
    { event: 'answer', sequence: 1, ms: expect.any(Number), over: 'direct' },
    { event: 'summary', sent: 1, answered: 1, min: json[0].ms, avg: json[0].ms, max: json[0].ms },
  ]);
});

describe('coap', () => {
  test('observe prints each answer, and cancels at the device when it ends', async () => {
    const watching = onDevice('coap', 'GET', '/count', '--observe', '--count', '2');
    let ended = false;
    void watching.then(() => {
      ended = true;
    });
    // A change before the observation is not reported.
    while (!ended) expect((await onDevice('coap', 'POST', '/count')).code).toBe(0);
    const watched = await watching;
    expect(watched).toMatchObject({ code: 0, stderr: '' });
    expect(lines(watched)).toHaveLength(2);
  });

  test('a resource that is not observable is reported', async () => {
    expect(await onDevice('coap', 'GET', '/bytes', '--observe')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('it cannot be observed'),
    });
    expect(await onDevice('coap', 'GET', '/nothing', '--observe')).toMatchObject({
      code: 1,
      stderr: 'svc: the device answered 4.04: Not found\n',
    });
  });

  test('CBOR is shown as JSON, and non-text unchanged', async () => {
    expect((await onDevice('coap', 'GET', '/cbor')).stdout).toBe('{"a":[1,null],"b":"01ff"}\n');
    expect(JSON.parse((await onDevice('coap', 'GET', '/cbor', '--json')).stdout)).toEqual({
      status: 205,
      contentFormat: 60,
      payload: { a: [1, null], b: '01ff' },
    });
    expect(JSON.parse((await onDevice('coap', 'GET', '/bytes', '--json')).stdout)).toMatchObject({ payloadBase64: 'AP8=' });
    expect((await onDevice('coap', 'GET', '/cbor', '--raw')).stdout).toHaveLength(
      Buffer.from(encode({ a: [1, null], b: Uint8Array.of(1, 255) })).toString().length,
    );
  });

  test('discover lists what this client may see', async () => {
    const listed = await onDevice('coap', 'discover', '--href', '/c*');
    expect(lines(listed).map((line) => line.split(/ {2,}/))).toEqual([
      ['PATH', 'METHODS', 'OBSERVE', 'TYPE', 'TITLE'],
      ['/cbor', 'GET', '-', '-', '-'],
      ['/count', 'GET POST', 'yes', 'count', 'A counter'],
    ]);
    expect((await onDevice('coap', 'discover', 'home', '--href', '/secret')).stdout).toBe('no such resource\n');
    expect((await onDevice('coap', 'discover', '--href', '/iam/users/*')).stdout).toMatch(/^\/iam\/users\/\{username\} /m);
    expect(JSON.parse((await onDevice('coap', 'discover', '--rt', 'count', '--json')).stdout)).toEqual([
      { href: '/count', methods: ['GET', 'POST'], observable: true, rt: 'count', title: 'A counter' },
    ]);
    expect((await onDevice('coap', 'GET', '/.well-known/core?rt=count')).stdout).toBe(
      '</count>;methods="GET POST";rt="count";title="A counter";obs\n',
    );
    expect((await onDevice('coap', 'GET', '/count?x=y')).stderr).toContain('4.00: Critical option 15 is not supported');
  });
});

test('forget: a wrong name lists the known ones', async () => {
  const wrong = { code: 2, stderr: expect.stringContaining('there is no device "hom" (known: home)') };
  expect(await svc('forget', 'hom')).toMatchObject(wrong);
  expect(await svc('connect', '--forget', 'hom')).toMatchObject(wrong);
  expect(await svc('forget', 'home')).toMatchObject({ code: 0, stdout: 'forgot pr-cmd.de-1\n' });
  expect(await svc('forget', 'home')).toMatchObject({ code: 2, stderr: expect.stringContaining('(none is known)') });
  const station = ['forget', '--station', 'old:4433'];
  expect(await svc(...station)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no base station https://old:4433 (none is known)'),
  });
  const known = await Known.open(state);
  known.rememberStation('https://old:4433', { Fingerprint: device.deviceFingerprint, Seen: true });
  await known.save();
  expect(await svc(...station, 'home')).toMatchObject({ code: 2, stderr: expect.stringContaining('give a device, or a base station') });
  expect(await svc(...station)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^forgot how https:\/\/old:4433 was proved/) });
  expect((await Known.open(state)).stations).toEqual({});
  await writeFile(join(state, 'used.json'), 'damaged');
  expect((await svc('devices')).code).toBe(0);
});

test('a port that is taken is PORT_IN_USE, and the message names the option that chose it', async () => {
  const port = String(device.localPort);
  const taken = (option: string) => ({
    code: 1,
    stderr: expect.stringMatching(
      new RegExp(`^svc: UDP port ${port} is in use: .* with ${option}, 0 for a free one \\(PORT_IN_USE\\)$`, 'm'),
    ),
  });
  const another = ['device', '--data', join(folder, 'another'), '--product', 'pr', '--device-id', 'de', '--no-mdns'];
  expect(await svcInProcess([...another, '--local-port', port, '--p2p-port', '0'])).toMatchObject(taken('--local-port'));
  expect(await svcInProcess([...another, '--local-port', '0', '--p2p-port', port])).toMatchObject(taken('--p2p-port'));
  expect(await svcInProcess(['basestation', '--data', join(folder, 'station'), '--port', port, '--log-level', 'error'])).toMatchObject(
    taken('--port'),
  );
  expect(await svcInProcess(['device', 'explain', '--data', join(folder, 'another'), '--action', 'Thermostat:Sett'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /the device has no such action; the actions are .*File:Transfer, .*IAM:PairingLocalOpen, .*Thermostat:Set, UdpTunnel:Connect/,
    ),
  });
});
