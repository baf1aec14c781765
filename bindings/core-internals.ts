/** Shared by `Core` and its connections; for `bindings/` only. */
import type { CoreExports } from './core-exports.ts';
import type { Trap } from './trap.ts';

/** Most packets of one `transmit` call: the size of the core's tables of offsets and lengths. */
export const MAX_BATCH = 32;
/** Bytes of the two mask keys of a connection. */
export const MASK_KEYS_LENGTH = 64;

export interface CoreInternals {
  readonly exports: CoreExports;
  readonly trap: Trap;
  readonly buffer: Uint8Array;
  /** The transfer area for copies in and out, and its address. */
  readonly transfer: Uint8Array;
  readonly transferAt: number;
  readonly receiveAt: number;
  readonly receiveSize: number;
  readonly results: Float64Array;
  /**
   * Keys of the packet-number masks by handle, MASK_KEYS_LENGTH each: the core needs them when further ids are enabled.
   */
  readonly maskKeys: Uint8Array;
}
