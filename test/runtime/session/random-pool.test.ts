/** Bytes from the pool are those of the platform, each returned once. */
import { expect, it } from 'vitest';
import type { CryptoProvider } from '../../../protocol/crypto-provider.ts';
import { RandomPool } from '../../../runtime/session/random-pool.ts';

it('returns each byte of the platform once, in new arrays, and keeps none that it returned', () => {
  const drawn: Uint8Array[] = [];
  const crypto = {
    randomBytes: (length: number) => {
      const bytes = Uint8Array.from({ length }, (_, index) => 1 + ((drawn.length * 7 + index) % 255));
      drawn.push(bytes);
      return bytes;
    },
  } as unknown as CryptoProvider;
  const pool = new RandomPool(crypto);
  const expected: number[] = [];
  const taken: number[] = [];
  for (const length of [8, 1, 500, 8, 504, 512, 0, 3]) {
    const bytes = pool.take(length);
    expect(bytes.buffer.byteLength).toBe(length);
    taken.push(...bytes);
  }
  // 509 of the first 512 bytes, then 8 + 504, 512, 3 of the next draws.
  const whole = (draw: number, count: number) => Array.from({ length: count }, (_, index) => 1 + ((draw * 7 + index) % 255));
  expected.push(...whole(0, 509), ...whole(1, 512), ...whole(2, 512), ...whole(3, 3));
  expect(taken).toEqual(expected);
  expect(drawn.slice(1, 3).every((bytes) => bytes.every((byte) => byte === 0))).toBe(true);
});
