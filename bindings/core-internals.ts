/** Shared by `Core`, its connections and their parts; for `bindings/` only. */
import type { CoreExports } from './core-exports.ts';
import { LocalError } from './error.ts';

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
  /** Index of the path of the last received packet, or of the last transmitted ones. */
  lastPath: number;
}

/** A connection, as its parts see it. */
export interface CoreHandle {
  readonly core: CoreInternals;
  readonly handle: number;
  /** The peer's MaxUdpPayload. */
  readonly maxUdpPayload: number;
  /** @throws LocalError CORE_FAILED once the core has trapped, INVALID_STATE after `free` */
  check(): CoreInternals;
}

/** Calls the core; not for the hot path, as each call makes a closure. */
export function call<T>(of: CoreHandle, action: (exports: CoreExports, handle: number) => T): T {
  const { exports, trap } = of.check();
  try {
    return action(exports, of.handle);
  } catch (error) {
    throw trap.caught(error);
  }
}

/** Returns a copy of the first bytes of the transfer area. */
export function copyOut({ transfer }: CoreInternals, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  bytes.set(transfer.subarray(0, length));
  return bytes;
}

/** The keys of the connection's packet-number masks. */
export function keysOfMasks({ core, handle }: CoreHandle): Uint8Array {
  return core.maskKeys.subarray(handle * MASK_KEYS_LENGTH, (handle + 1) * MASK_KEYS_LENGTH);
}

/**
 * The first trap of a core, and its effect on every later call. A trap is a bug of the core, so its memory can no
 * longer be trusted: each later call on it or its connections throws the same CORE_FAILED, and the embedding program
 * makes a new one.
 */
export class Trap {
  /** Set by the first trap. */
  failure: LocalError | null = null;
  private readonly exports: CoreExports;

  constructor(exports: CoreExports) {
    this.exports = exports;
  }

  /** Throws if the core is dead. */
  check(): void {
    if (this.failure !== null) throw this.failure;
  }

  /** Maps what a call into the core threw to the error to throw: CORE_FAILED for a trap. */
  caught(error: unknown): unknown {
    if (!(error instanceof WebAssembly.RuntimeError)) return error;
    const place = `${this.exports.abortLine.value}:${this.exports.abortColumn.value}`;
    this.failure ??= new LocalError('CORE_FAILED', `the core stopped at ${place}: ${error.message}`, { cause: error });
    return this.failure;
  }
}
