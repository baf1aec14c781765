/**
 * A vendor's own login decides who reaches which device: an issuer with its JWK Set over https, base station and device
 * as processes, and a client whose token names the device. A second device is registered and away.
 *
 * @module-tag slow
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NoChannelsError, SvcClient } from '../../client/node.ts';
import { ProcessFixture } from '../support/fixture/processes.ts';
import { Commands, svcProcess } from './commands.ts';

const { svc, svcJson } = new Commands('admin', 'device', 'connect');
const CERTIFICATE = fileURLToPath(new URL('../server/fixtures/localhost.cert.pem', import.meta.url));
const PRIVATE_KEY = CERTIFICATE.replace('cert.pem', 'key.pem');
const AUDIENCE = 'svc';

// The base station trusts the issuer's certificate as it would an authority's.
const processes = new ProcessFixture({ NODE_EXTRA_CA_CERTS: CERTIFICATE });

let issuer: Server;
let url: string;
let signingKey: CryptoKey;
let requests = 0;
let client: SvcClient;
let options: { ServerUrl: string; ServerFingerprint: string; ServerKey: string; PrivateKey: string };
let fingerprint: string;

beforeAll(async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  signingKey = privateKey;
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }];
  issuer = createServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(PRIVATE_KEY) }, (_, response) => {
    requests++;
    response.setHeader('cache-control', 'max-age=600').end(JSON.stringify({ keys }));
  }).listen(0, '127.0.0.1');
  await once(issuer, 'listening');
  url = `https://localhost:${(issuer.address() as AddressInfo).port}`;
  const data = join(processes.folder, 'station');
  const station = processes.station('--data', data, '--port', '0', '--jwks-allow', '127.0.0.0/8', '--jwks-allow', '::1');
  const { port, fingerprint: stationFingerprint } = await station.event('listening');
  const server = ['--server', `https://127.0.0.1:${port}`, '--server-fingerprint', String(stationFingerprint)];
  await svcJson('admin', 'product', 'add', 'pr-1', '--data', data);
  const words = ['--data', join(processes.folder, 'device'), '--product', 'pr-1', '--device-id', 'de-1', ...server];
  fingerprint = String((await svcJson('device', ...words, '--init')).fingerprint);
  await svcJson('admin', 'device', 'add', 'pr-1', 'de-1', '--fingerprint', fingerprint, '--data', data);
  await svcJson('admin', 'device', 'add', 'pr-1', 'de-2', '--data', data);
  await processes.device(...words, '--local-port', '0', '--p2p-port', '0', '--no-mdns').event('attached');
  const issuerOptions = ['--jwt-issuer', url, '--jwt-audience', AUDIENCE, '--jwt-jwks-uri', `${url}/keys`];
  const { serverKey } = await svcJson('admin', 'key', 'add', ...issuerOptions, '--data', data);
  client = SvcClient.create();
  options = {
    ServerUrl: `https://127.0.0.1:${port}`,
    ServerFingerprint: String(stationFingerprint),
    ServerKey: String(serverKey),
    PrivateKey: client.createPrivateKey(),
  };
});

afterAll(async () => {
  issuer?.close();
  await client?.stop();
});

function token(claims: object, header = { alg: 'ES256', kid: 'k1' }): Promise<string> {
  return new SignJWT({ iss: url, aud: AUDIENCE, ...claims }).setProtectedHeader(header).setExpirationTime('5m').sign(signingKey);
}

/** Returns OK, or why the connect through the base station failed. */
async function reach(deviceId: string, ServerJwtToken: string | (() => Promise<string>)): Promise<string> {
  const connection = client.createConnection();
  connection.updateOptions({
    ...options,
    Local: false,
    ProductId: 'pr-1',
    DeviceId: deviceId,
    DeviceFingerprint: fingerprint,
    ServerJwtToken,
  });
  try {
    await connection.connect();
    return 'OK';
  } catch (error) {
    return ((error as NoChannelsError).cause as { remote: { code: string } }).remote.code;
  } finally {
    await connection.close();
  }
}

test('a client reaches the device that its token names, and no other', async () => {
  const fresh = () => token({ svc_ids: 'pr-1.de-1' });
  expect([await reach('de-1', fresh), await reach('de-2', fresh)]).toEqual(['OK', 'TOKEN_REJECTED']);
  expect(await reach('de-2', await token({ svc_ids: ['pr-1.de-1', 'pr-1.de-2'] }))).toBe('NOT_ATTACHED');
});

test('a token of another audience, or without a valid signature, reaches nothing', async () => {
  const claims = { svc_ids: 'pr-1.de-1' };
  const [header, , signature] = (await token(claims)).split('.');
  const forged = Buffer.from(JSON.stringify({ ...claims, iss: url, aud: AUDIENCE, exp: 4e9 })).toString('base64url');
  const all = [await token({ ...claims, aud: 'other' }), [header, forged, signature].join('.')];
  for (const each of all) expect(await reach('de-1', each)).toBe('TOKEN_REJECTED');
});

describe('svc connect', () => {
  const words = (...more: string[]): string[] => [
    ...['connect', '--product', 'pr-1', '--device-id', 'de-1', '--fingerprint', fingerprint, '--server', options.ServerUrl],
    ...['--server-fingerprint', options.ServerFingerprint, '--state', join(processes.folder, 'client'), '--no-local', ...more],
  ];

  test('accepts a token from a file, and from standard input', async () => {
    const file = join(processes.folder, 'token');
    await writeFile(file, `${await token({ svc_ids: 'pr-1.de-1' })}\n`);
    const key = join(processes.folder, 'server-key');
    await writeFile(key, `${options.ServerKey}\n`);
    const { code, stderr } = await svc(...words('--server-key-file', key, '--jwt-file', file));
    expect([code, stderr]).toEqual([0, '']);
    const input = await token({ svc_ids: 'pr-1.de-2' });
    const other = await svcProcess({ input }, ...words('--server-key-file', key, '--jwt', '-'));
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not name this device \(TOKEN_REJECTED\).*--jwt-file/) });
  });
});

test('the keys of the issuer are fetched once', () => {
  expect(requests).toBe(1);
});
