/** Lets go of what long loops of simulated worlds leave: V8 sees little of a WebAssembly memory and waits far too long. And says what is left. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** A full garbage collection. */
export const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes of the heap after what one collection leaves to the next is gone. */
export function heapUsed(): number {
  for (let i = 0; i < 3; i++) collectGarbage();
  return process.memoryUsage().heapUsed;
}
