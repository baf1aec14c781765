/** What a device accepts and refuses before it is started; no network. */
import { describe, expect, test } from 'vitest';
import { Device, type RendezvousOptions } from '../../device/index.ts';
import { parseServerUrl } from '../../device/settings.ts';
import { createToken, ServerConnectTokens } from '../../device/tokens.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { codeOf } from '../support/code-of.ts';
import { nativeHost } from '../support/crypto.ts';

describe('a rendezvous of the wrong type', () => {
  test.each<[unknown, string]>([
    [null, 'the options of the rendezvous must be a plain object'],
    [7, 'the options of the rendezvous must be a plain object'],
    [['off'], 'the options of the rendezvous must be a plain object'],
    ['on', 'the option mode of the rendezvous must be one of anyone, paired, off'],
    [{ hardnat: false }, 'the rendezvous has no option "hardnat": the name is "hardNat"'],
    [{ portMapping: 'upnp' }, 'the option portMapping of the rendezvous must be one of auto, off'],
    [{ hardNat: 'no' }, 'the option hardNat of the rendezvous must be true or false'],
    [{ noCandidatesOn: 'eth0' }, 'the option noCandidatesOn of the rendezvous must be an array of texts'],
    [{ noCandidatesOn: [1] }, 'the option noCandidatesOn of the rendezvous must be an array of texts'],
    [{ candidates: '203.0.113.7:5593' }, 'the option candidates of the rendezvous must be an array of texts'],
    [{ candidates: [7] }, 'the option candidates of the rendezvous must be an array of texts'],
  ])('%j is refused with a message', (rendezvous, message) => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', message });
    expect(() => new Device({ rendezvous: rendezvous as RendezvousOptions })).toThrow(refused);
  });
});

describe('options', () => {
  test.each([
    ['productID', 'the name is "productId"'],
    ['server_url', 'the name is "serverUrl"'],
    ['ServerFingerprint', 'the name is "serverFingerprint"'],
    ['name', 'the options are environment, productId, deviceId, '],
    ['toString', 'the options are '],
  ])('%s does not exist', (option, remedy) => {
    const refused = expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`a device has no option "${option}": ${remedy}`),
    });
    expect(() => new Device({ [option]: 'x' } as object)).toThrow(refused);
  });

  test('that are missing are named at the start', async () => {
    const device = new Device();
    const refusal = () => device.start().then(undefined, (error: Error) => error.message);
    expect(await refusal()).toBe('the device has no product id: give the option productId, or call setProductId, before start');
    device.setProductId('p');
    device.setDeviceId('d');
    device.setPrivateKey(device.createPrivateKey());
    expect(await refusal()).toMatch(/option serverUrl, or call setServerUrl, before start, or set basestationAttach to false$/);
  });
});

