/** Waits, unless a signal ends it. */
import type { Clock } from '../platform/environment.ts';

/** Resolves after `time` ms, or as soon as the signal fires. */
export function pause(clock: Clock, time: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.schedule(time, end);
    signal?.addEventListener('abort', end);
    if (signal?.aborted === true) end();
  });
}
