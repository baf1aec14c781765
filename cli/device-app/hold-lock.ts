/**
 * The lock of a directory whose disk may be full or read-only. A device then serves without the lock, as it can change
 * nothing, and retries until the disk accepts writes again. If another process got the lock by then, the device ends.
 */
import { takesNoWrites } from '../../transport/node/index.ts';
import { lockDirectory } from './lock.ts';

export interface HeldLock {
  /** Fires when another process holds the directory; the reason names it. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

/** ms between two attempts. */
const INTERVAL = 5_000;

/**
 * Locks the directory for this process, now or as soon as its disk accepts writes.
 * @param warn called once when the lock has to wait
 * @param lock takes the lock, as `lockDirectory`
 * @throws as `lockDirectory`, unless the disk accepts no writes
 */
export async function holdLock(directory: string, warn: (text: string) => void, lock = lockDirectory): Promise<HeldLock> {
  const lost = new AbortController();
  let unlock = await attempt(directory, lock);
  let timer: NodeJS.Timeout | undefined;
  let released = false;
  const again = async (): Promise<void> => {
    try {
      unlock = await attempt(directory, lock);
      if (unlock === null && !released) wait();
    } catch (error) {
      lost.abort(error);
    }
  };
  let trying = Promise.resolve();
  const wait = (): void => {
    timer = setTimeout(() => (trying = again()), INTERVAL);
  };
  if (unlock === null) {
    warn(`${directory} is not writable: the device serves what it has, and refuses every change`);
    wait();
  }
  const release = async (): Promise<void> => {
    released = true;
    clearTimeout(timer);
    await trying;
    await unlock?.();
  };
  return { lost: lost.signal, release };
}

/** Null when the disk accepts no writes. */
async function attempt(directory: string, lock: typeof lockDirectory): Promise<(() => Promise<void>) | null> {
  try {
    return await lock(directory);
  } catch (error) {
    if (takesNoWrites(error)) return null;
    throw error;
  }
}
