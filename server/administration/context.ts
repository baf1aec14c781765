/** The dependencies of the administration functions: store, sealer, clock and randomness are arguments. */
import type { Sealer } from '../storage/sealing.ts';
import type { RandomBytes } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';

/** Dependencies of every change. */
export interface Administration {
  readonly store: Store;
  /**
   * Seals keys for the store. Called only when something is sealed: a data directory creates its sealing key at first
   * use.
   */
  readonly sealer: () => Promise<Sealer>;
  /** Returns Unix ms, for `created` of new records. */
  readonly wallTime: () => number;
  /** For ids and secrets. */
  readonly randomBytes: RandomBytes;
}

/** Returns the value of `created` for a new record: ISO 8601 UTC with milliseconds. */
export function creationTime({ wallTime }: Administration): string {
  return new Date(wallTime()).toISOString();
}
