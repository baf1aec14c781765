/** The bytes of the release module as they are part of this package. The command `svc` has them from a file instead (`cli/bundle.mjs`). */
import { base64 } from '@scure/base';
import { CORE_WASM } from './core-wasm.generated.ts';

/**
 * `atob` and a loop where the host has it, 7 ms on a cold start where the library takes 17 and `Uint8Array.from` with a function 43; a bare
 * JavaScript context has none.
 */
export function embedded(): Uint8Array<ArrayBuffer> {
  if (typeof atob !== 'function') return base64.decode(CORE_WASM) as Uint8Array<ArrayBuffer>;
  const letters = atob(CORE_WASM);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
