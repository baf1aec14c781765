/**
 * Base station, device and client as three processes over UDP on loopback, as a person runs them: `svc` from dist/
 * (built by `npm test`).
 * @module-tag slow
 */
import { createHash, randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownAddresses } from '../../platform/node/index.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { MAIN, ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { TestProcess } from '../support/process.ts';
import { Commands, svcProcess } from './commands.ts';

const { svc, svcJson } = new Commands('key', 'admin', 'connect', 'coap', 'tunnel');
const processes = new ProcessFixture();

const PRODUCT = drawnProduct();
const DEVICE = 'de-e2e';
/** Size of the file in bytes. */
const FILE = 1_000_000;

let folder: string;
let web: Server;
let names: Socket;
let station: SvcProcess;
let stationArguments: string[];
let device: SvcProcess;
let deviceArguments: string[];
/** Options of every client command. */
let client: string[];

beforeAll(async () => {
  ({ folder } = processes);
  web = createServer((request, response) => response.end(`you asked for ${request.url}`)).listen(0, '127.0.0.1');
  await once(web, 'listening');
  names = createSocket('udp4').bind(0, '127.0.0.1');
  names.on('message', (question, { port }) => names.send(`${question}: 192.0.2.1`, port, '127.0.0.1'));
  await once(names, 'listening');
  const data = join(folder, 'station');
  stationArguments = ['--data', data, '--keep-alive', '1000'];
  station = processes.station(...stationArguments, '--port', '0');
  const { port, fingerprint } = await station.event('listening');
  stationArguments.push('--port', String(port));
  const server = ['--server', `https://127.0.0.1:${port}`, '--server-fingerprint', String(fingerprint)];
  client = ['--state', join(folder, 'client')];
  const key = await svcJson('key', 'create', ...client);
  client.push('--no-local');
  deviceArguments = ['--data', join(folder, 'device'), '--product', PRODUCT, '--device-id', DEVICE, ...server];
  const identity = await svcJson('device', ...deviceArguments, '--init');
  await svcJson('admin', 'product', 'add', PRODUCT, '--data', data);
  await svcJson('admin', 'device', 'add', PRODUCT, DEVICE, '--fingerprint', String(identity.fingerprint), '--data', data);
  const { port: webPort } = web.address() as AddressInfo;
  deviceArguments.push(
    '--local-port',
    '0',
    '--p2p-port',
    '0',
    '--no-mdns',
    '--allow',
    String(key.fingerprint),
    '--tunnel',
    `web=http:127.0.0.1:${webPort}`,
    '--udp-tunnel',
    `names=dns:127.0.0.1:${names.address().port}`,
  );
  device = processes.device(...deviceArguments);
  await device.event('attached');
  await svcJson('connect', String(identity.pairingString), ...server, '--name', 'lamp', ...client);
});

afterAll(() => {
  web?.close();
  names?.close();
});

/** Queries a name server at a local UDP port. @returns its answer */
async function question(port: number): Promise<string> {
  const resolver = createSocket('udp4');
  const answer = once(resolver, 'message');
  resolver.send('svc.example', port, '127.0.0.1');
  const [text] = await answer;
  resolver.close();
  return String(text);
}

async function target(): Promise<string> {
  return (await svc('coap', 'GET', '/thermostat/target', ...client)).stdout.trim();
}

test('the device was paired: its key is the expected one, the path leads through the base station', async () => {
  const shown = await svcJson('connect', '-d', 'lamp', ...client);
  expect(shown).toMatchObject({ device: `${PRODUCT}.${DEVICE}`, station: 'pinned', verified: 'pinned' });
  const [known] = (await svcJson('connect', '--list', ...client)) as unknown as Record<string, unknown>[];
  expect(known).toMatchObject({ name: 'lamp', fingerprint: shown.fingerprint });
});

test('CoAP: get, set, get again, and a refusal by the device', async () => {
  expect(await target()).toBe('20.0');
  expect(await svc('coap', 'PUT', '/thermostat/target', '--payload', '22.5', ...client)).toMatchObject({ code: 0, stdout: '' });
  expect(await svcJson('coap', 'GET', '/thermostat/target', ...client)).toEqual({ status: 205, contentFormat: 0, payload: '22.5' });
  const refused = await svc('coap', 'PUT', '/thermostat/target', '--payload', '99', ...client);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^svc: the device answered 4\.00: .*\n$/) });
  expect(await svc('coap', 'GET', '/nothing', ...client)).toMatchObject({ code: 1, stderr: expect.stringMatching(/4\.04/) });
});

