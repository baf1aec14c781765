/** SIGINT (Ctrl-C) and SIGTERM as an AbortSignal: the first closes cleanly, a second one ends the process at once. */
import { ExitCode, Interrupted } from './errors.ts';

export interface Interruption {
  readonly signal: AbortSignal;
  /** Stops listening, so that the process can end by itself again. */
  dispose(): void;
}

/** Listens for the first SIGINT or SIGTERM. */
export function interruption(): Interruption {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(ExitCode.INTERRUPTED);
    controller.abort(new Interrupted());
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return {
    signal: controller.signal,
    dispose() {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
    },
  };
}

/** Resolves when the signal fires. For commands that run until they are stopped. */
export function stopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/**
 * Settles as `work` does, or rejects with `Interrupted` when the signal fires. `work` is not cancelled: close what it
 * uses.
 */
export async function unlessInterrupted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  let onAbort = () => {};
  const interrupted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new Interrupted());
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, interrupted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
