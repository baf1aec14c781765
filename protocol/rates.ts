/**
 * Rates by key, such as an address or a device. Buckets that are full again are forgotten; when too many are in use the oldest goes, so that memory
 * stays bounded whoever asks.
 */
import { TokenBucket } from './token-bucket.ts';

/** Keys remembered at a time. */
const CAPACITY = 20_000;

/** A token bucket per key. */
export class Rates {
  readonly #rate: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, TokenBucket>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  /** @param rate a second; @param burst at once */
  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  /** Takes one. @returns 0, or the seconds to wait, at least 1: nothing was taken then */
  take(key: string, now: number): number {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      this.#makeRoom(now);
      bucket = new TokenBucket(this.#rate, this.#burst, now);
      this.#buckets.set(key, bucket);
    }
    return bucket.take(1, now) ? 0 : Math.max(1, Math.ceil(bucket.wait(1, now) / 1000));
  }

  /** Gives one back that was taken and not used. */
  put(key: string): void {
    this.#buckets.get(key)?.put(1);
  }

  #makeRoom(now: number): void {
    if (this.#buckets.size < CAPACITY) return;
    this.#sweep(now);
    if (this.#buckets.size < CAPACITY) return;
    const oldest = this.#buckets.keys().next();
    if (!oldest.done) this.#buckets.delete(oldest.value);
  }

  /** Not more often than an empty bucket needs to fill: a sweep costs as much as there are buckets. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < (this.#burst / this.#rate) * 1000) return;
    this.#sweptAt = now;
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(key);
  }
}
