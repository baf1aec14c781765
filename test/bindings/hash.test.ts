/**
 * SHA-256 and HMAC of the core compared with `node:crypto` at each boundary of blocks and pieces. Published vectors:
 * `test/platform/crypto.test.ts`.
 */
import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Core } from '../../bindings/index.ts';
import { seededBytes } from '../support/crypto.ts';

const core = Core.create();
const { hash } = core;
const random = seededBytes(180);

/** Around the ends of a block, of the padding, and of the core's buffer. */
const lengths = [...Array.from({ length: 200 }, (_, length) => length), 2047, 2048, 2049, 4095, 4096, 4097, 65_000];

function native(key: Uint8Array | null, bytes: Uint8Array): string {
  return (key === null ? createHash('sha256') : createHmac('sha256', key)).update(bytes).digest('hex');
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('like node:crypto', () => {
  it('SHA-256 of every length', () => {
    for (const length of lengths) {
      const bytes = random(length);
      expect(hex(hash.sha256(bytes)), `${length} bytes`).toBe(native(null, bytes));
    }
  });

  it('HMAC with a key of every length, of every length', () => {
    for (const [index, length] of lengths.entries()) {
      const [key, bytes] = [random(length), random(lengths[lengths.length - 1 - index]!)];
      expect(hex(hash.hmacSha256(key, bytes)), `a key of ${length} bytes`).toBe(native(key, bytes));
    }
  });

  it('in any split', { tags: ['slow'] }, () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), parts, (key, pieces) => {
        const whole = Buffer.concat(pieces);
        expect(hex(hash.sha256(...pieces))).toBe(native(null, whole));
        expect(hex(hash.hmacSha256(key, ...pieces))).toBe(native(key, whole));
      }),
      { numRuns: 300, seed: 4 },
    );
  });
});

it('returns new arrays and leaves its arguments unchanged', () => {
  const [key, bytes] = [random(32), random(100)];
  const [keyBefore, bytesBefore] = [key.slice(), bytes.slice()];
  const first = hash.hmacSha256(key, bytes);
  const kept = first.slice();
  hash.sha256(bytes);
  hash.hmacSha256(random(100), bytes);
  expect([first, key, bytes]).toEqual([kept, keyBefore, bytesBefore]);
});

it.each([
  ['a hash', (key: Uint8Array, text: Uint8Array) => hash.sha256(key, text)],
  ['an HMAC', (key: Uint8Array, text: Uint8Array) => hash.hmacSha256(key, text)],
  ['an HMAC with a long key', (key: Uint8Array, text: Uint8Array) => hash.hmacSha256(Buffer.concat([key, text]), text)],
])('leaves nothing of %s in the core', (_, run) => {
  const before = core.buffer.slice();
  for (const length of [10, 55, 64, 100, 2048, 5000]) {
    run(random(32), random(length));
    expect(Buffer.compare(core.buffer, before), `${length} bytes`).toBe(0);
  }
});