test('a file goes to the device and comes back unchanged', async () => {
  const content = randomBytes(FILE);
  const sha256 = createHash('sha256').update(content).digest('hex');
  await writeFile(join(folder, 'sent'), content);
  expect(await svcJson('stream', 'send', join(folder, 'sent'), 'file.bin', ...client)).toMatchObject({ bytes: content.length, sha256 });
  expect((await readFile(join(folder, 'device', 'files', 'file.bin'))).equals(content)).toBe(true);
  expect(await svcJson('stream', 'receive', 'file.bin', join(folder, 'received'), ...client)).toMatchObject({
    bytes: content.length,
    sha256,
  });
  expect((await readFile(join(folder, 'received'))).equals(content)).toBe(true);
});

test('standard error has no progress bar and no other output, unless it is a terminal', async () => {
  const sent = await svcProcess({}, 'stream', 'send', join(folder, 'sent'), 'again.bin', ...client);
  expect(sent).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(new RegExp(`^${FILE} bytes in .* SHA-256 [0-9a-f]{64} at both ends\n$`)),
  });
});

test('an empty file is transferred, and a missing one is reported', async () => {
  await writeFile(join(folder, 'empty'), '');
  expect(await svcJson('stream', 'send', join(folder, 'empty'), ...client)).toMatchObject({ bytes: 0 });
  expect(await svcJson('stream', 'receive', 'empty', join(folder, 'empty2'), ...client)).toMatchObject({ bytes: 0 });
  const missing = await svc('stream', 'receive', 'nothing', join(folder, 'nothing'), ...client);
  const none = expect.stringMatching(
    /^svc: the device refused: there is no such file: svc stream list -d \S+ --state \S+ shows what it has\n$/,
  );
  expect(missing).toMatchObject({ code: 1, stderr: none });
  // A link to a file elsewhere, and a pipe, which would never end.
  await symlink('/etc/hostname', join(folder, 'device', 'files', 'link'));
  await new TestProcess('mkfifo', [join(folder, 'device', 'files', 'pipe')]).succeeded();
  for (const name of ['link', 'pipe']) {
    const refused = await svc('stream', 'receive', name, join(folder, 'nothing'), ...client);
    expect(refused).toMatchObject({ code: 1, stderr: none });
  }
  await expect(readFile(join(folder, 'nothing'))).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(readFile(join(folder, 'nothing.svc.part'))).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a tunnel leads to the HTTP server behind the device, until Ctrl-C', async () => {
  expect(await svcJson('tunnel', ...client)).toMatchObject([{ id: 'web', type: 'http', host: '127.0.0.1' }]);
  const tunnel = processes.client('tunnel', 'web', ...client);
  const { port } = await tunnel.event('listening');
  expect(await (await fetch(`http://127.0.0.1:${port}/a/b`)).text()).toBe('you asked for /a/b');
  expect(await tunnel.end('SIGINT')).toBe(0);
  expect(tunnel.stderr).toBe('');
});

test('a service over standard input and output: one direction ends, the other continues', async () => {
  const tunnel = new TestProcess(process.execPath, [MAIN, 'tunnel', '--stdio', 'web', ...client], { interactive: true });
  tunnel.write('GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await tunnel.outputEnded;
  expect(tunnel.running).toBe(true);
  tunnel.endInput();
  const { code, stdout, stderr } = await tunnel.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*you asked for \/a$/);
});

test('a UDP service opened as a TCP service, and the reverse, has its remedy', async () => {
  expect(await svc('tunnel', 'names', ...client)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/NOT_FOUND.*UDP services need --udp/),
  });
  expect(await svc('tunnel', '--udp', 'web', ...client)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/NOT_FOUND.*without --udp/),
  });
});

test('a UDP tunnel leads to the name server behind the device, until Ctrl-C', async () => {
  expect(await svcJson('tunnel', '--udp', ...client)).toMatchObject([{ id: 'names', type: 'dns', host: '127.0.0.1' }]);
  const tunnel = processes.client('tunnel', '--udp', 'names', ...client);
  const { port } = await tunnel.event('listening');
  expect(await question(Number(port))).toBe('svc.example: 192.0.2.1');
  expect(await tunnel.end('SIGINT')).toBe(0);
  expect(tunnel.stderr).toBe('');
});

