/** A lock on a read-only or full disk: its owner continues without it, and gets it as soon as it can. */
import fs, { readdir } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Lock, ownLock } from '../../../platform/node/index.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let directory: string;
const unwritable = vi.fn();
const inUse = (by: string): Error => new Error(`in use by ${by}`);
const own = (options = {}): Promise<Lock> => ownLock(join(directory, 'a.lock'), { inUse, ...options });

/** Attempts to create a file. */
const attempts = vi.fn();

/** A disk that accepts no writes, until the returned function is called. */
function diskFailsWith(code: string): () => void {
  const fails = Object.assign(new Error(code), { code });
  const listen = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
    queueMicrotask(() => this.emit('error', fails));
    return this;
  });
  const { open } = fs;
  const opens = vi.spyOn(fs, 'open').mockImplementation((path, flags, mode) => {
    if (flags !== 'wx') return open(path, flags, mode);
    attempts();
    return Promise.reject(fails);
  });
  syncBuiltinESMExports();
  return () => {
    listen.mockRestore();
    opens.mockRestore();
    syncBuiltinESMExports();
  };
}

/** Lets time pass, with real operations on files in between, until the check passes. */
const eventually = (check: () => unknown) =>
  vi.waitFor(
    async () => {
      await vi.advanceTimersByTimeAsync(5_000);
      return check();
    },
    { interval: 2 },
  );

beforeEach(() => {
  directory = temporaryDirectory();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.clearAllMocks();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  vi.useRealTimers();
});

test.each(['EROFS', 'ENOSPC', 'EDQUOT', 'EACCES'])('%s: it says so once, tries again, and finally holds it', async (code) => {
  const accept = diskFailsWith(code);
  const lock = await own({ unwritable });
  await eventually(() => expect(attempts.mock.calls.length).toBeGreaterThan(3));
  expect([unwritable.mock.calls.length, lock.lost.aborted]).toEqual([1, false]);
  accept();
  await eventually(async () => expect(await readdir(directory)).toHaveLength(1));
  await expect(own()).rejects.toEqual(inUse('this process'));
  await lock.release();
  expect(await readdir(directory)).toEqual([]);
});

test('another process has it: also a disk that accepts no writes is refused', async () => {
  const other = await own();
  diskFailsWith('EROFS');
  await expect(own({ unwritable })).rejects.toEqual(inUse('this process'));
  expect(unwritable).not.toHaveBeenCalled();
  await other.release();
});

test('another process got it meanwhile: it is lost, for that reason', async () => {
  const accept = diskFailsWith('ENOSPC');
  const lock = await own({ unwritable });
  accept();
  const other = await own();
  await eventually(() => expect(lock.lost.reason).toEqual(inUse('this process')));
  await lock.release();
  expect(await readdir(directory)).toHaveLength(1);
  await other.release();
});

test('a release before it is held ends the attempts', async () => {
  diskFailsWith('EROFS');
  await (await own({ unwritable })).release();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(attempts).toHaveBeenCalledOnce();
});

test('any other error is thrown, and also this one where nothing says what to do without the lock', async () => {
  const accept = diskFailsWith('EISDIR');
  await expect(own({ unwritable })).rejects.toMatchObject({ code: 'FAILED' });
  accept();
  diskFailsWith('EROFS');
  await expect(own()).rejects.toMatchObject({ code: 'FAILED' });
});
