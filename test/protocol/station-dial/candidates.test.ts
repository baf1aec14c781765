import { expect, test } from 'vitest';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { NoUpgradeError, triesNext, webSocketUrls } from '../../../protocol/station-dial/index.ts';

test('a given URL is the only candidate; otherwise TLS is first, then plain', () => {
  expect(webSocketUrls('station.example', 443, { url: 'wss://other.example/x' })).toEqual(['wss://other.example/x']);
  expect(webSocketUrls('station.example', 4433, {})).toEqual(['wss://station.example:4433/svc/v1', 'ws://station.example:4433/svc/v1']);
  expect(webSocketUrls('2001:db8::1', 4433, {})[0]).toBe('wss://[2001:db8::1]:4433/svc/v1');
});

test('there is no plain candidate when a valid certificate is required', () => {
  expect(webSocketUrls('h', 1, { verifyCertificate: true })).toEqual(['wss://h:1/svc/v1']);
});

test('the next candidate is tried after an unexpected answer, unless that was HTTP', () => {
  expect(['BAD_RESPONSE', 'CONNECTION_REFUSED', 'TIMEOUT'].map((code) => triesNext(new RemoteError(code as 'TIMEOUT', '')))).toEqual([
    true,
    false,
    false,
  ]);
  expect(triesNext(new NoUpgradeError(503, 'it answers 503'))).toBe(false);
});