describe('svc doctor', () => {
  test('reports the path of the connection, and why it is not direct', async () => {
    const { whyNotDirect, ...found } = (await svcJson('doctor', 'lamp', ...client)) as { over: string; whyNotDirect: object | null };
    expect(found).toMatchObject({
      device: `${PRODUCT}.${DEVICE}`,
      connected: true,
      station: { verified: 'pinned', at: { address: '127.0.0.1' } },
    });
    // A machine with an address besides loopback has a direct path.
    const isDirect = ownAddresses().length > 0;
    expect([found.over, whyNotDirect === null]).toEqual([isDirect ? 'direct' : 'relay', isDirect]);
  });

  test('keeps a connection relayed with --relay-only, and gives that reason', async () => {
    const { code, stdout } = await svc('doctor', '-d', 'lamp', '--relay-only', ...client);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^connected to pr-\w+\.de-e2e, through the base station\n[\s\S]*^not direct {10}DISABLED: [\s\S]*^what to do {10}Leave out --relay-only/m,
    );
  });

  test('checks a base station without a device', async () => {
    const { port, fingerprint } = await station.event('listening');
    const server = ['--server', `https://127.0.0.1:${port}`, '--server-fingerprint', String(fingerprint)];
    expect(await svcJson('doctor', ...server, '--state', join(folder, 'client'))).toMatchObject({
      device: null,
      connected: null,
      station: { at: { port }, error: null },
    });
  });
});

test('svc connects directly to the device, without the base station', async () => {
  const { localPort } = await device.event('started');
  const shown = await svcJson('connect', '-d', 'lamp', '--address', `127.0.0.1:${localPort}`, ...client);
  expect(shown).toMatchObject({ type: 'DIRECT', verified: 'pinned' });
});

describe('another client', () => {
  test('may do nothing before it pairs', async () => {
    const { sct, fingerprint } = await device.event('started');
    const { fingerprint: stationFingerprint, port } = await station.event('listening');
    const stranger = ['--state', join(folder, 'stranger'), '--no-local', '--product', PRODUCT, '--device-id', DEVICE, '--sct', String(sct)];
    stranger.push(
      '--fingerprint',
      String(fingerprint),
      '--server',
      `https://127.0.0.1:${port}`,
      '--server-fingerprint',
      String(stationFingerprint),
    );
    for (const request of [['GET'], ['PUT', '--payload', '5']]) {
      const refused = await svc('coap', request[0] as string, '/thermostat/target', ...request.slice(1), ...stranger);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/4\.03/) });
    }
    expect(await svc('stream', 'send', join(folder, 'empty'), 'x', ...stranger)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/FORBIDDEN.*you are not allowed/),
    });
    expect(await svc('tunnel', 'web', ...stranger)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/FORBIDDEN.*you are not allowed/),
    });
  });

  test('with a wrong token is not admitted by the base station', async () => {
    await writeFile(join(folder, 'wrong-token'), 'wrong\n');
    const refused = await svc('coap', 'GET', '/thermostat', ...client, '--sct-file', join(folder, 'wrong-token'));
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/TOKEN_REJECTED/) });
    expect(refused.stderr.trim().split('\n')).toHaveLength(1);
  });

  test('with a wrong fingerprint does not even try', async () => {
    const refused = await svc('coap', 'GET', '/thermostat', ...client, '--fingerprint', 'ab'.repeat(32));
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/known with another fingerprint/) });
  });
});

describe('after the base station was away', () => {
  // The limit in seconds is tested in virtual time, by test/device/attach.test.ts.
  test.each(['SIGTERM', 'SIGKILL'] as const)('by %s the device attaches again, and a client connects', async (signal) => {
    const attached = device.events.filter(({ event }) => event === 'attached').length;
    expect(await station.end(signal)).toBe(signal === 'SIGTERM' ? 0 : null);
    station = processes.station(...stationArguments);
    await station.event('listening');
    await device.event('attached', attached + 1);
    expect(await target()).toBe('22.5');
  });
});

