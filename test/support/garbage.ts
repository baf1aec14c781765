/**
 * Frees what long loops of simulated worlds leave: V8 accounts little for a WebAssembly memory and collects far too
 * late. Also returns what is left.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** A full garbage collection. */
export const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes of the heap after a second collection: some objects survive the first. */
export function heapUsed(): number {
  for (let i = 0; i < 3; i++) collectGarbage();
  return process.memoryUsage().heapUsed;
}
