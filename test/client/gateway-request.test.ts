/** Which CoAP requests pass the gateway, and what they request from the device: options alone, without a network. */
import { describe, expect, test } from 'vitest';
import { deviceRequest, unrecognizedOption } from '../../client/gateway/request.ts';
import type { CoapMessage, CoapOption } from '../../protocol/coap/index.ts';

const GET = 1;
const PUT = 3;
const bytes = (text: string | number[]): Uint8Array => (typeof text === 'string' ? new TextEncoder().encode(text) : Uint8Array.from(text));
const option = (number: number, value: string | number[] = []): CoapOption => ({ number, value: bytes(value) });
const message = (code: number, ...options: CoapOption[]): CoapMessage => ({
  code,
  token: bytes([1]),
  options: [option(11, 'x'), ...options],
  payload: bytes('body'),
});

describe('the gateway refuses', () => {
  test.each<[string, CoapMessage, number]>([
    ['FETCH', message(5), 405],
    ['an unknown method', message(31), 405],
    ['a query of more than 512 bytes', message(GET, ...Array.from({ length: 3 }, () => option(15, 'a'.repeat(200)))), 400],
    ['Proxy-Uri', message(GET, option(35, 'coap://elsewhere/x')), 505],
    ['Proxy-Scheme', message(GET, option(39, 'http')), 505],
    ['If-Match', message(PUT, option(1)), 402],
    ['If-None-Match', message(PUT, option(5)), 402],
    ['OSCORE', message(GET, option(9)), 402],
    ['Q-Block1', message(PUT, option(19)), 402],
    ['an unknown critical option', message(GET, option(2049)), 402],
    ['an unknown elective option that is unsafe to forward', message(GET, option(2050)), 402],
    ['Accept with a method that acts before it answers', message(PUT, option(17)), 402],
    ['Accept of three bytes', message(GET, option(17, [1, 2, 3])), 402],
    ['a path that is not UTF-8', message(GET, option(11, [0xff])), 400],
    ['a path of more than 256 bytes', message(GET, option(11, 'a'.repeat(255))), 400],
    ['a dot segment', message(GET, option(11, '..')), 400],
  ])('%s', (_, given, status) => {
    expect(unrecognizedOption(given) ?? deviceRequest(given)).toMatchObject({ status });
  });
});

describe('the gateway ignores', () => {
  test.each<[string, CoapOption]>([
    ['Uri-Host', option(3, 'anything')],
    ['Uri-Port', option(7, [1])],
    ['ETag', option(4, [2])],
    ['Max-Age', option(14, [2])],
    ['Hop-Limit', option(16, [2])],
    ['Size1', option(60, [2])],
    ['Request-Tag', option(292, [2])],
    ['No-Response', option(258, [2])],
    ['an unknown elective option that is safe', option(2052, 'a')],
  ])('%s', (_, given) => {
    expect(unrecognizedOption(message(GET, given))).toBeUndefined();
    expect(deviceRequest(message(GET, given))).toEqual({ ...asked, method: 'GET' });
  });
});

test('Uri-Query passes', () => {
  const given = message(GET, option(15, 'rt=light'), option(15, 'a'));
  expect(unrecognizedOption(given)).toBeUndefined();
  expect(deviceRequest(given)).toEqual({ ...asked, method: 'GET', query: ['rt=light', 'a'] });
});

const asked = { path: '/x', query: [], contentFormat: null, payload: bytes('body'), accept: undefined, observe: undefined };

test.each([
  [1, 'GET'],
  [2, 'POST'],
  [3, 'PUT'],
  [4, 'DELETE'],
])('code %i is %s, with path, content format and payload', (code, method) => {
  expect(deviceRequest(message(code, option(11, 'k l'), option(12, [60])))).toEqual({
    ...asked,
    method,
    path: '/x/k%20l',
    contentFormat: 60,
  });
});

test('GET forwards Accept and Observe; other methods forward no Observe', () => {
  expect(deviceRequest(message(GET, option(6), option(17, [50])))).toMatchObject({ observe: 0, accept: 50 });
  expect(deviceRequest(message(GET, option(6, [1])))).toMatchObject({ observe: 1 });
  expect(deviceRequest(message(2, option(6)))).toMatchObject({ method: 'POST', observe: undefined });
});
