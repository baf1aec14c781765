/**
 * Frees the memory that the start of a long-lived process leaves behind. V8 keeps its young generation as large as
 * loading made it until collections show that little is still allocated, and an idle process does not start these by
 * itself.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * ms between collections, and before the first: then the start is over, and each sees how little was allocated since
 * the one before.
 */
const INTERVAL = 3000;
const COLLECTIONS = 3;

/**
 * Makes V8 collect everything a few times after the start; a process that ends before does not wait for it. Each takes
 * some tens of milliseconds.
 */
export function collectAfterStart(): void {
  for (let number = 1; number <= COLLECTIONS; number++) setTimeout(collect, number * INTERVAL).unref();
}

/** Node exposes the collector only through this flag, and only in contexts created afterwards. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof gc === 'function') gc();
}
