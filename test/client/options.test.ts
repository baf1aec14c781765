/** Connection options: merging, rules, defaults, and the private key that is never shown. */
import { describe, expect, test } from 'vitest';
import { currentJwt, effectiveOptions, mergeOptions, publicOptions, serverAddress } from '../../client/options.ts';
import { thrownCode } from '../support/code-of.ts';

describe('connection options', () => {
  test('are merged: later calls over earlier ones, as objects or JSON', () => {
    const first = mergeOptions({}, { ProductId: 'pr-1', DeviceId: 'de-1' });
    const second = mergeOptions(first, '{"DeviceId":"de-2","Remote":false}');
    expect(second).toEqual({ ProductId: 'pr-1', DeviceId: 'de-2', Remote: false });
  });

  test.each([
    ['bad JSON', '{'],
    ['JSON that is no object', '[]'],
    ['null', 'null'],
    ['an unknown key', '{"ProductID":"x"}'],
    ['a key of Object.prototype', '{"toString":"x"}'],
    ['a number for a text', '{"ProductId":1}'],
    ['an empty text', '{"ProductId":""}'],
    ['a text for a flag', '{"Remote":"true"}'],
    ['a fraction for milliseconds', '{"KeepAliveInterval":1.5}'],
    ['zero milliseconds', '{"ConnectTimeout":0}'],
    ['a URL that is not https', '{"ServerUrl":"http://x"}'],
    ['a URL with a path', '{"ServerUrl":"https://x/y"}'],
    ['a URL with a user', '{"ServerUrl":"https://u@x"}'],
    ['a URL with a password', '{"ServerUrl":"https://:p@x"}'],
    ['a short fingerprint', '{"DeviceFingerprint":"abcd"}'],
    ['an upper-case fingerprint', `{"DeviceFingerprint":"${'A'.repeat(64)}"}`],
    ['an application name of 33 bytes', `{"AppName":"x${'é'.repeat(16)}"}`],
    ['an application version of 33 bytes', `{"AppVersion":"${'1'.repeat(33)}"}`],
    ['a WebSocket with a password', '{"ServerWebSocketUrl":"wss://u:p@x/svc/v1"}'],
    ['a WebSocket with a query', '{"ServerWebSocketUrl":"wss://x/svc/v1?token=1"}'],
    ['a WebSocket with an empty fragment', '{"ServerWebSocketUrl":"wss://x/svc/v1#"}'],
    ['a WebSocket by https', '{"ServerWebSocketUrl":"https://x/svc/v1"}'],
    ['a WebSocket verified perhaps', '{"ServerWebSocketVerify":"yes"}'],
    ['a ServerUrl with port 0', '{"ServerUrl":"https://x:0"}'],
    ['a ServerUrl with a fragment', '{"ServerUrl":"https://x/#y"}'],
    ['an empty application name', '{"AppName":""}'],
    ['an application name with half a character', '{"AppName":"\\ud83d"}'],
  ])('%s is INVALID_ARGUMENT', (_, json) => {
    expect(thrownCode(() => mergeOptions({}, json))).toBe('INVALID_ARGUMENT');
  });

  test('accept names of 32 bytes', () => {
    const names = { AppName: 'é'.repeat(16), AppVersion: '1'.repeat(32) };
    expect(mergeOptions({}, names)).toEqual(names);
  });

  test('stay unchanged by a refused call', () => {
    const before = { ProductId: 'pr-1' };
    expect(thrownCode(() => mergeOptions(before, { DeviceId: 'de-1', Remote: 1 as never }))).toBe('INVALID_ARGUMENT');
    expect(before).toEqual({ ProductId: 'pr-1' });
  });

  test('are shown with the defaults and never with the private key', () => {
    const shown = publicOptions({ PrivateKey: 'secret', ProductId: 'pr-1' });
    expect(shown).not.toHaveProperty('PrivateKey');
    expect(shown).toMatchObject({
      ProductId: 'pr-1',
      ConnectTimeout: 120_000,
      DtlsHelloTimeout: 10_000,
      Remote: true,
      KeepAliveProfile: 'balanced',
    });
    expect(effectiveOptions({ ConnectTimeout: 5 }).ConnectTimeout).toBe(5);
  });

  test.each([
    ['https://station.example', { host: 'station.example', port: 4433 }],
    ['https://station.example:443', { host: 'station.example', port: 443 }],
    ['https://station.example:4433', { host: 'station.example', port: 4433 }],
    ['https://[2001:db8::1]:4433', { host: '2001:db8::1', port: 4433 }],
  ])('%s names host and UDP port', (url, address) => {
    expect(serverAddress(url)).toEqual(address);
  });
});

describe('ServerJwtToken', () => {
  const GOOD = 'aa.bb.cc';

  test.each<[string, unknown]>([
    ['a blank', `${GOOD} `],
    ['a line break', `${GOOD}\n`],
    ['two parts', 'a.b'],
    ['8,193 characters', `${'a'.repeat(8189)}.b.c`],
    ['another type', 7],
  ])('a token with %s is INVALID_ARGUMENT where it is set', (_, ServerJwtToken) => {
    expect(() => mergeOptions({}, { ServerJwtToken: ServerJwtToken as string })).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/ServerJwtToken of a connection must be a JWT: three parts/),
      }),
    );
  });

  test('a token of 8,192 characters is an option, and is shown; a function is not', () => {
    const ServerJwtToken = `${'a'.repeat(8188)}.b.c`;
    expect(publicOptions(mergeOptions({}, { ServerJwtToken }))).toMatchObject({ ServerJwtToken });
    expect(publicOptions(mergeOptions({}, { ServerJwtToken: () => GOOD }))).not.toHaveProperty('ServerJwtToken');
  });

  test.each<[string, () => string | Promise<string>, string, RegExp]>([
    ['that rejects', () => Promise.reject(new Error('no session')), 'FAILED', /the function of ServerJwtToken failed/],
    [
      'that throws',
      () => {
        throw new Error('no session');
      },
      'FAILED',
      /failed: no session/,
    ],
    ['that gives nothing', () => undefined as never, 'INVALID_ARGUMENT', /returned no token/],
    ['that gives a line break', () => `${GOOD}\n`, 'INVALID_ARGUMENT', /returned no token: it must be a JWT/],
  ])('a function %s is reported with a message', async (_, given, code, message) => {
    await expect(currentJwt(given)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
