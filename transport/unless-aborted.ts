/** Waits for a promise only as long as a signal lets it. */
import { LocalError } from '../protocol/errors/index.ts';
import { Deferred } from './deferred.ts';

/** What the promise gives. What it stands for goes on when the signal fires. @throws LocalError STOPPED when the signal fires first; as the promise */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Deferred.quiet<never>();
  const abort = (): void => aborted.reject(new LocalError('STOPPED', 'the connect was stopped'));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
