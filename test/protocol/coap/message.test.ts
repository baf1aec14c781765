/**
 * Messages against the `coap-packet` library and against broken bytes. `rfc-messages.test.ts` has the examples of the
 * standards.
 */
import { generate, parse } from 'coap-packet';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  codeOfStatus,
  decodeMessage,
  encodeMessage,
  MAX_MESSAGE,
  methodOfCode,
  Status,
  statusOfCode,
} from '../../../protocol/coap/index.ts';
import { type CoapMessage, MAX_OPTIONS } from '../../../protocol/coap/message.ts';
import { isCritical, OptionNumber, optionTable, readUint, uintValue } from '../../../protocol/coap/options.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import { seeds } from '../../support/tiered.ts';
import { parseError } from '../parse-error.ts';
import { ascii, fromUdp, normal, textOption as option } from './messages.ts';
import { randomBytes, seededRandom } from './pair.ts';

/** Converts one of our messages to a datagram of RFC 7252. */
const toUdp = (message: Uint8Array): Buffer => Buffer.from([0x40 | message[0]!, message[1]!, 0x7d, 0x34, ...message.subarray(2)]);

const messages = fc.record({
  code: fc.integer({ min: 0, max: 255 }),
  token: fc.uint8Array({ maxLength: 8 }),
  options: fc.array(fc.record({ number: fc.integer({ min: 0, max: 0xffff }), value: fc.uint8Array({ maxLength: 600 }) }), {
    maxLength: 20,
  }),
  payload: fc.uint8Array({ maxLength: 500 }),
});

