/**
 * One process per directory. The lock is a numbered file, `device.lock.<n>`, with a line `<pid> <start>`. The highest
 * number counts: the process named in it holds the directory while it is alive.
 *
 * - A process that finds the highest one dead or free creates the next number. The system checks in the same step that
 *   the file does not exist, so only one process succeeds. One that is killed at any moment leaves the lock as it was,
 *   or its own, which the next process finds dead.
 * - Numbers only grow: the newest file stays when it is released. A process with an old view of the files may still
 *   create an old number; it then sees the higher one, and removes its own.
 *
 * The line is that of `../frame/process-mark.ts`.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile, fileError, readFileIfPresent, replaceFile } from '../../transport/node/index.ts';
import { CommandError } from '../frame/errors.ts';
import { livingProcess, thisProcess } from '../frame/process-mark.ts';

const LOCK_FILE = /^device\.lock\.(\d{1,15})$/;
const FREE = 'free\n';

interface LockFile {
  readonly path: string;
  readonly number: number;
}

/**
 * Locks the directory for this process. Returns the function that releases it.
 * @throws CommandError naming the process that holds it; LocalError FAILED when the directory cannot be read or written
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const own = await thisProcess();
  for (;;) {
    const last = await newest(directory);
    await refuseLiving(directory, last);
    const number = (last?.number ?? 0) + 1;
    const path = join(directory, `device.lock.${number}`);
    if (!(await createFile(path, own))) continue;
    if ((await newest(directory))?.number === number) {
      await removeOlder(directory, number);
      // This may fail, for example on a full disk: the lock of an ended process does not count.
      return () => replaceFile(path, FREE).catch(() => {});
    }
    await rm(path, { force: true });
  }
}

async function newest(directory: string): Promise<LockFile | undefined> {
  return (await lockFiles(directory)).reduce<LockFile | undefined>(
    (last, file) => (last === undefined || file.number > last.number ? file : last),
    undefined,
  );
}

async function lockFiles(directory: string): Promise<LockFile[]> {
  try {
    return (await readdir(directory)).flatMap((name) => {
      const match = LOCK_FILE.exec(name);
      return match === null ? [] : [{ path: join(directory, name), number: Number(match[1]) }];
    });
  } catch (error) {
    throw fileError('cannot read', directory, error);
  }
}

async function refuseLiving(directory: string, file: LockFile | undefined): Promise<void> {
  const bytes = file === undefined ? undefined : await readFileIfPresent(file.path);
  if (file === undefined || bytes === undefined) return;
  const pid = await livingProcess(new TextDecoder().decode(bytes));
  if (pid === null) return;
  throw new CommandError(
    `${directory} is in use by process ${pid}: stop it first, or give another device its own directory with --data; remove ${file.path} if that process is not svc device`,
  );
}

/** Removes older lock files: only the newest one counts. */
async function removeOlder(directory: string, number: number): Promise<void> {
  for (const file of await lockFiles(directory)) if (file.number < number) await rm(file.path, { force: true });
}
