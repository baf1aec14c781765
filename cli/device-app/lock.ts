/**
 * One process per directory: `device.lock` names the process that has it, in a line `<pid> <start>`.
 *
 * `start` tells it from a later process with the same number: on Linux boot id and start time, elsewhere `-`, where the number alone counts. A file that a
 * killed process left is taken over, by one process at a time.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile, readFileIfPresent, replaceFile } from '../../transport/node/index.ts';
import { CommandError } from '../frame/errors.ts';

const LOCK_FILE = 'device.lock';

/**
 * Takes the directory for this process. Returns what gives it back.
 * @throws CommandError naming the process that has it
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, LOCK_FILE);
  const own = `${process.pid} ${await startOf(process.pid)}\n`;
  while (!(await createFile(path, own))) {
    const holder = await contentOf(path);
    if (holder === undefined) continue;
    if (await isAlive(holder)) {
      const pid = holder.trim().split(' ')[0];
      throw new CommandError(`${directory} is in use by process ${pid}: stop it first, or remove ${path} if that is no svc device`);
    }
    if (await takeOver(path, holder, own)) break;
  }
  return () => rm(path, { force: true });
}

/**
 * Replaces what a dead process left, and tells whether it was still there. One process does so at a time, since two that both saw the dead one
 * would take the place of each other.
 * @throws CommandError when another process is at it, or was killed at it
 */
async function takeOver(path: string, stale: string, own: string): Promise<boolean> {
  const guard = `${path}.taking`;
  if (!(await createFile(guard, own)))
    throw new CommandError(`another process takes over ${path}: try again, and remove ${guard} if this message stays`);
  try {
    if ((await contentOf(path)) !== stale) return false;
    await replaceFile(path, own);
    return true;
  } finally {
    await rm(guard, { force: true });
  }
}

async function isAlive(content: string): Promise<boolean> {
  const match = /^(\d{1,10}) (\S+)\n$/.exec(content);
  const pid = Number(match?.[1]);
  if (match === null) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return (await startOf(pid)) === match[2];
}

/** When a process began, as no other process with its number did. */
async function startOf(pid: number): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // proc(5): the name in brackets may hold anything; the start time is the 20th field after it.
    return `${boot.trim()}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return '-';
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  const bytes = await readFileIfPresent(path);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}
