/**
 * `collectAfterStart` in this process, its intervals in virtual time.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { collectAfterStart } from '../../cli/frame/collect.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** An object reached by a WeakRef stays until the turn ends. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('collectAfterStart frees unreferenced objects, three times, and leaves no collector to others', async () => {
  collectAfterStart();
  for (let left = 2; left >= 0; left--) {
    const garbage = new WeakRef({ of: 'the start' });
    await turn();
    vi.advanceTimersByTime(2999);
    // By the timer: V8 may collect by itself at any moment.
    expect(vi.getTimerCount()).toBe(left + 1);
    await turn();
    vi.advanceTimersByTime(1);
    await turn();
    expect(garbage.deref()).toBeUndefined();
    expect(vi.getTimerCount()).toBe(left);
  }
  expect('gc' in globalThis).toBe(false);
});
