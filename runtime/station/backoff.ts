/**
 * How long to wait before the next attempt.
 *
 * `Backoff` is full jitter under an exponential ceiling: uniform in 0 … min(max, first × 2^n). Many devices that lost
 * the same base station spread evenly instead of returning in waves. `SlowBackoff` is for refusals that only a person
 * can resolve: never sooner than its first delay, doubling, with a quarter of spread.
 */
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';

/** docs/transport.md §9: re-attach. ms. */
const FIRST_DELAY = 250;
const MAX_DELAY = 30_000;
/** docs/transport.md §9: wrong ids or fingerprint. ms. */
const FIRST_SLOW_DELAY = 10_000;
export const MAX_SLOW_DELAY = 3_600_000;
/** docs/transport.md §9: an invalid certificate: at any time the clock may be set, or the certificate renewed. ms. */
export const MAX_CERTIFICATE_DELAY = 120_000;

/** Full jitter under a doubling ceiling. */
export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  constructor(crypto: CryptoProvider) {
    this.#random = () => uniform(crypto);
  }

  /** Returns the ms to wait after one more failure. */
  next(): number {
    const ceiling = Math.min(MAX_DELAY, FIRST_DELAY * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    return ceiling * this.#random();
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Doubling waits with a little spread. */
export class SlowBackoff {
  readonly #random: () => number;
  #delay = 0;

  constructor(crypto: CryptoProvider) {
    this.#random = () => uniform(crypto);
  }

  /** ms of the last wait without its spread, 0 when there was none. */
  get current(): number {
    return this.#delay;
  }

  /** Returns the ms to wait after one more refusal. @param first ms of the first in a row @param most ms of any */
  next(first = FIRST_SLOW_DELAY, most = MAX_SLOW_DELAY): number {
    this.#delay = Math.min(most, Math.max(first, this.#delay * 2));
    return Math.min(most, this.#delay * (1 + this.#random() / 4));
  }

  reset(): void {
    this.#delay = 0;
  }
}

/** Returns a random number from 0 to less than 1. */
export function uniform(crypto: CryptoProvider): number {
  const bytes = crypto.randomBytes(4);
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0) / 2 ** 32;
}
