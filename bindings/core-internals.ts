/** What `Core` and its connections share; for `bindings/` only. */
import type { CoreExports } from './core-exports.ts';
import type { Trap } from './trap.ts';

/** Packets that one call of `transmit` gives at most: the size of the core's tables of offsets and lengths. */
export const MAX_BATCH = 32;
/** Bytes of the two mask keys of a connection. */
export const MASK_KEYS_LENGTH = 64;

export interface CoreInternals {
  readonly exports: CoreExports;
  readonly trap: Trap;
  readonly buffer: Uint8Array;
  /** The area of the host's copies, and where it starts. */
  readonly transfer: Uint8Array;
  readonly transferAt: number;
  readonly receiveAt: number;
  readonly receiveSize: number;
  readonly results: Float64Array;
  /** The keys of the masks of packet numbers by handle, MASK_KEYS_LENGTH each: the core asks for them when an id comes up. */
  readonly maskKeys: Uint8Array;
}
