/** Waits for what other processes, sockets and files bring about. */
import { vi } from 'vitest';

/**
 * Resolves when `check` no longer throws; rejects with its error a little before the time limit of a test, so that load
 * does not decide and the error is reported.
 */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 50_000, interval: 5 });
}
