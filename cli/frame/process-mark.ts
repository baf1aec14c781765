/**
 * A line `<pid> <start>` by which a file names its owner process. `start` distinguishes a process from a later one with
 * the same number: on Linux boot id and start time, elsewhere `-`, where only the pid counts.
 */
import { readFile } from 'node:fs/promises';

/** Returns the line of this process. */
export async function thisProcess(): Promise<string> {
  return `${process.pid} ${await startOf(process.pid)}\n`;
}

/** Returns the process named by a line, if it is alive. */
export async function livingProcess(content: string): Promise<number | null> {
  const match = /^(\d{1,10}) (\S+)\n$/.exec(content);
  if (match === null) return null;
  const pid = Number(match[1]);
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return null;
  }
  return (await startOf(pid)) === match[2] ? pid : null;
}

/** The start of a process, unique among processes with its number. */
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
