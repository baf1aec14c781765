/** A connection before it is connected, and with invalid arguments; no network. */
import { describe, expect, test } from 'vitest';
import { SvcClient as BrowserClient } from '../../client/browser.ts';
import {
  type Connection,
  ContentFormat,
  errorGetMessage,
  LocalError,
  nodeEnvironment,
  RemoteError,
  SvcClient,
  SvcError,
} from '../../client/node.ts';
import { codeOf } from '../support/code-of.ts';

const client = SvcClient.create();

describe('client', () => {
  test('creates private keys that a connection accepts', async () => {
    const pem = client.createPrivateKey();
    expect(pem).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    expect(client.createPrivateKey()).not.toBe(pem);
    const connection = client.createConnection();
    connection.updateOptions({ PrivateKey: pem });
    expect(connection.getClientFingerprint()).toMatch(/^[0-9a-f]{64}$/);
    expect(connection.getOptions()).not.toHaveProperty('PrivateKey');
  });

  test('imports a key once for connections in a row that have the same', async () => {
    const environment = nodeEnvironment();
    const imported: Uint8Array[] = [];
    const importKey = (raw: Uint8Array) => {
      imported.push(raw);
      return environment.crypto.importKey(raw);
    };
    const crypto = { ...environment.crypto, importKey };
    const counted = SvcClient.create({ environment: { ...environment, crypto } });
    const [one, two] = [counted.createPrivateKey(), counted.createPrivateKey()];
    const fingerprints = [one, one, two, two, one].map((PrivateKey) => counted.createConnection({ PrivateKey }).getClientFingerprint());
    expect(imported).toHaveLength(3);
    // The bytes of a key leave the memory once it is imported.
    expect(imported.flatMap((raw) => [...raw]).every((byte) => byte === 0)).toBe(true);
    const [ofOne, , ofTwo] = fingerprints;
    expect(ofTwo).not.toBe(ofOne);
    expect(fingerprints).toEqual([ofOne, ofOne, ofTwo, ofTwo, ofOne]);
  });

  test('knows its log levels', async () => {
    for (const level of ['error', 'warn', 'info', 'debug', 'trace']) client.setLogLevel(level);
    expect(await codeOf(() => client.setLogLevel('loud'))).toBe('INVALID_ARGUMENT');
  });

  test('has a version', async () => {
    const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
    expect(client.version()).toBe(manifest.version);
  });

  test('creates a connection with options, and refuses invalid ones', async () => {
    expect(client.createConnection({ ProductId: 'pr-a', DeviceId: 'de-b' }).getOptions()).toMatchObject({
      ProductId: 'pr-a',
      DeviceId: 'de-b',
    });
    expect(client.createConnection('{"ProductId":"pr-a"}').getOptions()).toMatchObject({ ProductId: 'pr-a' });
    expect(await codeOf(() => client.createConnection({ Product: 'pr-a' } as object))).toBe('INVALID_ARGUMENT');
  });

  test('creates no connection after stop', async () => {
    const stopped = SvcClient.create();
    await stopped.stop();
    await stopped.stop();
    expect(await codeOf(() => stopped.createConnection())).toBe('STOPPED');
  });
});

test('an error has a code, a message and a class', async () => {
  const error = await client
    .createConnection()
    .connect()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LocalError);
  expect(error).toBeInstanceOf(SvcError);
  expect(error).not.toBeInstanceOf(RemoteError);
  expect(errorGetMessage((error as SvcError).code)).toBe('the operation is not possible in the current state');
});

test('content formats have the numbers of their registry', () => {
  const { TEXT_PLAIN, APPLICATION_XML, APPLICATION_OCTET_STREAM, APPLICATION_CBOR } = ContentFormat;
  expect([TEXT_PLAIN, APPLICATION_XML, APPLICATION_OCTET_STREAM, APPLICATION_CBOR]).toEqual([0, 41, 42, 60]);
});

test('names and a JWT are options, and are shown as given', () => {
  const connection = client.createConnection();
  const options = { AppName: 'Phone', AppVersion: '3.2', ServerJwtToken: 'e30.e30.c2ln' };
  connection.updateOptions(options);
  expect(connection.getOptions()).toMatchObject(options);
});

