/**
 * The examples of RFC 8949 appendix A (table 6, every row): items of our subset decode as the standard says, all others
 * are refused. `simple(24)` as f818 was in RFC 7049 only; RFC 8949 §3.3 calls it not well-formed, so it is refused,
 * too.
 */
import { describe, expect, test } from 'vitest';
import { decode, encode } from '../../../protocol/cbor/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';

const bytes = (hex: string): Uint8Array => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const hexOf = (data: Uint8Array): string => [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

/** Diagnostic notation as a value, encoding in hex. */
const accepted: readonly (readonly [unknown, string])[] = [
  [0, '00'],
  [1, '01'],
  [10, '0a'],
  [23, '17'],
  [24, '1818'],
  [25, '1819'],
  [100, '1864'],
  [1000, '1903e8'],
  [1000000, '1a000f4240'],
  [1000000000000, '1b000000e8d4a51000'],
  [-1, '20'],
  [-10, '29'],
  [-100, '3863'],
  [-1000, '3903e7'],
  [0.0, 'f90000'],
  [-0.0, 'f98000'],
  [1.0, 'f93c00'],
  [1.1, 'fb3ff199999999999a'],
  [1.5, 'f93e00'],
  [65504.0, 'f97bff'],
  [100000.0, 'fa47c35000'],
  [3.4028234663852886e38, 'fa7f7fffff'],
  [1.0e300, 'fb7e37e43c8800759c'],
  [2 ** -24, 'f90001'],
  [0.00006103515625, 'f90400'],
  [-4.0, 'f9c400'],
  [-4.1, 'fbc010666666666666'],
  [Number.POSITIVE_INFINITY, 'f97c00'],
  [Number.NaN, 'f97e00'],
  [Number.NEGATIVE_INFINITY, 'f9fc00'],
  [Number.POSITIVE_INFINITY, 'fa7f800000'],
  [Number.NaN, 'fa7fc00000'],
  [Number.NEGATIVE_INFINITY, 'faff800000'],
  [Number.POSITIVE_INFINITY, 'fb7ff0000000000000'],
  [Number.NaN, 'fb7ff8000000000000'],
  [Number.NEGATIVE_INFINITY, 'fbfff0000000000000'],
  [false, 'f4'],
  [true, 'f5'],
  [null, 'f6'],
  [new Uint8Array(0), '40'],
  [Uint8Array.of(1, 2, 3, 4), '4401020304'],
  ['', '60'],
  ['a', '6161'],
  ['IETF', '6449455446'],
  ['"\\', '62225c'],
  ['\u00fc', '62c3bc'],
  ['\u6c34', '63e6b0b4'],
  ['\ud800\udd51', '64f0908591'],
  [[], '80'],
  [[1, 2, 3], '83010203'],
  [[1, [2, 3], [4, 5]], '8301820203820405'],
  [count(25), '98190102030405060708090a0b0c0d0e0f101112131415161718181819'],
  [{}, 'a0'],
  [{ a: 1, b: [2, 3] }, 'a26161016162820203'],
  [['a', { b: 'c' }], '826161a161626163'],
  [{ a: 'A', b: 'B', c: 'C', d: 'D', e: 'E' }, 'a56161614161626142616361436164614461656145'],
  [Uint8Array.of(1, 2, 3, 4, 5), '5f42010243030405ff'],
  ['streaming', '7f657374726561646d696e67ff'],
  [[], '9fff'],
  [[1, [2, 3], [4, 5]], '9f018202039f0405ffff'],
  [[1, [2, 3], [4, 5]], '9f01820203820405ff'],
  [[1, [2, 3], [4, 5]], '83018202039f0405ff'],
  [[1, [2, 3], [4, 5]], '83019f0203ff820405'],
  [count(25), '9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff'],
  [{ a: 1, b: [2, 3] }, 'bf61610161629f0203ffff'],
  [['a', { b: 'c' }], '826161bf61626163ff'],
  [{ Fun: true, Amt: -2 }, 'bf6346756ef563416d7421ff'],
];

/** Why the item is refused, encoding in hex. */
const refused: readonly (readonly [string, string])[] = [
  ['18446744073709551615, beyond 53 bits', '1bffffffffffffffff'],
  ['18446744073709551616, a bignum tag', 'c249010000000000000000'],
  ['-18446744073709551616, beyond 53 bits', '3bffffffffffffffff'],
  ['-18446744073709551617, a bignum tag', 'c349010000000000000000'],
  ['undefined', 'f7'],
  ['simple(16)', 'f0'],
  ['simple(24), RFC 7049 only', 'f818'],
  ['simple(255)', 'f8ff'],
  ['0("2013-03-21T20:04:00Z")', 'c074323031332d30332d32315432303a30343a30305a'],
  ['1(1363896240)', 'c11a514b67b0'],
  ['1(1363896240.5)', 'c1fb41d452d9ec200000'],
  ["23(h'01020304')", 'd74401020304'],
  ["24(h'6449455446')", 'd818456449455446'],
  ['32("http://www.example.com")', 'd82076687474703a2f2f7777772e6578616d706c652e636f6d'],
  ['{1: 2, 3: 4}, keys that are not text', 'a201020304'],
];

describe('RFC 8949 appendix A', () => {
  test('has 81 rows', () => {
    expect(new Set([...accepted, ...refused].map(([, hex]) => hex).filter((hex) => hex !== 'f818')).size).toBe(81);
  });

  test.each(accepted)('%o is %s', (value, hex) => {
    expect(decode(bytes(hex))).toEqual(value);
  });

  test.each(accepted)('%o survives a round trip', (value) => {
    // Minus zero is written as the integer 0.
    expect(decode(encode(value as never))).toEqual(Object.is(value, -0) ? 0 : value);
  });

  test.each(refused)('%s is refused (%s)', (_, hex) => {
    expect(() => decode(bytes(hex))).toThrow(RemoteError);
  });

  const definite = accepted.filter(([, hex]) => !/^(f9|fa|[579b]f)|9f|bf/.test(hex));
  test.each(definite)('%o is written as %s', (value, hex) => {
    expect(hexOf(encode(value as never))).toBe(hex);
  });
});
