/** When a push is retried: a pure policy, over every status. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PUSH_TIME, parseRetryAfter, retryDelay } from '../../../server/push/retry.ts';

const noHint = (status: number | null) => ({ status, retryAfter: null });

describe('retryDelay', () => {
  test('does not retry an answer below 500 except 429, whatever it asks', () => {
    for (let status = 100; status < 500; status++) {
      if (status === 429) continue;
      expect(retryDelay({ status, retryAfter: 1 }, 1, 0, 0.5)).toBeNull();
    }
  });

  test('waits after 429 as long as it says, else a minute', () => {
    expect(retryDelay({ status: 429, retryAfter: 7_000 }, 1, 0, 0.5)).toBe(7_000);
    expect(retryDelay(noHint(429), 1, 0, 0.5)).toBe(60_000);
  });

  test('waits longer after each 429 that names no time', () => {
    const delays = [1, 2, 3, 20].map((attempts) => retryDelay({ status: 429, retryAfter: 0 }, attempts, 0, 0.5));
    expect(delays).toEqual([500, 1_000, 2_000, 16_000]);
    expect(retryDelay({ status: 429, retryAfter: 20_000 }, 9, 0, 0.5)).toBe(20_000);
  });

  test('does not wait after 429 beyond the deadline', () => {
    expect(retryDelay(noHint(429), 1, 39_999, 0)).toBe(60_000);
    expect(retryDelay(noHint(429), 1, 40_000, 0)).toBeNull();
    expect(retryDelay({ status: 429, retryAfter: 100_000 }, 1, 0, 0)).toBeNull();
  });

  test.each([500, 502, 503, 599, null])('retries after %s within a bound that doubles up to 32 s', (status) => {
    const bounds = [1, 2, 3, 4, 5, 6, 7, 20].map((attempts) => retryDelay(noHint(status), attempts, 0, 0.5)! * 2);
    expect(bounds).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 32_000, 32_000]);
    expect(retryDelay(noHint(status), 5, 0, 0)).toBe(0);
  });

  test('does not retry after 503 before its Retry-After', () => {
    expect(retryDelay({ status: 503, retryAfter: 20_000 }, 1, 0, 0.9)).toBe(20_000);
    expect(retryDelay({ status: 503, retryAfter: 10 }, 1, 0, 0.5)).toBe(500);
  });

  test('never begins an attempt after the deadline', () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 100, max: 599 })),
        fc.option(fc.nat(200_000)),
        fc.integer({ min: 1, max: 50 }),
        fc.nat(120_000),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (status, retryAfter, attempts, elapsed, random) => {
          const delay = retryDelay({ status, retryAfter }, attempts, elapsed, random);
          if (delay !== null) expect(elapsed + delay).toBeLessThan(PUSH_TIME);
        },
      ),
    );
  });
});

describe('parseRetryAfter', () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);

  test.each<[string | undefined, number | null]>([
    [undefined, null],
    ['0', 0],
    ['120', 120_000],
    ['Fri, 02 Jan 2026 03:04:35 GMT', 30_000],
    ['Fri, 02 Jan 2026 03:04:00 GMT', 0],
    ['-1', null],
    ['1.5', null],
    ['soon', null],
    ['2026', 2_026_000],
    ['99999999999999', null],
    ['', null],
  ])('%j is %s', (value, expected) => {
    expect(parseRetryAfter(value, now)).toBe(expected);
  });
});
