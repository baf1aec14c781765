/**
 * Replaces `bindings/embedded.ts` in a bundle: reads the release module from its file. As text it would cost a start
 * more than all other modules of the core.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The bytes of `dist/core.wasm`, next to the folder of the bundles. */
export function embedded(): Uint8Array<ArrayBuffer> {
  return readFileSync(join(__dirname, '../core.wasm'));
}
