/** The CBOR codec: round trips, exact bytes, and what it refuses to encode. */
import { decode as decodeWithCborX } from 'cbor-x';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decode, encode } from '../../../protocol/cbor/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { anyText } from '../../support/text.ts';

const text = anyText(200);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthIdentifier: 'cbor' },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.integer(),
    fc.double(),
    text,
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie('value'), { maxLength: 30, depthIdentifier: 'cbor' }),
    fc.dictionary(
      text.filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 30, noNullPrototype: true, depthIdentifier: 'cbor' },
    ),
  ),
}));

/** Encodes an item with every string and container of indefinite length and every integer in 8 bytes. */
function indefinite(item: unknown): number[] {
  if (typeof item === 'string') {
    const characters = [...item].map((character) => [...new TextEncoder().encode(character)]);
    return [0x7f, 0x60, ...characters.flatMap((character) => [0x60 + character.length, ...character]), 0xff];
  }
  if (item instanceof Uint8Array) return [0x5f, ...[...item].flatMap((byte) => [0x58, 1, byte]), 0xff];
  if (Array.isArray(item)) return [0x9f, ...item.flatMap(indefinite), 0xff];
  if (typeof item === 'object' && item !== null) return [0xbf, ...Object.entries(item).flatMap((entry) => entry.flatMap(indefinite)), 0xff];
  if (typeof item !== 'number' || !Number.isSafeInteger(item)) return [...encode(item as never)];
  const head = new DataView(new ArrayBuffer(9));
  head.setUint8(0, item < 0 ? 0x3b : 0x1b);
  head.setBigUint64(1, item < 0 ? -1n - BigInt(item) : BigInt(item));
  return [...new Uint8Array(head.buffer)];
}

describe('CBOR', () => {
  test('any plain value survives a round trip', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(value, (item) => {
        const decoded = decode(encode(item as never));
        if (!Object.is(item, -0)) expect(plain(decoded)).toEqual(plain(item));
      }),
      { numRuns: 1_000, seed: 1 },
    );
  });

  test('a second implementation decodes what is encoded', () => {
    fc.assert(
      fc.property(value, (item) => {
        expect(plain(decodeWithCborX(encode(item as never)))).toEqual(plain(item));
      }),
      { numRuns: 1_000, seed: 1 },
    );
  });

  test.each([
    [23, [23]],
    [24, [0x18, 24]],
    [255, [0x18, 255]],
    [256, [0x19, 1, 0]],
    [65_535, [0x19, 255, 255]],
    [65_536, [0x1a, 0, 1, 0, 0]],
    [2 ** 32 - 1, [0x1a, 255, 255, 255, 255]],
    [2 ** 32, [0x1b, 0, 0, 0, 1, 0, 0, 0, 0]],
    [-24, [0x37]],
    [-25, [0x38, 24]],
    [-256, [0x38, 255]],
    [-257, [0x39, 1, 0]],
    [-(2 ** 16), [0x39, 255, 255]],
    [-(2 ** 32), [0x3a, 255, 255, 255, 255]],
    [-(2 ** 32) - 1, [0x3b, 0, 0, 0, 1, 0, 0, 0, 0]],
    [-Number.MAX_SAFE_INTEGER, [0x3b, 0, 0x1f, 255, 255, 255, 255, 255, 254]],
    [2 ** 53, [0xfb, 0x43, 0x40, 0, 0, 0, 0, 0, 0]],
    [-0, [0]],
  ])('the number %d has its shortest form', (number, bytes) => {
    expect([...encode(number)]).toEqual(bytes);
  });

  test('a list with a hole is refused', () => {
    // biome-ignore lint/suspicious/noSparseArray: it is what is tested
    expect(() => encode([1, , 2] as never)).toThrow(LocalError);
  });

  test.each([0, 1, 55, 62, 63, 64, 65, 200, 1_000, 5_000])('%i bytes that outgrow the first buffer are encoded whole', (length) => {
    const item = { before: 'x', bytes: Uint8Array.from({ length }, (_, index) => index), after: [length] };
    expect(decode(encode(item))).toEqual(item);
  });

  test('all forms of lengths and integers decode alike', () => {
    fc.assert(
      fc.property(value, (item) => {
        expect(plain(decode(Uint8Array.from(indefinite(item))))).toEqual(plain(item));
      }),
      { numRuns: 500, seed: 1 },
    );
  });

  test.each(Array.from({ length: 12 }, (_, i) => 58 + i))('a byte order mark before %i bytes of text is kept', (length) => {
    const marked = `\ufeff${'x'.repeat(length)}`;
    expect(decode(encode(marked))).toBe(marked);
    expect(decode(encode(`\ufeff${marked}`))).toBe(`\ufeff${marked}`);
  });

  test('undefined entries are left out', () => {
    expect(decode(encode({ a: undefined, b: 1 }))).toEqual({ b: 1 });
  });

  test('a Buffer is encoded as bytes', () => {
    expect([...encode(Buffer.from([1, 2]))]).toEqual([0x42, 1, 2]);
  });

  test('encoding another value does not change an earlier result', () => {
    const first = encode({ a: 'first' });
    const copy = first.slice();
    encode({ b: 'second and longer' });
    expect(first).toEqual(copy);
    expect(first.constructor).toBe(Uint8Array);
    expect(first.buffer.byteLength).toBe(first.length);
  });

  test.each([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a typed array of words', new Uint16Array(1)],
    ['undefined in an array', [undefined]],
    ['a hole in an array', new Array(1)],
    ['a lone surrogate', 'a\ud800'],
    ['a lone surrogate as key', { '\udc00': 1 }],
    ['the key __proto__', JSON.parse('{"__proto__": 1}')],
    ['17 levels', JSON.parse(`${'['.repeat(17)}${']'.repeat(17)}`)],
    ['an instance', new (class Thing {})()],
  ])('%s cannot be encoded', (_, item) => {
    expect(() => encode(item as never)).toThrow(LocalError);
  });

  test('a cycle cannot be encoded', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => encode(cycle as never)).toThrow('more than 16 levels');
  });
});

/** Makes values comparable: -0 as 0, objects as entries, so key order and prototypes do not matter. */
function plain(item: unknown): unknown {
  // The second implementation returns these beyond 32 bits.
  if (typeof item === 'bigint') return Number(item);
  if (Object.is(item, -0)) return 0;
  if (Array.isArray(item)) return item.map(plain);
  if (item instanceof Uint8Array) return `bytes ${[...item].join(' ')}`;
  if (typeof item === 'object' && item !== null) return new Map(Object.entries(item).map(([key, entry]) => [key, plain(entry)]));
  return item;
}