describe('connection before connect', () => {
  test('has neither type nor device fingerprint, and no key', async () => {
    const connection = client.createConnection();
    expect(await codeOf(() => connection.getType())).toBe('NOT_CONNECTED');
    expect(await codeOf(() => connection.getDeviceFingerprint())).toBe('NOT_CONNECTED');
    expect(await codeOf(() => connection.getClientFingerprint())).toBe('INVALID_STATE');
    expect(await codeOf(() => connection.openStream(1).opened)).toBe('NOT_CONNECTED');
    expect(await codeOf(() => connection.get('/'))).toBe('NOT_CONNECTED');
    expect(await codeOf(() => connection.createTcpTunnel().open('web'))).toBe('NOT_CONNECTED');
  });

  test.each<[string, (connection: Connection) => unknown]>([
    ['the method PATCH', (connection) => connection.request('PATCH', '/')],
    ['the method get', (connection) => connection.request('get', '/')],
    ['no method', (connection) => connection.request('', '/')],
    ['a path without a slash', (connection) => connection.get('x')],
    ['a content format of 65,536', (connection) => connection.put('/x', 'x', { format: 65_536 })],
    ['a content format without a body', (connection) => connection.put('/x', undefined, { format: 0 })],
    ['a query that is too long', (connection) => connection.get('/x', { query: ['a'.repeat(256)] })],
    ['a body that CBOR does not have', (connection) => connection.put('/x', { at: new Date() as never })],
    ['an observation by PUT', (connection) => connection.observe('/x', { method: 'PUT' as 'POST' })],
  ])('a request with %s is refused, connected or not', async (_, run) => {
    expect(await codeOf(() => run(client.createConnection()))).toBe('INVALID_ARGUMENT');
  });

  test('unopened streams and tunnels fail as such', async () => {
    const tunnel = client.createConnection().createTcpTunnel();
    expect(await codeOf(() => tunnel.getLocalPort())).toBe('INVALID_STATE');
    expect(await codeOf(() => tunnel.close())).toBe('INVALID_STATE');
    expect(await codeOf(() => tunnel.open('web', 65_536))).toBe('INVALID_ARGUMENT');
  });

  test('tunnels are refused on a platform that cannot listen, such as a browser', async () => {
    const page = BrowserClient.create({ environment: nodeEnvironment() });
    expect(await codeOf(() => page.createConnection().createTcpTunnel().open('web'))).toBe('NOT_IMPLEMENTED');
    expect(await codeOf(() => page.createConnection().createUdpTunnel().open('names'))).toBe('NOT_IMPLEMENTED');
  });

  test('direct candidates need enabling, a host and a port', async () => {
    const connection = client.createConnection();
    expect(await codeOf(() => connection.addDirectCandidate('127.0.0.1', 5592))).toBe('INVALID_STATE');
    expect(await codeOf(() => connection.endOfDirectCandidates())).toBe('INVALID_STATE');
    connection.enableDirectCandidates();
    expect(await codeOf(() => connection.addDirectCandidate('127.0.0.1', 0))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => connection.addDirectCandidate('', 5592))).toBe('INVALID_ARGUMENT');
    connection.endOfDirectCandidates();
    expect(await codeOf(() => connection.addDirectCandidate('127.0.0.1', 5592))).toBe('INVALID_STATE');
  });

  test('connect names the missing option', async () => {
    const connect = async (options: object): Promise<string> => {
      const connection = client.createConnection();
      connection.updateOptions(options);
      return connection.connect().then(
        () => 'OK',
        (error: Error & { code: string }) => `${error.code} ${error.message}`,
      );
    };
    const PrivateKey = client.createPrivateKey();
    expect(await connect({})).toMatch(/^INVALID_STATE .*PrivateKey/);
    expect(await connect({ PrivateKey })).toMatch(/^INVALID_STATE .*ProductId/);
    expect(await connect({ PrivateKey, ProductId: 'p', DeviceId: 'd' })).toMatch(/^INVALID_STATE .*ServerUrl/);
    expect(await connect({ PrivateKey, Remote: false })).toMatch(/^INVALID_STATE .*ProductId/);
    expect(await connect({ PrivateKey, Remote: false, ProductId: 'p' })).toMatch(/^INVALID_STATE .*DeviceId/);
    expect(await codeOf(() => client.createConnection().updateOptions({ PrivateKey: 'no key' }))).toBe('INVALID_ARGUMENT');
  });

  test('the error without any channel has the three codes', async () => {
    const connection = client.createConnection();
    connection.updateOptions({ PrivateKey: client.createPrivateKey(), Local: false, Remote: false });
    await expect(connection.connect()).rejects.toMatchObject({
      code: 'NO_CHANNELS',
      localChannelErrorCode: 'NONE',
      remoteChannelErrorCode: 'NONE',
      directCandidatesChannelErrorCode: 'NONE',
    });
  });

  test('close is harmless and final', async () => {
    const connection = client.createConnection();
    await connection.close();
    await connection.close();
    expect(await codeOf(() => connection.connect())).toBe('STOPPED');
    expect(await codeOf(() => connection.updateOptions({ ProductId: 'p' }))).toBe('STOPPED');
    expect(await codeOf(() => connection.getType())).toBe('STOPPED');
  });
});
