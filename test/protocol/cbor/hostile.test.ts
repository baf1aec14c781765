/** Hostile and broken CBOR is refused with RemoteError PARSE, in time bounded by its size. */
import { describe, expect, test } from 'vitest';
import { decode, encode } from '../../../protocol/cbor/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { seeds } from '../../support/tiered.ts';
import { randomBytes, seededRandom } from '../coap/pair.ts';
import { parseError } from '../parse-error.ts';

const bytes = (hex: string): Uint8Array => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const decodeError = (data: Uint8Array): string => parseError(() => decode(data));

const nested = (depth: number, open: number): Uint8Array => new Uint8Array(depth + 1).fill(open, 0, depth);

describe('hostile CBOR', () => {
  test.each([
    ['a record definition (tag 0xdfff)', 'd9dfff8419e0008161611901a401'],
    ['record definitions (tag 0xdffe)', 'd9dffe82d9e0008161610101'],
    ['a use of a record (tag 0xe000)', 'd9e0008101'],
    ['bundled strings (tag 0xdff9)', 'd9dff9821a000000056161'],
    ['a shared value (tag 28)', 'd81c81d81d00'],
    ['a reference to a shared value (tag 29)', '82d81c80d81d00'],
    ['a packed table (tag 51)', 'd8338480808000'],
    ['a packed reference (tag 6)', 'c600'],
    ['an explicit map (tag 259)', 'd90103a0'],
    ['a set (tag 258)', 'd9010280'],
    ['a regular expression (tag 27)', 'd81b83665265674578706161616167'],
    ['a typed array (tag 64)', 'd84041ff'],
    ['a tag of eight bytes', 'dbffffffffffffffff00'],
    ['the self-described tag', 'd9d9f700'],
  ])('%s is refused as a tag', (_, hex) => {
    expect(decodeError(bytes(hex))).toMatch('a tag');
  });

  test('a packed simple reference is refused as a simple value', () => {
    expect(decodeError(bytes('e0'))).toMatch('a simple value');
  });

  test.each([
    ['array of 2^32 - 1', '9affffffff'],
    ['array of 2^64 - 1', '9bffffffffffffffff'],
    ['map of 2^32 - 1', 'baffffffff'],
    ['map of 2^63', 'bb8000000000000000'],
    ['bytes of 2^32 - 1', '5affffffff'],
    ['bytes of 2^64 - 1', '5bffffffffffffffff'],
    ['text of 2^31', '7a80000000'],
    ['array with one item of two', '8200'],
    ['map with a key but no value', 'a16161'],
    ['chunk longer than the rest', '5f5a7fffffff00ff'],
  ])('%s ends early', (_, hex) => {
    expect(decodeError(bytes(hex))).toMatch('an early end');
  });

  test.each([
    { open: 0x81, name: 'arrays', as: 'too much nesting' },
    { open: 0x9f, name: 'indefinite arrays', as: 'too much nesting' },
    { open: 0xc1, name: 'tags', as: 'a tag' },
    { open: 0xa1, name: 'maps as keys', as: 'a key that is not text' },
  ])('100,000 nested $name are refused: $as', ({ open, as }) => {
    expect(decodeError(nested(100_000, open))).toMatch(as);
  });

  test('sixteen levels are decoded and seventeen are refused', () => {
    expect(JSON.stringify(decode(nested(16, 0x81)))).toBe(`${'['.repeat(16)}0${']'.repeat(16)}`);
    expect(decodeError(nested(17, 0x81))).toMatch('too much nesting');
    expect(() => decode(nested(5, 0x81), { depth: 4 })).toThrow('too much nesting');
  });

  test.each([
    ['a key twice', 'a2616101616102', 'a key twice'],
    ['a key twice in an indefinite map', 'bf616101616102ff', 'a key twice'],
    ['a key twice, once in chunks', 'a2626162017f61616162ff02', 'a key twice'],
    ['a key twice, once with a long length', 'a2616101780161'.concat('02'), 'a key twice'],
    ['the key __proto__', 'a1695f5f70726f746f5f5fa0', 'the key __proto__'],
    ['a number as key', 'a10001', 'a key that is not text'],
    ['bytes as key', 'a1416101', 'a key that is not text'],
    ['an array as key', 'a18001', 'a key that is not text'],
    ['null as key', 'a1f601', 'a key that is not text'],
    ['a break as key of a definite map', 'a1ff00', 'a key that is not text'],
    ['a break as value', 'bf6161ff', 'a break outside'],
    ['a break alone', 'ff', 'a break outside'],
    ['a break in a definite array', '81ff', 'a break outside'],
    ['text with a broken sequence', '62c328', 'not UTF-8'],
    ['text with an overlong slash', '62c0af', 'not UTF-8'],
    ['text with a surrogate', '63eda080', 'not UTF-8'],
    ['text beyond U+10FFFF', '64f4908080', 'not UTF-8'],
    ['text cut in a character', '61c3', 'not UTF-8'],
    ['chunks that each cut a character', '7f61c361bcff', 'not UTF-8'],
    ['a key that is not UTF-8', 'a161ff00', 'not UTF-8'],
    ['a chunk of text in bytes', '5f6161ff', 'a chunk of another type'],
    ['a chunk of bytes in text', '7f4161ff', 'a chunk of another type'],
    ['indefinite chunks in each other', '5f5f4100ffff', 'a chunk of another type'],
    ['reserved length 28', '1c', 'a reserved length'],
    ['reserved length 29 of an array', '9d', 'a reserved length'],
    ['reserved length 30 of text', '7e', 'a reserved length'],
    ['an indefinite integer', '1f', 'a reserved length'],
    ['an indefinite negative integer', '3f', 'a reserved length'],
    ['simple value 0', 'e0', 'a simple value'],
    ['simple value 32', 'f820', 'a simple value'],
    ['false in two bytes', 'f814', 'a simple value'],
    ['reserved simple 28', 'fc', 'a simple value'],
    ['two items', '0000', 'bytes after the item'],
    ['a byte after a map', 'a000', 'bytes after the item'],
    ['nothing', '', 'an early end'],
    ['2^53', '1b0020000000000000', 'more than 53 bits'],
    ['-2^53', '3b001fffffffffffff', 'more than 53 bits'],
  ])('%s is refused', (_, hex, reason) => {
    expect(decodeError(bytes(hex))).toMatch(reason);
  });

  test('the largest integers of 53 bits are decoded', () => {
    expect(decode(bytes('1b001fffffffffffff'))).toBe(Number.MAX_SAFE_INTEGER);
    expect(decode(bytes('3b001ffffffffffffe'))).toBe(Number.MIN_SAFE_INTEGER);
  });

  test('counts and sizes above the limits are refused', () => {
    expect(() => decode(encode(Array.from({ length: 100 }, () => 0)), { items: 100 })).toThrow('too many items');
    expect(decode(encode(Array.from({ length: 99 }, () => 0)), { items: 100 })).toHaveLength(99);
    expect(() => decode(encode('x'.repeat(2 ** 20)))).toThrow('too long');
    expect(decodeError(encode(Array.from({ length: 65_536 }, () => 0)))).toMatch('too many items');
  });

  test('names of prototype members are plain keys', () => {
    const decoded = decode(encode({ constructor: 1, toString: 2, hasOwnProperty: 3 })) as Record<string, unknown>;
    expect(Object.entries(decoded)).toEqual([
      ['constructor', 1],
      ['toString', 2],
      ['hasOwnProperty', 3],
    ]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test('a message cut anywhere is refused', () => {
    const whole = encode({ a: [1, 2 ** 40, -5.5, 'text', 'y'.repeat(300)], b: { c: new Uint8Array(70), d: null }, e: true });
    for (let length = 0; length < whole.length; length++) decodeError(whole.subarray(0, length));
  });

  test('a decoded byte string does not share memory with the message', () => {
    const message = encode({ a: Uint8Array.of(1, 2, 3) });
    const decoded = decode(message) as { a: Uint8Array };
    message.fill(0);
    expect(decoded.a).toEqual(Uint8Array.of(1, 2, 3));
    expect(Object.keys(message)).not.toContain('dataView');
  });
});

describe.each(seeds(1, 2))('seed %i', (seed) => {
  const random = seededRandom(seed);
  const readable = (data: Uint8Array): void => {
    try {
      const value = decode(data);
      // A decoded item can be encoded, and then decodes to the same.
      expect(decode(encode(value as never))).toEqual(value);
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
    }
  };

  test('random bytes raise only remote errors', () => {
    for (let i = 0; i < 3_000; i++) readable(randomBytes(random, random(64)));
  });

  test('mutated messages raise only remote errors', { tags: ['slow'] }, () => {
    const whole = encode({
      Status: 0,
      KeepAlive: { Interval: 25_000, List: ['a', 'b', -1, 1e10, 0.5, null, true] },
      Route: new Uint8Array(8),
      é: 'ü',
    });
    for (let i = 0; i < 3_000; i++) {
      const data = whole.slice();
      for (let j = random(4); j >= 0; j--) data[random(data.length)] = random(256);
      readable(data);
    }
  });
});
