/**
 * In a bundle in place of `bindings/embedded.ts`: the release module from its file. Text of that size costs a start more than all other
 * modules of the core.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The bytes of `dist/core.wasm`, beside the folder of the bundles. */
export function embedded(): Uint8Array<ArrayBuffer> {
  return readFileSync(join(__dirname, '../core.wasm'));
}
