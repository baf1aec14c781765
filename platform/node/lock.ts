/**
 * The lock of a directory or file among processes, also of several containers on one volume. It has two uses: the owner
 * of a directory refuses others (`ownLock`), a short section lets them wait (`whileLocked`).
 *
 * Who wants the lock puts up a sign (`lock-sign.ts`), and then looks for others. It holds the lock when it finds no
 * other that is alive: of two, the one that looks later sees the other's sign. If both see each other, the one whose
 * name is lower keeps its sign, and the other takes its own down and looks again. A sign dies with its process, so a
 * killed one is no obstacle. Only the holder removes dead signs; a sign that was removed by mistake is put up again.
 *
 * On Windows the lock is a named pipe, which the system gives to one process.
 */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LocalError } from '../../protocol/errors/index.ts';
import { takesNoWrites } from './files.ts';
import { type OwnSign, pipeOrOwner, putUp, RENEWAL, readSigns } from './lock-sign.ts';

/** A lock that this process holds, or will hold. */
export interface Lock {
  /** Fires when another process holds it; the reason is the error that names it. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

export interface OwnerOptions {
  /** The error for a lock that another owner holds. @param by `process 12`, for example */
  readonly inUse: (by: string) => Error;
  /**
   * Called once where the disk accepts no writes. The lock then counts as held, since its owner can change nothing, and
   * is taken as soon as the disk accepts writes. Without it, the failure is thrown.
   */
  readonly unwritable?: () => void;
}

/** ms between two attempts on a disk that accepts no writes. */
const INTERVAL = 5_000;
/** ms between two looks at the signs of others, and ms after which one that neither holds nor gives way is an owner. */
const PAUSE = 20;
const UNDECIDED = 500;
/** ms that a short section waits: its holder only replaces a file. */
const LONGEST_WAIT = 5_000;

/**
 * Takes the lock for as long as its owner runs.
 * @param path of the lock in an existing directory; the names of its signs begin with it
 * @throws what `inUse` makes, LocalError FAILED when the directory cannot be read or written
 */
export async function ownLock(path: string, { inUse, unwritable }: OwnerOptions): Promise<Lock> {
  const lost = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  let released = false;
  const every = (time: number, work: () => Promise<void>): void => {
    timer = setTimeout(() => {
      working = work().catch((error: unknown) => lost.abort(error));
    }, time).unref();
  };
  const attempt = async (): Promise<OwnSign | null> => {
    try {
      const sign = await take(path);
      if (typeof sign === 'string') throw inUse(sign);
      return sign;
    } catch (error) {
      if (unwritable !== undefined && takesNoWrites(error)) return null;
      throw error;
    }
  };
  let sign = await attempt();
  const keep = async (): Promise<void> => {
    if (sign === null) sign = await attempt();
    else if (!(await sign.renew())) throw inUse('another process');
    if (!released) every(sign === null ? INTERVAL : RENEWAL, keep);
  };
  if (sign === null) unwritable?.();
  every(sign === null ? INTERVAL : RENEWAL, keep);
  const release = async (): Promise<void> => {
    released = true;
    clearTimeout(timer);
    await working;
    await sign?.remove();
  };
  return { lost: lost.signal, release };
}

/**
 * Runs a short section, alone among those with the same lock; waits for the others.
 * @param path as `ownLock`
 * @throws LocalError IN_USE when another process keeps the lock for 5 s, FAILED as `ownLock`; what the section throws
 */
export async function whileLocked<T>(path: string, section: () => Promise<T>): Promise<T> {
  const end = performance.now() + LONGEST_WAIT;
  for (;;) {
    const sign = await take(path);
    if (typeof sign !== 'string') return section().finally(() => sign.remove());
    if (performance.now() > end) throw new LocalError('IN_USE', `${path} is held by ${sign}: wait for it, or end it`);
    await pause(PAUSE);
  }
}

/** Takes the lock, or returns who holds it, as `OtherSign.by`. */
async function take(path: string): Promise<OwnSign | string> {
  if (process.platform === 'win32') return pipeOrOwner(path);
  let own: OwnSign | undefined;
  const end = performance.now() + UNDECIDED;
  try {
    for (;;) {
      const { names, living, dead } = await readSigns(path, own);
      const holder = living.find(({ holds }) => holds) ?? (performance.now() > end ? living[0] : undefined);
      if (holder !== undefined) {
        await own?.remove();
        return holder.by;
      }
      const isUp = own !== undefined && names.includes(own.name);
      if (own !== undefined && isUp && living.length === 0) {
        await own.hold();
        for (const name of dead) await rm(join(dirname(path), name), { force: true }).catch(() => {});
        return own;
      }
      if (own === undefined && living.length === 0) {
        own = await putUp(path);
        continue;
      }
      if (own !== undefined && (!isUp || living.some(({ name }) => name < own!.name))) {
        await own.remove();
        own = undefined;
      }
      await pause(PAUSE);
    }
  } catch (error) {
    await own?.remove();
    throw error;
  }
}
