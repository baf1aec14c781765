/** Lets go of what long loops of simulated worlds leave: V8 sees little of a WebAssembly memory and waits far too long. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** A full garbage collection. */
export const collectGarbage = runInNewContext('gc') as () => void;
