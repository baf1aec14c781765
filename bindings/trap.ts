/**
 * Consequences of a trap: it is a bug of the core, so its memory can no longer be trusted. The core is dead, each later
 * call on it or its connections throws the same CORE_FAILED, and the embedding program makes a new one.
 */
import type { CoreExports } from './core-exports.ts';
import { LocalError } from './error.ts';

/** The first trap of a core, and its effect on every later call. */
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
