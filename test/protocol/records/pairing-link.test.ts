/** Pairing strings with base station and addresses, and their binary form in links. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LocalError } from '../../../protocol/errors/index.ts';
import {
  type BinaryField,
  decodeBinaryForm,
  decodePairing,
  decodePairingBytes,
  encodeBinaryForm,
  encodeJoinString,
  encodePairingBytes,
  encodePairingLink,
  encodePairingString,
  type PairingString,
} from '../../../protocol/records/index.ts';
import { anyText } from '../../support/text.ts';

const fingerprint = '0123456789abcdef'.repeat(4);
const serverFingerprint = 'fedcba9876543210'.repeat(4);
const invitation: PairingString = {
  productId: 'pr-home',
  deviceId: 'de-1',
  server: 'station.example:4433',
  serverFingerprint,
  password: 'a,b#"<é%',
  sct: 'abcdefghij12',
  username: 'bob',
};
const alone: PairingString = { productId: 'pr-home', deviceId: 'de-1', addresses: ['192.168.1.7:5592', '[2001:db8::7]:5592'], fingerprint };

/** Returns the byte form of a host and port. */
const hostPort = fc.oneof(
  fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65535 })).map(([host, port]) => `${host}:${port}`),
  fc.tuple(fc.ipV6(), fc.integer({ min: 1, max: 65535 })).map(([host, port]) => `[${host}]:${port}`),
  fc
    .tuple(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}[a-z]$/), fc.integer({ min: 1, max: 65535 }))
    .map(([host, port]) => `${host}:${port}`),
);
const text = anyText(16).filter((value) => !/\p{Surrogate}/u.test(value) && new TextEncoder().encode(value).length <= 64);
const hex = fc.stringMatching(/^[0-9a-f]{64}$/);

describe('links', () => {
  test('have the binary form after any base', () => {
    expect(encodePairingLink(alone)).toMatch(/^svc:\/\/pair#~[A-Za-z0-9_-]+$/);
    expect(encodePairingLink(alone, 'https://app.example/pair?x=1')).toMatch(/^https:\/\/app\.example\/pair\?x=1#~[A-Za-z0-9_-]+$/);
    for (const base of [undefined, 'https://app.example/pair?x=1'])
      expect(decodePairing(` ${encodePairingLink(alone, base)}\n`)).toEqual(alone);
  });

  test('are short: addresses and fingerprints are bytes', () => {
    expect(decodeBinaryForm(encodePairingBytes(alone), 1, 'a test')).toEqual(
      new Map([
        [1, new TextEncoder().encode('pr-home')],
        [2, new TextEncoder().encode('de-1')],
        [5, Uint8Array.of(4, 192, 168, 1, 7, 0x15, 0xd8, 6, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x15, 0xd8)],
        [9, Uint8Array.from({ length: 32 }, (_, i) => Number.parseInt(fingerprint.slice(2 * i, 2 * i + 2), 16))],
      ]),
    );
  });

  test('with a password omit the fingerprint of the device, which the password authenticates; the string has it', () => {
    expect(decodePairing(encodePairingLink({ ...invitation, fingerprint }))).toEqual(invitation);
    expect(decodePairing(encodePairingString({ ...invitation, fingerprint }))).toEqual({ ...invitation, fingerprint });
  });

  test('and strings preserve any pairing', () => {
    const pairing = fc.record(
      {
        productId: fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/),
        deviceId: fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/),
        server: hostPort,
        addresses: fc.array(hostPort, { minLength: 1, maxLength: 4 }),
        password: text,
        sct: text,
        username: text,
      },
      { requiredKeys: ['productId', 'deviceId'] },
    );
    fc.assert(
      fc.property(pairing, hex, hex, (sample, own, station) => {
        const pins = {
          ...(sample.server !== undefined && { serverFingerprint: station }),
          ...(sample.password === undefined && { fingerprint: own }),
        };
        const whole = { ...sample, ...pins };
        if ((whole.addresses?.join().length ?? 0) < 240) expect(decodePairing(encodePairingLink(whole))).toEqual(whole);
        expect(decodePairing(encodePairingString(whole))).toEqual(whole);
      }),
      { numRuns: 200, seed: 1 },
    );
  });

  test('cannot hold more than 255 bytes of addresses', () => {
    const addresses = Array.from({ length: 8 }, (_, i) => `${'x'.repeat(40)}.example:${i + 1}`);
    expect(() => encodePairingLink({ ...alone, addresses })).toThrow('field 5 is longer than 255 bytes');
  });
});

describe('a damaged link', () => {
  const link = encodePairingLink(invitation);

  test('with a wrong, a missing or an added character is refused, and not quoted', () => {
    for (let at = link.indexOf('~') + 1; at < link.length; at++) {
      const other = link[at] === 'A' ? 'B' : 'A';
      for (const broken of [link.slice(0, at) + other + link.slice(at + 1), link.slice(0, at)])
        expect(() => decodePairing(broken)).toThrow(/^not a pairing link: it is cut or mistyped; copy the whole of it again$/);
    }
    expect(() => decodePairing(`${link}A`)).toThrow('cut or mistyped');
  });

  test('of a newer version is refused as such; a newer field is skipped', () => {
    const form = (version: number): string => `svc://pair#${encodeBinaryForm(version, [...fieldsOf(alone), [200, new Uint8Array(3)]])}`;
    expect(() => decodePairing(form(2))).toThrow('it is of a newer version than this svc knows; update svc');
    expect(decodePairing(form(1))).toEqual(alone);
  });

  test.each<[string, BinaryField[], RegExp]>([
    ['no ids', [], /product id must be/],
    ['a short fingerprint', [...ids(), [9, new Uint8Array(31)]], /device \(fp=\) must be 64/],
    ['text that is not UTF-8', [...ids(), [7, Uint8Array.of(0xff)]], /a field of it is damaged/],
    ['an unknown kind of address', [...ids(), [5, Uint8Array.of(7, 1, 2, 3)]], /a field of it is damaged/],
    ['a cut address', [...ids(), [5, Uint8Array.of(4, 192, 168, 1, 7, 0x15)]], /a field of it is damaged/],
    ['an address that is cut after its length', [...ids(), [5, Uint8Array.of(0, 5, 0x61)]], /a field of it is damaged/],
    ['no address', [...ids(), [5, new Uint8Array()]], /a field of it is damaged/],
    ['nine addresses', [...ids(), [5, new Uint8Array(63).map((_, i) => (i % 7 === 0 ? 4 : 1))]], /1 to 8 times/],
    ['two base stations', [...ids(), [3, new Uint8Array(14).map((_, i) => (i % 7 === 0 ? 4 : 1))]], /a field of it is damaged/],
    ['port 0', [...ids(), [3, Uint8Array.of(4, 1, 1, 1, 1, 0, 0)]], /must be host:port/],
  ])('with a valid checksum and %s is refused', (_, fields, problem) => {
    const broken = encodeBinaryForm(1, fields);
    expect(() => decodePairingBytes(broken)).toThrow(problem);
    expect(() => decodePairingBytes(broken)).toThrow(LocalError);
  });
});

test('a join string is refused as such', () => {
  const join = encodeJoinString({ server: 'station.example:4433', productId: 'pr-home', token: new Uint8Array(16) });
  expect(() => decodePairing(join)).toThrow('this is a join string, for a device');
});

function ids(): BinaryField[] {
  return [...fieldsOf({ productId: 'pr-home', deviceId: 'de-1' })];
}

function fieldsOf(pairing: PairingString): BinaryField[] {
  return [...decodeBinaryForm(encodePairingBytes(pairing), 1, 'a test')];
}
