/**
 * Limits how often a user may change its own record. Each change is saved and recorded in the audit log: without a
 * rate, the lowest role could rotate everything out of the log within a minute. Changes to other users need rights
 * over those users, and have no rate.
 */
import { Rates } from '../../../protocol/rates.ts';

/** Changes at once, and seconds for one more. */
const BURST = 30;
const SECONDS = 2;

export class ChangeRates {
  readonly #ofUser = new Rates(1 / SECONDS, BURST);
  readonly #now: () => number;

  /** @param now monotonic, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Charges one change. @returns 0, or the seconds to wait */
  take(username: string): number {
    return this.#ofUser.take(username, this.#now());
  }
}
