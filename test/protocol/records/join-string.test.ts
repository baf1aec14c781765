/** Join strings, and the binary form that they share with pairing links. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LocalError } from '../../../protocol/errors/index.ts';
import {
  type BinaryField,
  crc16,
  decodeBinaryForm,
  decodeJoinString,
  encodeBinaryForm,
  encodeJoinString,
  isHostPort,
  type JoinString,
} from '../../../protocol/records/index.ts';

const token = Uint8Array.from({ length: 16 }, (_, i) => i * 7);
const serverFingerprint = '0123456789abcdef'.repeat(4);
const whole: JoinString = { server: 'station.example:4433', serverFingerprint, productId: 'pr-home', deviceId: 'de-1', token };

describe('the binary form', () => {
  test('has a CRC-16/CCITT-FALSE with the check value of the catalogue of CRC algorithms', () => {
    expect(crc16(new TextEncoder().encode('123456789'))).toBe(0x29b1);
  });

  test('returns fields by tag', () => {
    const unique = fc.uniqueArray(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 255 })), { selector: ([tag]) => tag, maxLength: 5 });
    fc.assert(
      fc.property(fc.nat(255), unique, (version, fields) => {
        const text = encodeBinaryForm(version, fields);
        expect(text).toMatch(/^~[A-Za-z0-9_-]+$/);
        expect([...decodeBinaryForm(text, version, 'a test')]).toEqual(fields);
      }),
      { numRuns: 50, seed: 20 },
    );
  });

  test('refuses a field of 256 bytes', () => {
    expect(() => encodeBinaryForm(1, [[1, new Uint8Array(256)]])).toThrow('field 1 is longer than 255 bytes');
  });

  test('refuses a repeated tag as damage', () => {
    const field: BinaryField = [1, token];
    expect(() => decodeBinaryForm(encodeBinaryForm(1, [field, field]), 1, 'a test')).toThrow('not a test: it is cut or mistyped');
  });
});

describe('join strings', () => {
  test.each<[string, JoinString]>([
    ['everything', whole],
    ['authenticated by TLS, without a device id', { server: '[2001:db8::1]:4433', productId: 'p', token }],
  ])('survive a round trip: %s', (_, join) => {
    const text = encodeJoinString(join);
    expect(text).toMatch(/^svc:\/\/join#~[A-Za-z0-9_-]+$/);
    expect(decodeJoinString(` ${text}\n`)).toEqual(join);
  });

  test('with any one wrong, missing or added character are refused', () => {
    const text = encodeJoinString(whole);
    for (let at = 'svc://join#~'.length; at < text.length; at++) {
      const other = text[at] === 'A' ? 'B' : 'A';
      expect(() => decodeJoinString(text.slice(0, at) + other + text.slice(at + 1))).toThrow('cut or mistyped');
      expect(() => decodeJoinString(text.slice(0, at))).toThrow('cut or mistyped');
    }
    expect(() => decodeJoinString(`${text}A`)).toThrow('cut or mistyped');
  });

  test('of a newer version are refused as such; a newer field is skipped', () => {
    const form = (version: number): string => `svc://join#${encodeBinaryForm(version, [...fieldsOf(whole), [200, token]])}`;
    expect(() => decodeJoinString(form(2))).toThrow('it is of a newer version than this svc knows; update svc');
    expect(decodeJoinString(form(1))).toEqual(whole);
  });

  test.each<[string, JoinString, string]>([
    ['no port', { ...whole, server: 'station.example' }, 'must be host:port'],
    ['a short fingerprint', { ...whole, serverFingerprint: 'ab' }, 'fingerprint'],
    ['an id with a blank', { ...whole, deviceId: 'de 1' }, 'not an id'],
    ['ids too long together', { ...whole, productId: 'p'.repeat(31), deviceId: 'd'.repeat(32) }, 'not an id'],
    ['a short token', { ...whole, token: token.subarray(1) }, '16 bytes'],
  ])('are refused by encoder and decoder: %s', (_, join, problem) => {
    expect(() => encodeJoinString(join)).toThrow(problem);
    expect(() => decodeJoinString(`svc://join#${encodeBinaryForm(1, fieldsOf(join))}`)).toThrow(problem);
  });

  test('are refused with INVALID_ARGUMENT in any other form', () => {
    for (const text of ['', 'p=pr-1,d=de-1', 'svc://pair#~AQ', 'svc://join#', 'svc://join#~', 'svc://join#~!', 'svc://join#p=a']) {
      expect(() => decodeJoinString(text)).toThrow(LocalError);
    }
  });
});

test.each([
  ['a:1', true],
  [`${'a'.repeat(250)}:4433`, true],
  [`${'a'.repeat(251)}:4433`, false],
  ['station.example:65535', true],
  ['192.0.2.1:4433', true],
  ['[::1]:1', true],
  ['::1:1', false],
  ['a:0', false],
  ['a:65536', false],
  ['a:01', false],
  ['a', false],
  ['-a:1', false],
  ['a b:1', false],
  ['a:1/', false],
])('host:port %s: %s', (text, valid) => {
  expect(isHostPort(text)).toBe(valid);
});

/** Encodes fields as the encoder does, without its checks. */
function fieldsOf({ server, serverFingerprint, productId, deviceId, token }: JoinString): BinaryField[] {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const fields: BinaryField[] = [
    [1, bytes(server)],
    [3, bytes(productId)],
    [5, token],
  ];
  if (serverFingerprint !== undefined) fields.push([2, Uint8Array.from(Buffer.from(serverFingerprint, 'hex'))]);
  if (deviceId !== undefined) fields.push([4, bytes(deviceId)]);
  return fields;
}
