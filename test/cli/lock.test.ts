/** The lock of a device's directory: one process at a time, and a killed one leaves no obstacle. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { lockDirectory } from '../../cli/device-app/lock.ts';
import { TestProcess } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const CHILD = fileURLToPath(new URL('lock-child.mjs', import.meta.url));
const LOCK = fileURLToPath(new URL('../../dist/cli/device-app/lock.js', import.meta.url));
/** More operations than locking needs. */
const MOST = 60;

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

const file = (number: number): string => join(directory, `device.lock.${number}`);
const lockFiles = async (): Promise<string[]> => (await readdir(directory)).filter((name) => name.startsWith('device.lock')).sort();

/** The process named in a lock no longer exists. */
async function deadHolder(): Promise<string> {
  const child = new TestProcess(process.execPath, ['-e', '']);
  await child.succeeded();
  return `${child.pid} -\n`;
}

test('one process at a time holds a directory, and the next one gets it', async () => {
  const unlock = await lockDirectory(directory);
  await expect(lockDirectory(directory)).rejects.toThrow(`in use by process ${process.pid}: stop it first, or give another device`);
  await unlock();
  const again = await lockDirectory(directory);
  await again();
  expect(await lockFiles()).toEqual(['device.lock.2']);
});

test.each([
  ['of a killed process', deadHolder],
  ['of an earlier process with the same number', async () => `${process.pid} another-start\n`],
  ['without a process', async () => 'nonsense'],
  ['that is empty', async () => ''],
])('a lock %s does not count', async (_, content) => {
  await writeFile(file(7), await content());
  const unlock = await lockDirectory(directory);
  expect(await lockFiles()).toEqual(['device.lock.8']);
  expect(await readFile(file(8), 'utf8')).toMatch(new RegExp(`^${process.pid} `));
  await unlock();
});

test('one of several processes takes an abandoned lock', { tags: ['slow'] }, async () => {
  await writeFile(file(1), await deadHolder());
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(directory)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(await lockFiles()).toHaveLength(1);
});

/** At every second operation: the one directory at the odd ones, the other at the even ones. */
const STEP = 2;

describe.each([
  ['fresh', 1, async () => {}],
  ['left behind', 2, async () => writeFile(file(3), await deadHolder())],
] as const)('a %s directory', { tags: ['slow'] }, (_, first, prepare) => {
  const lockElsewhere = (operation: number, signal: NodeJS.Signals): TestProcess =>
    new TestProcess(process.execPath, [CHILD, LOCK, directory, String(operation), signal]);

  /** Calls `round` for file operations in turn, until it reports that none is left. */
  async function atEachOperation(round: (operation: number) => Promise<boolean>): Promise<void> {
    let operation: number = first;
    for (let more = true; more && operation < MOST; operation += STEP) {
      await rm(directory, { recursive: true });
      directory = temporaryDirectory();
      await prepare();
      more = await round(operation);
      expect(await lockFiles(), `at operation ${operation}`).toHaveLength(1);
    }
    expect(operation).toBeGreaterThan(8);
    expect(operation).toBeLessThan(MOST);
  }

  test('can be locked after a kill at any operation', () =>
    atEachOperation(async (operation) => {
      const { signal } = await lockElsewhere(operation, 'SIGKILL').ended;
      await (await lockDirectory(directory))();
      return signal === 'SIGKILL';
    }));

  test('has one holder, whenever another process pauses', () =>
    atEachOperation(async (operation) => {
      const child = lockElsewhere(operation, 'SIGSTOP');
      const stopped = await child.line((line) => line === 'stopped').catch(() => null);
      if (stopped === null) return false;
      const hadIt = child.lines.includes('locked');
      // Twice, so that the numbers advance.
      const first = await lockDirectory(directory).catch(() => null);
      await first?.();
      const second = first === null ? null : await lockDirectory(directory);
      // Repeatedly: the first signal may arrive before it has stopped.
      const again = setInterval(() => child.running && process.kill(child.pid, 'SIGCONT'), 5);
      await child.ended;
      clearInterval(again);
      const outcome = child.lines.filter((line) => line !== 'stopped');
      expect(outcome, `at operation ${operation}`).toEqual([hadIt || second === null ? 'locked' : 'refused']);
      await second?.();
      return true;
    }));
});
