/**
 * As a vendor would use it: a base station with a certificate, and a device and a client that have its URL and a root,
 * and no fingerprint. Real processes and real TLS.
 *
 * @module-tag slow
 */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { beforeAll, expect, test } from 'vitest';
import { type Authority, authority, type ServerPair, serverPair } from '../support/certificates.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { Commands } from './commands.ts';

const { svc, svcJson } = new Commands();
const PRODUCT = drawnProduct();
const processes = new ProcessFixture();

let root: Authority;
let station: SvcProcess;
let device: SvcProcess;
let server: string;
let port: number;
let pairing: string;
const file = (name: string): string => join(processes.folder, name);
const state = (name: string): string[] => ['--no-local', '--state', file(name)];

/** As certbot does: each file in one step. */
async function install(pair: ServerPair): Promise<void> {
  for (const [name, text] of [['cert.pem', pair.cert] as const, ['key.pem', pair.key] as const]) {
    await writeFile(file(`${name}.new`), text);
    await rename(file(`${name}.new`), file(name));
  }
}

beforeAll(async () => {
  root = await authority('Root');
  await writeFile(file('root.pem'), root.pem);
  await writeFile(file('other.pem'), (await authority('Other')).pem);
  await install(await serverPair(root, { names: ['localhost'] }));
  const data = file('station');
  station = processes.station('--data', data, '--port', '0', '--tls-cert', file('cert.pem'), '--tls-key', file('key.pem'));
  ({ port } = (await station.event('listening')) as unknown as { port: number });
  server = `https://localhost:${port}`;
  const who = ['--data', file('device'), '--product', PRODUCT, '--device-id', 'de-1', '--server', server, '--root-certs', file('root.pem')];
  const identity = await svcJson('device', ...who, '--init');
  await svcJson('admin', 'product', 'add', PRODUCT, '--data', data);
  await svcJson('admin', 'device', 'add', PRODUCT, 'de-1', '--fingerprint', String(identity.fingerprint), '--data', data);
  pairing = String(identity.openPairing ?? identity.pairingString);
  // The base station and its proof were remembered.
  device = processes.device('--data', file('device'), '--local-port', '0', '--p2p-port', '0', '--no-mdns', '--pairing', 'PasswordOpen');
}, 60_000);

test('the device reports how its base station is authenticated, and attaches', async () => {
  expect(await device.event('started')).toMatchObject({ station: 'tls' });
  await device.event('attached');
});

test('a client with the root connects, reports authentication by TLS, and remembers the root', async () => {
  const { openPairing } = await device.event('started');
  pairing = String(openPairing);
  const first = await svc('connect', pairing, '--server', server, '--root-certs', file('root.pem'), '--name', 'home', ...state('client'));
  expect([first.code, first.stdout]).toEqual([0, expect.stringContaining('authenticated by TLS')]);
  expect(first.stderr).toContain(`${server}: authenticated by TLS`);
  expect(await svcJson('connect', '--device', 'home', '--relay-only', ...state('client'))).toMatchObject({ station: 'tls', type: 'RELAY' });
});

test('a client with the fingerprint fetches nothing: the name in its URL need not be that of the certificate', async () => {
  const { fingerprint } = await station.event('listening');
  const url = `https://127.0.0.1:${port}`;
  const result = await svcJson('connect', pairing, '--server', url, '--server-fingerprint', String(fingerprint), ...state('pinned'));
  expect(result).toMatchObject({ station: 'pinned' });
});

test('an invalid certificate is one line with both remedies', async () => {
  const cases = [
    [['--server', server, '--root-certs', file('other.pem')], /certificate of localhost is from an unknown authority/],
    [['--server', server], /certificate of localhost is from an unknown authority/],
    [['--server', `https://127.0.0.1:${port}`, '--root-certs', file('root.pem')], /certificate of 127\.0\.0\.1 is for another name/],
  ] as const;
  for (const [options, message] of cases) {
    const { code, stderr } = await svc('connect', pairing, ...options, ...state('refused'));
    const lines = stderr.trim().split('\n');
    // The pairing string has a password, which causes a warning.
    expect([code, lines.filter((line) => !line.startsWith('warning: the password was in the arguments')).length]).toEqual([1, 1]);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/--server-fingerprint.*--root-certs FILE/);
  }
});

test('a renewed certificate is loaded at SIGHUP without a cut connection, and an unusable one is not', async () => {
  const serial = (): Promise<string> => serialNumber(port);
  const before = await serial();
  await install({ ...(await serverPair(root)), key: 'no key' });
  station.signal('SIGHUP');
  await station.logged('is unusable');
  expect(await serial()).toBe(before);
  await install(await serverPair(root, { names: ['localhost'] }));
  station.signal('SIGHUP');
  await station.logged('was reloaded');
  expect(await serial()).not.toBe(before);
  expect(await svcJson('connect', '--device', 'home', ...state('client'))).toMatchObject({ station: 'tls' });
  expect(device.events.filter(({ event }) => event === 'detached')).toEqual([]);
});

/** The certificate that the server shows now, valid or not. */
function serialNumber(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, servername: 'localhost', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}