describe('device settings', () => {
  const device = new Device();
  test.each([
    ['a product id with a dot', 'INVALID_ARGUMENT', () => device.setProductId('a.b')],
    ['a WebSocket with a password', 'INVALID_ARGUMENT', () => device.setServerWebSocketUrl('wss://a:b@x/svc/v1')],
    ['a WebSocket with a query', 'INVALID_ARGUMENT', () => device.setServerWebSocketUrl('wss://x/svc/v1?token=1')],
    ['a WebSocket without TLS whose certificate is to be valid', 'INVALID_ARGUMENT', () => device.setServerWebSocketUrl('WS://x/', true)],
    ['a WebSocket without TLS', 'OK', () => device.setServerWebSocketUrl('ws://x/')],
    ['a WebSocket by https', 'INVALID_ARGUMENT', () => device.setServerWebSocketUrl('https://x/')],
    ['an empty device id', 'INVALID_ARGUMENT', () => device.setDeviceId('')],
    ['a long device id', 'INVALID_ARGUMENT', () => device.setDeviceId('d'.repeat(62))],
    ['a private key that is none', 'INVALID_ARGUMENT', () => device.setPrivateKey('-----BEGIN PRIVATE KEY-----')],
    ['an application name of 33 bytes', 'STRING_TOO_LONG', () => device.setAppName(`${'é'.repeat(16)}x`)],
    ['an application version of 33 bytes', 'STRING_TOO_LONG', () => device.setAppVersion('1'.repeat(33))],
    ['an application name of 32 bytes', 'OK', () => device.setAppName('é'.repeat(16))],
    ['a server URL with a path', 'INVALID_ARGUMENT', () => device.setServerUrl('https://x/y')],
    ['a server URL with a password', 'INVALID_ARGUMENT', () => device.setServerUrl('https://me:secret@x')],
    ['a server URL with a query', 'INVALID_ARGUMENT', () => device.setServerUrl('x?y')],
    ['a server URL with port 0', 'INVALID_ARGUMENT', () => device.setServerUrl('https://x:0')],
    ['a server URL over http', 'INVALID_ARGUMENT', () => device.setServerUrl('http://x')],
    ['a fingerprint that is none', 'INVALID_ARGUMENT', () => device.setServerFingerprint('12')],
    ['a port that is none', 'INVALID_ARGUMENT', () => device.setLocalPort(65_536)],
    ['a keep-alive profile that is none', 'INVALID_ARGUMENT', () => device.setKeepAliveProfile('lively' as 'live')],
    ['a keep-alive profile', 'OK', () => device.setKeepAliveProfile('eco')],
    ['a negative limit', 'INVALID_ARGUMENT', () => device.limitConnections(-1)],
    ['a token of 65 bytes', 'INVALID_ARGUMENT', () => device.addServerConnectToken('x'.repeat(65))],
    ['a reserved path', 'INVALID_ARGUMENT', () => device.addCoapResource('GET', '/iam/x', () => ({ status: 205 }))],
    ['a reserved root', 'INVALID_ARGUMENT', () => device.addCoapResource('GET', '/p2p', () => ({ status: 205 }))],
    ['a path that only begins alike', 'OK', () => device.addCoapResource('GET', '/iamx', () => ({ status: 205 }))],
    ['a path taken before', 'IN_USE', () => device.addCoapResource('GET', '/iamx', () => ({ status: 205 }))],
    ['a method that is none', 'INVALID_ARGUMENT', () => device.addCoapResource('PATCH', '/x', () => ({ status: 205 }))],
    ['a stream port', 'OK', () => device.addStreamListener(7, () => {})],
    ['a stream port taken before', 'OPERATION_IN_PROGRESS', () => device.addStreamListener(7, () => {})],
    ['a tunnel service', 'OK', () => device.addTcpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 80 })],
    ['its id again', 'IN_USE', () => device.addTcpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 81 })],
    ['a tunnel service to port 0', 'INVALID_ARGUMENT', () => device.addTcpTunnelService({ id: 'x', type: 't', host: 'h', port: 0 })],
    ['the end of a service', 'OK', () => device.removeTcpTunnelService('web')],
    ['the end of no service', 'NOT_FOUND', () => device.removeTcpTunnelService('web')],
    ['a connection that never was', 'INVALID_CONNECTION', () => device.connection(1)],
    ['a close before the start', 'INVALID_STATE', () => device.close()],
    ['a start without ids', 'INVALID_STATE', () => device.start()],
    ['the fingerprint without a key', 'INVALID_STATE', () => device.deviceFingerprint],
  ])('%s: %s', async (_, code, run) => {
    expect(await codeOf(run)).toBe(code);
  });

  test('the start needs ids, key and base station, in this order', async () => {
    const { getHttps: _, ...environment } = nodeEnvironment();
    const fresh = new Device({ environment, p2pPort: 0, localPort: 0 });
    const missing = () =>
      fresh.start().then(
        () => '',
        (error: Error) => error.message,
      );
    expect(await missing()).toMatch(/product id/);
    fresh.setProductId('p');
    expect(await missing()).toMatch(/device id/);
    fresh.setDeviceId('d');
    expect(await missing()).toMatch(/private key/);
    fresh.setPrivateKey(fresh.createPrivateKey());
    expect(await missing()).toMatch(/server URL/);
    fresh.setServerUrl('https://127.0.0.1:1');
    expect(await missing()).toMatch(/fingerprint of the base station/);
  });

  test('only one authorization listener', async () => {
    const fresh = new Device();
    const remove = fresh.onAuthorizationRequest(() => true);
    expect(await codeOf(() => fresh.onAuthorizationRequest(() => true))).toBe('IN_USE');
    remove();
    expect(await codeOf(() => fresh.onAuthorizationRequest(() => true))).toBe('OK');
  });

  test('ephemeral stream ports begin at 0x80000000 and differ', () => {
    const fresh = new Device();
    const ports = [0, 0, 0].map((port) => fresh.addStreamListener(port, () => {}).port);
    expect(ports.every((port) => port >= 0x8000_0000)).toBe(true);
    expect(new Set(ports).size).toBe(3);
  });
});

test.each([
  ['https://station.example', { host: 'station.example' }],
  ['https://station.example:443', { host: 'station.example', port: 443 }],
  ['station.example:443', { host: 'station.example', port: 443 }],
  ['https://station.example:4433', { host: 'station.example', port: 4433 }],
  ['station.example', { host: 'station.example' }],
  ['station.example:4433', { host: 'station.example', port: 4433 }],
  ['https://[2001:db8::1]:4433', { host: '2001:db8::1', port: 4433 }],
])('the server URL %s is parsed', (url, address) => {
  expect(parseServerUrl(url)).toEqual(address);
});

describe('server connect tokens', () => {
  test('have 12 of 62 characters, and use all of them', () => {
    const crypto = nativeHost(1);
    const tokens = Array.from({ length: 500 }, () => createToken(crypto));
    expect(tokens.every((token) => /^[A-Za-z0-9]{12}$/.test(token))).toBe(true);
    expect(new Set(tokens.join('')).size).toBe(62);
    expect(new Set(tokens).size).toBe(500);
  });

  test('are synchronized only when the latest version of the list is uploaded', () => {
    const tokens = new ServerConnectTokens();
    expect(tokens.add('one')).toBe(true);
    expect(tokens.add('one')).toBe(false);
    expect(tokens.synchronized).toBe(false);
    const uploaded = tokens.version;
    tokens.add('two');
    tokens.uploadedVersion(uploaded);
    expect(tokens.synchronized).toBe(false);
    tokens.uploadedVersion(tokens.version);
    expect(tokens.synchronized).toBe(true);
    expect(tokens.listed).toEqual(['one', 'two']);
  });
});
