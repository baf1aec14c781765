/**
 * The bytes of the release module inside this package. The command `svc` loads them from a file instead
 * (`cli/bundle.mjs`).
 */
import { base64 } from '@scure/base';
import { CORE_WASM } from './core-wasm.generated.ts';

/**
 * Decodes the module. With `atob` and a loop this takes 7 ms on a cold start, with the library 17 and with
 * `Uint8Array.from` and a function 43. A bare JavaScript context has no `atob`.
 */
export function embedded(): Uint8Array<ArrayBuffer> {
  if (typeof atob !== 'function') return base64.decode(CORE_WASM) as Uint8Array<ArrayBuffer>;
  const letters = atob(CORE_WASM);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
