/** How many passwords can be tried, by which classes of clients, and which clients are not hindered. */
import { describe, expect, it } from 'vitest';
import { type AttemptClass, PasswordThrottle } from '../../../device/password/throttle.ts';
import { nativeHost } from '../../support/crypto.ts';

const DAY = 86_400_000;
const SECOND = 1000;

function throttle(): PasswordThrottle {
  const { hmacSha256 } = nativeHost(1);
  return new PasswordThrottle((text) => hmacSha256(Uint8Array.of(1), new TextEncoder().encode(text))[0]!);
}

/** Tries from `start` every `step` ms, `count` times. @returns the times of the attempts that were admitted */
function attempts(throttled: PasswordThrottle, kind: AttemptClass, name: string, start: number, step: number, count: number): number[] {
  const times: number[] = [];
  for (let i = 0, now = start; i < count; i++, now += step) if (throttled.charge(kind, name, now) !== null) times.push(now);
  return times;
}

describe('attempts on one name', () => {
  it('five are free, then each wait is twice the last, up to 900 s', () => {
    const times = attempts(throttle(), 'local', 'owner', 0, SECOND, 5000);
    const waits = times.slice(1).map((time, i) => (time - times[i]!) / SECOND);
    expect(waits.slice(0, 15)).toEqual([1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900]);
    expect(Math.max(...waits)).toBe(900);
  });

  it.each([
    ['remote', 100],
    ['local', 120],
    ['paired', 120],
  ] as const)('10,000 guesses spread over a day test few passwords: %s', (kind, most) => {
    const throttled = throttle();
    const tried = attempts(throttled, kind, 'owner', 0, DAY / 10_000, 10_000).length;
    expect(tried).toBeGreaterThan(80);
    expect(tried).toBeLessThanOrEqual(most);
  });

  it('are at most 120 in any 24 hours', { tags: ['slow'] }, () => {
    const times = attempts(throttle(), 'remote', 'owner', 0, 5 * SECOND, (3 * DAY) / (5 * SECOND));
    const within = times.map((start) => times.filter((time) => time >= start && time < start + DAY).length);
    expect(Math.max(...within)).toBeLessThanOrEqual(120);
  });

  it('are forgiven one per 900 s, so that a typing error does not count for ever', () => {
    const throttled = throttle();
    attempts(throttled, 'remote', 'owner', 0, SECOND, 60);
    expect(attempts(throttled, 'remote', 'owner', DAY / 2, SECOND, 5)).toHaveLength(5);
  });

  it('cost nothing when they were right', () => {
    const throttled = throttle();
    for (let i = 0; i < 100; i++) throttled.charge('remote', 'owner', i * SECOND)?.giveBack();
    expect(attempts(throttled, 'remote', 'owner', 100 * SECOND, SECOND, 5)).toHaveLength(5);
  });

  it('are not forgiven by a right one', () => {
    const throttled = throttle();
    attempts(throttled, 'remote', 'owner', 0, SECOND, 4);
    throttled.charge('remote', 'owner', 4 * SECOND)!.giveBack();
    expect(attempts(throttled, 'remote', 'owner', 5 * SECOND, 10, 50)).toHaveLength(1);
  });

  it('side by side are charged before they are evaluated', () => {
    expect(attempts(throttle(), 'remote', 'owner', 0, 0, 1000)).toHaveLength(5);
  });
});

describe('attempts on all names', () => {
  it('are ten in a burst, then one a second', () => {
    const throttled = throttle();
    const tried = (now: number) =>
      Array.from({ length: 1000 }, (_, i) => throttled.charge('remote', `user${i}-${now}`, now)).filter(Boolean);
    expect(tried(0)).toHaveLength(10);
    expect(tried(SECOND)).toHaveLength(1);
    expect(tried(SECOND + 10)).toHaveLength(0);
  });

  it('do not reduce the burst when they are right', () => {
    const throttled = throttle();
    for (let i = 0; i < 100; i++) {
      const charge = throttled.charge('remote', `user${i}`, 0);
      expect(charge, `attempt ${i}`).not.toBeNull();
      charge?.giveBack();
    }
  });

  it('begin at most five runs a second, and none where an attempt would be refused', () => {
    const throttled = throttle();
    const begun = (name: string, now: number) =>
      Array.from({ length: 20 }, () => throttled.begin('remote', name, now)).filter(Boolean).length;
    expect(begun('owner', 0)).toBe(5);
    expect(begun('owner', SECOND)).toBe(5);
    attempts(throttled, 'remote', 'owner', 2 * SECOND, 0, 5);
    expect(begun('owner', 2 * SECOND)).toBe(0);
    expect(begun('guest', 2 * SECOND)).toBe(5);
  });
});

describe('independence:', () => {
  it.each([
    ['a stranger far away', 'remote', ['local', 'paired']],
    ['a guest in the house', 'local', ['paired', 'remote']],
  ] as const)('%s locks out no client of another class, whatever names are tried', { tags: ['slow'] }, (_, stranger, others) => {
    const throttled = throttle();
    for (let now = 0, i = 0; now < DAY / 4; now += SECOND, i++) throttled.charge(stranger, `user${i % 5000}`, now);
    for (const kind of others) {
      expect(throttled.begin(kind, 'owner', DAY / 4)).toBe(true);
      expect(throttled.charge(kind, 'owner', DAY / 4)).not.toBe(null);
    }
  });

  it('names without a user are counted like those with one: only the name counts', () => {
    const throttled = throttle();
    const [owner, nobody] = ['owner', 'nobody'].map((name) => attempts(throttled, 'remote', name, 0, 100, 0).length);
    expect(owner).toBe(nobody);
    const times = ['owner', 'nobody'].map((name) => attempts(throttle(), 'remote', name, 0, SECOND, 3000));
    expect(times[0]).toEqual(times[1]);
  });
});
