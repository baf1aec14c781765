/** A token bucket per network: under load nobody gets more handshakes by having more addresses of one network. */
import { networkOf } from '../address.ts';
import { TokenBucket } from '../token-bucket.ts';

/** Networks watched at a time; beyond that the one seen first is forgotten. */
const MAX_NETWORKS = 4096;

/** A bucket per IPv4 address or IPv6 /64. */
export class NetworkLimiter {
  readonly #rate: number;
  readonly #buckets = new Map<string, TokenBucket>();

  /** @param rate tokens per second and network, and its burst */
  constructor(rate: number) {
    this.#rate = rate;
  }

  take(address: string, now: number): boolean {
    const key = networkOf(address);
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#rate, this.#rate);
      if (this.#buckets.size >= MAX_NETWORKS) this.#buckets.delete(this.#buckets.keys().next().value!);
      this.#buckets.set(key, bucket);
    }
    return bucket.take(1, now);
  }
}
