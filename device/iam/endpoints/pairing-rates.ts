/**
 * Limits local open pairing, which every client on the local network may use. A family can pair at once, but a stranger
 * needs half an hour, not a second, to fill the user list. Each user it creates is in the audit log.
 */
import { Rates } from '../../../protocol/rates.ts';
import { TokenBucket } from '../../../protocol/token-bucket.ts';

const MINUTE = 60;
/** Attempts per address, and in total. */
export const PER_ADDRESS = 10;
export const TOTAL = 30;

/** Attempts on one device. */
export class PairingRates {
  readonly #perAddress = new Rates(PER_ADDRESS / MINUTE, PER_ADDRESS);
  readonly #total = new TokenBucket(TOTAL / MINUTE, TOTAL);

  /** Charges one attempt. @param now ms, monotonic @returns 0, or the seconds to wait */
  take(address: string, now: number): number {
    const wait = this.#perAddress.take(address, now);
    if (wait > 0) return wait;
    return this.#total.take(1, now) ? 0 : Math.max(1, Math.ceil(this.#total.wait(1, now) / 1000));
  }
}
