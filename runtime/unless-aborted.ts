/** Waits for a promise until a signal fires. */
import { LocalError } from '../protocol/errors/index.ts';
import { Deferred } from './deferred.ts';

/**
 * Settles as `promise` does. When the signal fires, the work behind the promise continues.
 * @throws LocalError STOPPED when the signal fires first
 */
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
