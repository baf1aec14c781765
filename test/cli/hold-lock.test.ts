/** A device on a read-only or full disk: it continues without the lock, and gets it as soon as it can. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { holdLock } from '../../cli/device-app/hold-lock.ts';
import { LocalError } from '../../protocol/errors/index.ts';

const failed = (code: string): LocalError =>
  new LocalError('FAILED', 'cannot write it', { cause: Object.assign(new Error(code), { code }) });
const unlock = vi.fn(async () => {});
const lock = vi.fn<(directory: string) => Promise<() => Promise<void>>>();
const warnings: string[] = [];
const hold = () => holdLock('/data', (text) => warnings.push(text), lock);

beforeEach(() => {
  vi.useFakeTimers();
  warnings.length = 0;
  lock.mockReset();
  unlock.mockClear();
});
afterEach(() => vi.useRealTimers());

test('a writable disk: the lock is held at once, and released', async () => {
  lock.mockResolvedValue(unlock);
  const held = await hold();
  await held.release();
  expect([lock.mock.calls, unlock.mock.calls.length, warnings]).toEqual([[['/data']], 1, []]);
});

test.each(['EROFS', 'ENOSPC', 'EDQUOT', 'EACCES'])('%s: it warns once, tries again, and finally holds it', async (code) => {
  lock.mockRejectedValue(failed(code));
  const held = await hold();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(warnings).toEqual(['/data is not writable: the device serves what it has, and refuses every change']);
  expect(lock.mock.calls.length).toBeGreaterThan(10);
  lock.mockResolvedValue(unlock);
  await vi.advanceTimersByTimeAsync(5_000);
  const { length } = lock.mock.calls;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([lock.mock.calls.length, held.lost.aborted]).toEqual([length, false]);
  await held.release();
  expect(unlock).toHaveBeenCalledOnce();
});

test('another process got it meanwhile: it is lost, for that reason', async () => {
  lock.mockRejectedValue(failed('ENOSPC'));
  const held = await hold();
  const taken = new Error('in use by process 7');
  lock.mockRejectedValue(taken);
  await vi.advanceTimersByTimeAsync(5_000);
  expect([held.lost.aborted, held.lost.reason]).toEqual([true, taken]);
  await held.release();
  expect(unlock).not.toHaveBeenCalled();
});

test('a release before it is held ends the attempts', async () => {
  lock.mockRejectedValue(failed('EROFS'));
  const held = await hold();
  await held.release();
  const { length } = lock.mock.calls;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lock.mock.calls).toHaveLength(length);
});

test('any other error is thrown', async () => {
  lock.mockRejectedValue(failed('EISDIR'));
  await expect(hold()).rejects.toMatchObject({ code: 'FAILED' });
});