describe('a device', () => {
  test('killed right after an answer still has the acknowledged change', async () => {
    const tunnel = processes.client('tunnel', 'web', '--udp', 'names', '--relay-only', ...client);
    expect(await svc('coap', 'PUT', '/thermostat/target', '--payload', '24', ...client)).toMatchObject({ code: 0 });
    const [{ url }, { port }] = [await tunnel.event('listening'), await tunnel.event('listening', 2)];
    await device.end('SIGKILL');
    device = processes.device(...deviceArguments);
    await device.event('attached');
    expect(await target()).toBe('24.0');

    // A tunnel that was open leads there again, on its ports.
    await tunnel.event('connected');
    expect(await (await fetch(`${url}/again`)).text()).toBe('you asked for /again');
    expect(await question(Number(port))).toBe('svc.example: 192.0.2.1');
    expect(await tunnel.end('SIGINT')).toBe(0);
    expect(tunnel.stderr).toBe('');
    expect(tunnel.events.map(({ event }) => event)).toEqual(expect.arrayContaining(['resting', 'lost', 'connected']));
  });

  test('learns at once that a tunnel was stopped, also by SIGTERM', async () => {
    const closed = device.events.filter(({ event }) => event === 'connection-closed').length;
    const tunnel = processes.client('tunnel', 'web', '--relay-only', ...client);
    await tunnel.event('listening');
    expect(await tunnel.end('SIGTERM')).toBe(0);
    // The tunnel has closed it: otherwise it would rest for a minute.
    await device.event('connection-closed', closed + 1);
  });

  test('that is stopped detaches from the base station, and clients learn that: one with a tunnel, and a later one', async () => {
    const tunnel = processes.client('tunnel', 'web', '--relay-only', ...client);
    await tunnel.event('listening');
    expect(await device.end('SIGTERM')).toBe(0);
    expect(device.events.at(-1)?.event).toBe('closed');
    expect(await tunnel.event('lost')).toMatchObject({ error: 'CLOSED' });
    expect(tunnel.events.filter(({ event }) => event === 'resting')).toEqual([]);
    expect(await tunnel.end('SIGTERM')).toBe(0);
    const refused = await svc('coap', 'GET', '/thermostat', ...client);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/NOT_ATTACHED/) });
  });

  test('that is set up again with another key is refused until it is paired again on purpose', async () => {
    await rm(join(folder, 'device', 'key.pem'));
    const stateFile = join(folder, 'device', 'iam-state.json');
    const { OpenPairingPasswordSealed: _, ...others } = JSON.parse(await readFile(stateFile, 'utf8'));
    expect(await svc('device', ...deviceArguments, '--init')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/iam-state\.json.*another device key/),
    });
    await writeFile(stateFile, JSON.stringify(others));
    const { fingerprint, pairingString } = await svcJson('device', ...deviceArguments, '--init');
    await svcJson('admin', 'device', 'set-fingerprint', PRODUCT, DEVICE, String(fingerprint), '--data', join(folder, 'station'));
    device = processes.device(...deviceArguments);
    await device.event('attached');
    const refused = await svc('coap', 'GET', '/thermostat', ...client);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not have its known key.*--replace/) });
    expect(await svc('connect', String(pairingString), ...client)).toMatchObject({ code: 1 });
    expect(await svc('connect', String(pairingString), '--replace', ...client)).toMatchObject({ code: 0 });
    expect(await target()).toBe('24.0');
  });
});

describe('a base station that is set up again', () => {
  test('is used by --server-fingerprint, and by a fresh pairing string with --replace', async () => {
    await station.end('SIGTERM');
    await device.end('SIGTERM');
    const data = join(folder, 'station-again');
    station = processes.station('--data', data, ...stationArguments.slice(2));
    const { fingerprint } = await station.event('listening');
    const again = [...deviceArguments, '--server-fingerprint', String(fingerprint)];
    const identity = await svcJson('device', ...again, '--init');
    await svcJson('admin', 'product', 'add', PRODUCT, '--data', data);
    await svcJson('admin', 'device', 'add', PRODUCT, DEVICE, '--fingerprint', String(identity.fingerprint), '--data', data);
    device = processes.device(...again);
    await device.event('attached');
    const known = await readFile(join(folder, 'client', 'known.json'), 'utf8');
    const server = ['--server', `https://127.0.0.1:${stationArguments.at(-1)}`, '--server-fingerprint', String(fingerprint)];
    const read = () => svc('coap', 'GET', '/thermostat/target', ...client);
    expect(await read()).toMatchObject({ code: 1, stderr: expect.stringMatching(/FINGERPRINT_MISMATCH.*--server-fingerprint/) });
    expect(await svc('coap', 'GET', '/thermostat/target', ...server, ...client)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(': now by its fingerprint'),
    });
    expect(await read()).toMatchObject({ code: 0, stderr: '' });
    await writeFile(join(folder, 'client', 'known.json'), known);
    expect(await svc('connect', String(identity.pairingString), ...client)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--replace'),
    });
    expect(await svc('connect', String(identity.pairingString), '--replace', ...client)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(': now by its fingerprint'),
    });
    expect(await read()).toMatchObject({ code: 0, stderr: '' });
  });
});

test('no command printed a stack trace', () => {
  for (const { stderr } of [station, device]) expect(stderr).not.toMatch(/^\s+at /m);
});
