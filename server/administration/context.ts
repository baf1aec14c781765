/** What the functions of the administration work with: store, sealer, clock and randomness come in from outside. */
import type { Sealer } from '../storage/sealing.ts';
import type { RandomBytes } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';

/** Where changes are made. */
export interface Administration {
  readonly store: Store;
  /**
   * Seals keys for the store. Called only when something is sealed: a data directory makes its sealing key at first
   * use.
   */
  readonly sealer: () => Promise<Sealer>;
  /** Unix ms; `created` of new records. */
  readonly wallTime: () => number;
  /** For ids and secrets. */
  readonly randomBytes: RandomBytes;
}

/** `created` of a record made now: ISO 8601 UTC with milliseconds. */
export function creationTime({ wallTime }: Administration): string {
  return new Date(wallTime()).toISOString();
}
