/** Back-off: spread and bounds. */
import { describe, expect, it } from 'vitest';
import { Backoff, SlowBackoff } from '../../../runtime/station/backoff.ts';
import { nobleHost, seededBytes } from '../../support/crypto.ts';

/** A crypto provider whose randomness is all `byte`. */
function constant(byte: number) {
  return { ...nobleHost(1), randomBytes: (length: number) => new Uint8Array(length).fill(byte) };
}

describe('Backoff', () => {
  it('doubles its ceiling from 250 ms to 30 s and stays there', () => {
    const backoff = new Backoff(constant(0xff)); // practically 1
    const delays = Array.from({ length: 12 }, () => Math.round(backoff.next()));
    expect(delays).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it('is uniform between 0 and the ceiling', () => {
    const backoff = new Backoff({ ...nobleHost(1), randomBytes: seededBytes(5) });
    for (let i = 0; i < 8; i++) backoff.next();
    const delays = Array.from({ length: 4000 }, () => backoff.next());
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length;
    expect(Math.min(...delays)).toBeLessThan(300);
    expect(Math.max(...delays)).toBeGreaterThan(29_700);
    expect(mean).toBeGreaterThan(14_300);
    expect(mean).toBeLessThan(15_700);
  });

  it('starts again after reset', () => {
    const backoff = new Backoff(constant(0xff));
    for (let i = 0; i < 5; i++) backoff.next();
    backoff.reset();
    expect(Math.round(backoff.next())).toBe(250);
  });
});

describe('SlowBackoff', () => {
  it('grows from 10 s to 1 h and is never shorter than its first delay', () => {
    const slow = new SlowBackoff(constant(0));
    expect(Array.from({ length: 11 }, () => slow.next())).toEqual(
      [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600].map((seconds) => seconds * 1000),
    );
  });

  it('spreads by a quarter, within 1 h', () => {
    const slow = new SlowBackoff(constant(0xff));
    expect(Math.round(slow.next())).toBe(12_500);
    for (let i = 0; i < 20; i++) expect(slow.next()).toBeLessThanOrEqual(3_600_000);
  });

  it('takes a longer first delay, as after being replaced', () => {
    const slow = new SlowBackoff(constant(0));
    expect([slow.next(60_000), slow.next(60_000), slow.next(60_000)]).toEqual([60_000, 120_000, 240_000]);
    slow.reset();
    expect(slow.current).toBe(0);
    expect(slow.next()).toBe(10_000);
  });
});
