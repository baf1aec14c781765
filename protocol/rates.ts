/**
 * Rates by key, such as an address or a device. Buckets that are full again are forgotten. When too many are in use,
 * the oldest is dropped, so that memory stays bounded.
 */
import { TokenBucket } from './token-bucket.ts';

/** Keys remembered at one time. */
export const CAPACITY = 20_000;

/** A token bucket per key. */
export class Rates {
  readonly #rate: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, TokenBucket>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  /** @param rate units a second; @param burst units at once */
  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  /** Takes one unit. @returns 0, or the seconds to wait, at least 1, when nothing was taken */
  take(key: string, now: number): number {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      this.#makeRoom(now);
      bucket = new TokenBucket(this.#rate, this.#burst, now);
      this.#buckets.set(key, bucket);
    }
    return bucket.take(1, now) ? 0 : Math.max(1, Math.ceil(bucket.wait(1, now) / 1000));
  }

  #makeRoom(now: number): void {
    if (this.#buckets.size < CAPACITY) return;
    this.#sweep(now);
    if (this.#buckets.size < CAPACITY) return;
    const oldest = this.#buckets.keys().next();
    if (!oldest.done) this.#buckets.delete(oldest.value);
  }

  /** Runs no more often than an empty bucket takes to fill: a sweep visits every bucket. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < (this.#burst / this.#rate) * 1000) return;
    this.#sweptAt = now;
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(key);
  }
}
