/** Which CoAP requests pass the gateway, and what they request from the device: options alone, without a network. */
import { describe, expect, test } from 'vitest';
import { deviceRequest, unrecognizedOption } from '../../client/gateway/request.ts';
import { type CoapMessage, type CoapOption, textReply } from '../../protocol/coap/index.ts';
import { BlockTransfers } from '../../protocol/coap-udp/index.ts';

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
    ['an unknown elective option that is unsafe to forward (§5.7.1)', message(GET, option(2050)), 402],
    ['a path that is not UTF-8', message(GET, option(11, [0xff])), 400],
    ['a path of more than 256 bytes', message(GET, option(11, 'a'.repeat(255))), 400],
    ['a dot segment', message(GET, option(11, '..')), 400],
  ])('%s', (_, given, status) => {
    expect(unrecognizedOption(given)).toBeUndefined();
    expect(deviceRequest(given)).toMatchObject({ status });
  });
});

describe('a critical option that counts as unrecognized:', () => {
  const first = option(27, [0x08]);
  const short = option(23);
  test.each<[string, CoapMessage, string]>([
    ['unknown', message(GET, option(2049)), 'option 2049 is not supported'],
    ['If-Match', message(PUT, option(1, 'a')), 'option 1 is not supported'],
    ['If-None-Match', message(PUT, option(5)), 'option 5 is not supported'],
    ['OSCORE', message(GET, option(9)), 'option 9 is not supported'],
    ['Q-Block1', message(PUT, option(19)), 'option 19 is not supported'],
    ['Accept, with a method that acts before it answers', message(PUT, option(17, [50])), 'option 17 is not supported'],
    ['Accept of 3 bytes', message(GET, option(17, [0, 0, 0])), 'option 17 has a wrong length'],
    ['Accept twice', message(GET, option(17), option(17)), 'option 17 is repeated'],
    ['Uri-Host, empty', message(GET, option(3)), 'option 3 has a wrong length'],
    ['Uri-Host twice', message(GET, option(3, 'a'), option(3, 'a')), 'option 3 is repeated'],
    ['Uri-Port of 3 bytes', message(GET, option(7, [0, 0, 0])), 'option 7 has a wrong length'],
    ['Uri-Port twice', message(GET, option(7), option(7)), 'option 7 is repeated'],
    ['Uri-Path of 256 bytes', message(GET, option(11, 'x'.repeat(256))), 'option 11 has a wrong length'],
    ['Uri-Query of 256 bytes', message(GET, option(15, 'x'.repeat(256))), 'option 15 has a wrong length'],
    ['Block1 of 4 bytes', message(PUT, option(27, [0, 0, 0, 0])), 'option 27 has a wrong length'],
    ['Block1 twice', message(PUT, first, option(27)), 'option 27 is repeated'],
    ['Block2 of 4 bytes', message(GET, option(23, [0, 0, 0, 0])), 'option 23 has a wrong length'],
    ['Block2 twice', message(GET, short, short), 'option 23 is repeated'],
    ['Proxy-Uri of 1,035 bytes', message(GET, option(35, 'x'.repeat(1035))), 'option 35 has a wrong length'],
    ['Proxy-Scheme twice', message(GET, option(39, 'http'), option(39, 'http')), 'option 39 is repeated'],
    ['unknown, beside Proxy-Uri', message(GET, option(35, 'coap://a'), option(2049)), 'option 2049 is not supported'],
    ['unknown, with an unknown method', message(5, option(2049)), 'option 2049 is not supported'],
    ['unknown, in the first of many blocks', message(PUT, first, option(2049)), 'option 2049 is not supported'],
  ])('%s', (_, given, problem) => {
    expect(unrecognizedOption(given)).toEqual(textReply(402, `Critical ${problem}`));
  });
});

describe('the gateway ignores', () => {
  const sixty = option(12, [60]);
  test.each<[string, CoapOption[], object?]>([
    ['Uri-Host', [option(3, 'anything')]],
    ['Uri-Port', [option(7, [1])]],
    ['ETag', [option(4, [2])]],
    ['ETag of 9 bytes', [option(4, Array(9).fill(0))]],
    ['Max-Age', [option(14, [2])]],
    ['Max-Age twice', [option(14), option(14)]],
    ['Hop-Limit', [option(16, [2])]],
    ['Size1', [option(60, [2])]],
    ['Size1 of 5 bytes', [option(60, Array(5).fill(255))]],
    ['Observe of 4 bytes', [option(6, [0, 0, 0, 0])]],
    ['Content-Format of 3 bytes', [option(12, [0, 0, 0])]],
    ['a second Content-Format', [sixty, option(12, [50])], { contentFormat: 60 }],
    ['Request-Tag', [option(292, [2])]],
    ['No-Response', [option(258, [2])]],
    ['an unknown elective option that is safe', [option(2052, 'a')]],
  ])('%s', (_, options, more) => {
    const given = message(GET, ...options);
    expect(unrecognizedOption(given)).toBeUndefined();
    const taken = new BlockTransfers(() => 0).take('peer', given, 0);
    expect('request' in taken && deviceRequest(taken.request.message)).toEqual({ ...asked, method: 'GET', ...more });
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
