/**
 * Rates by key: an address, a device. Buckets that are full again are forgotten; when too many are in use the oldest goes, so that
 * memory stays bounded whoever knocks.
 */
import { networkOf } from '../../protocol/address.ts';
import { type CoapReply, Status, textReply } from '../../protocol/coap/index.ts';
import type { Path } from '../../protocol/path.ts';
import { TokenBucket } from '../../protocol/token-bucket.ts';

/** Seconds of a rate that may come at once: after a restart many come together. */
export const BURST_SECONDS = 10;

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

/** 4.29 with the time after which another attempt may succeed. */
export function tooMany(seconds: number): CoapReply {
  return { ...textReply(Status.TOO_MANY_REQUESTS, 'Too many requests'), maxAge: seconds };
}

/** What counts as one address: an IPv4 address, the /64 of an IPv6 one. */
export function addressKey({ address }: Path): string {
  return networkOf(address);
}