describe('messages', () => {
  test('any message survives a round trip, options sorted', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const sorted = { ...message, options: message.options.toSorted((a, b) => a.number - b.number) };
        expect(normal(decodeMessage(encodeMessage(message)))).toEqual(normal(sorted));
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test('coap-packet decodes what we encode', () => {
    fc.assert(
      fc.property(messages, (message) => {
        fc.pre(message.code !== 0);
        const parsed = parse(toUdp(encodeMessage(message)));
        expect([...parsed.token]).toEqual([...message.token]);
        expect([...parsed.payload]).toEqual([...message.payload]);
        expect(parsed.code).toBe(`${message.code >> 5}.${String(message.code & 31).padStart(2, '0')}`);
        const sorted = message.options.toSorted((a, b) => a.number - b.number);
        expect(parsed.options.map(({ value }) => [...value])).toEqual(sorted.map(({ value }) => [...value]));
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test('we decode what coap-packet encodes, with its option names and codes', () => {
    const numbers: Record<string, number> = {
      'If-Match': OptionNumber.IF_MATCH,
      'Uri-Host': OptionNumber.URI_HOST,
      ETag: OptionNumber.ETAG,
      'If-None-Match': OptionNumber.IF_NONE_MATCH,
      Observe: OptionNumber.OBSERVE,
      'Uri-Port': OptionNumber.URI_PORT,
      'Location-Path': OptionNumber.LOCATION_PATH,
      'Uri-Path': OptionNumber.URI_PATH,
      'Content-Format': OptionNumber.CONTENT_FORMAT,
      'Max-Age': OptionNumber.MAX_AGE,
      'Uri-Query': OptionNumber.URI_QUERY,
      Accept: OptionNumber.ACCEPT,
      'Location-Query': OptionNumber.LOCATION_QUERY,
      Block2: OptionNumber.BLOCK2,
      Block1: OptionNumber.BLOCK1,
      'Proxy-Uri': OptionNumber.PROXY_URI,
      'Proxy-Scheme': OptionNumber.PROXY_SCHEME,
      Size1: OptionNumber.SIZE1,
      Size2: OptionNumber.SIZE2,
      258: OptionNumber.NO_RESPONSE,
      292: OptionNumber.REQUEST_TAG,
    };
    expect(Object.values(numbers).toSorted((a, b) => a - b)).toEqual(optionTable.map(({ number }) => number));
    const codes = ['GET', 'POST', 'PUT', 'DELETE', '2.01', '2.05', '4.04', '4.13', '4.29', '5.03'];
    for (const [name, number] of Object.entries(numbers)) {
      const code = codes[number % codes.length]!;
      const datagram = generate({
        code,
        token: Buffer.from([1, 2, 3]),
        options: [{ name: name as 'Uri-Path', value: Buffer.from('ab') }],
        payload: Buffer.from('x'),
      });
      const message = decodeMessage(fromUdp(datagram));
      expect(message.options).toEqual([{ number, value: Uint8Array.from([0x61, 0x62]) }]);
      const read = methodOfCode(message.code) ?? (statusOfCode(message.code) / 100).toFixed(2);
      expect(read).toBe(code);
    }
  });

  test.each([0, 12, 13, 14, 268, 269, 270, 1034])('options of %i bytes with that number survive a round trip', (length) => {
    const options = [
      { number: length, value: new Uint8Array(length).fill(7) },
      { number: 0xffff, value: new Uint8Array(0) },
    ];
    const message = { code: 1, token: new Uint8Array(0), options, payload: new Uint8Array(0) };
    expect(normal(decodeMessage(encodeMessage(message)))).toEqual(normal(message));
    expect(parse(toUdp(encodeMessage(message))).options).toHaveLength(2);
  });

  test('the largest message is encoded and one byte more is refused', () => {
    const message = { code: 2, token: new Uint8Array(8), options: [], payload: new Uint8Array(MAX_MESSAGE - 11) };
    expect(encodeMessage(message)).toHaveLength(MAX_MESSAGE);
    expect(() => encodeMessage({ ...message, payload: new Uint8Array(MAX_MESSAGE - 10) })).toThrow(LocalError);
    expect(() => decodeMessage(new Uint8Array(MAX_MESSAGE + 1))).toThrow(RemoteError);
  });

  test.each<[string, Partial<CoapMessage>]>([
    ['a code of 256', { code: 256 }],
    ['a code that is not an integer', { code: 1.5 }],
    ['a token of 9 bytes', { token: new Uint8Array(9) }],
    ['an option number of 65536', { options: [{ number: 65_536, value: new Uint8Array(0) }] }],
    ['a negative option number', { options: [{ number: -1, value: new Uint8Array(0) }] }],
    ['an option of 1035 bytes', { options: [{ number: 35, value: new Uint8Array(1035) }] }],
    ['too many options', { options: Array.from({ length: MAX_OPTIONS + 1 }, () => option(11, 'a')) }],
  ])('%s cannot be encoded', (_, part) => {
    const message = { code: 1, token: new Uint8Array(0), options: [], payload: new Uint8Array(0), ...part };
    expect(() => encodeMessage(message)).toThrow(LocalError);
  });

  test.each<[string, number[]]>([
    ['nothing', []],
    ['one byte', [0]],
    ['a length nibble', [0x10, 0x01, 0]],
    ['a token length of 9', [9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
    ['a token cut short', [2, 1, 1]],
    ['a marker without payload', [0, 1, 0xff]],
    ['an option cut short', [0, 1, 0xb2, 0x61]],
    ['a delta nibble of 15', [0, 1, 0xf0]],
    ['a length nibble of 15', [0, 1, 0x0f]],
    ['a missing delta byte', [0, 1, 0xd0]],
    ['a missing second delta byte', [0, 1, 0xe0, 1]],
    ['a missing length byte', [0, 1, 0x0d]],
    ['an option number above 65535', [0, 1, 0xe0, 0xff, 0xff]],
    ['too many options', [0, 1, ...new Array(MAX_OPTIONS + 1).fill(0)]],
  ])('%s does not decode', (_, bytes) => {
    parseError(() => decodeMessage(Uint8Array.from(bytes)));
  });
});

describe('codes and values', () => {
  test('statuses map to codes and back', () => {
    for (let code = 0; code < 256; code++) {
      const kind = code >> 5;
      const status = statusOfCode(code);
      expect(codeOfStatus(status)).toBe(kind === 2 || kind === 4 || kind === 5 ? code : undefined);
    }
    expect(codeOfStatus(205)).toBe(0x45);
    expect(codeOfStatus(404)).toBe(0x84);
    expect(codeOfStatus(429)).toBe(0x9d);
    expect(codeOfStatus(503)).toBe(0xa3);
    expect(codeOfStatus(Status.CONTINUE)).toBe(0x5f);
    for (const status of [0, 100, 199, 232, 240, 299, 301, 432, 532, 600, 205.5, Number.NaN, -205])
      expect(codeOfStatus(status)).toBeUndefined();
  });

  test('odd options are critical', () => {
    expect([1, 3, 5, 7, 11, 15, 17, 23, 27, 35, 39].every(isCritical)).toBe(true);
    expect([4, 6, 8, 12, 14, 20, 28, 60].some(isCritical)).toBe(false);
  });

  test.each([
    [0, []],
    [1, [1]],
    [255, [255]],
    [256, [1, 0]],
    [0xffffff, [255, 255, 255]],
    [0xffffffff, [255, 255, 255, 255]],
  ])('the integer %i is %j', (value, bytes) => {
    expect([...uintValue(value)]).toEqual(bytes);
    expect(readUint(Uint8Array.of(0, ...bytes))).toBe(value);
  });
});

describe.each(seeds(1, 2))('seed %i', (seed) => {
  const random = seededRandom(seed);
  const readable = (bytes: Uint8Array): void => {
    try {
      const message = decodeMessage(bytes);
      if (message.options.every(({ value }) => value.length <= 1034))
        expect(normal(decodeMessage(encodeMessage(message)))).toEqual(normal(message));
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
    }
  };

  test('random bytes raise only remote errors', () => {
    for (let i = 0; i < 3_000; i++) readable(randomBytes(random, random(80)));
  });

  test('mutated messages raise only remote errors', { tags: ['slow'] }, () => {
    const whole = encodeMessage({
      code: 2,
      token: randomBytes(random, 8),
      options: [option(11, 'iam'), option(11, 'x'.repeat(300)), option(60, 'ab')],
      payload: ascii('payload'),
    });
    for (let i = 0; i < 3_000; i++) {
      const bytes = whole.slice(0, random(10) === 0 ? random(whole.length) : whole.length);
      for (let j = random(4); j >= 0 && bytes.length > 0; j--) bytes[random(bytes.length)] = random(256);
      readable(bytes);
    }
  });
});
