/**
 * The lock of a directory whose disk may be full or read-only. A device then serves without the lock, as it can change nothing, and tries to get it until
 * the disk takes writes again. Should another process have got it by then, the device ends.
 */
import { takesNoWrites } from '../../transport/node/index.ts';
import { lockDirectory } from './lock.ts';

export interface HeldLock {
  /** Fires when another process has the directory; the reason says which. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

/** ms between two attempts. */
const INTERVAL = 5_000;

/**
 * Takes the directory for this process, now or as soon as its disk takes writes.
 * @param warn told once when the lock has to wait @param lock takes it, as `lockDirectory`
 * @throws as `lockDirectory`, except where the disk takes no writes
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
    warn(`${directory} takes no writes: the device serves what it has, and refuses every change`);
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

/** Null when the disk takes no writes. */
async function attempt(directory: string, lock: typeof lockDirectory): Promise<(() => Promise<void>) | null> {
  try {
    return await lock(directory);
  } catch (error) {
    if (takesNoWrites(error)) return null;
    throw error;
  }
}
