/**
 * Limits of a responder under load for Initiates and Completes, per network and in all: more addresses of one network
 * get no larger share.
 */
import { networkOf } from '../address.ts';
import { TokenBucket } from '../token-bucket.ts';

/** Most networks with a bucket; beyond it the first is forgotten. */
export const MAX_NETWORKS = 4096;

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

/** Initiates a second, and burst, that are answered for each network, whatever others send. */
export const PER_NETWORK = 20;
/** For all networks together, also the burst: answering them may cost about a tenth of a processor. */
export const OVERALL = 10_000;
/** Answered a second beyond the networks' shares: otherwise spoofing an address would shut it out. */
export const BEYOND = 5_000;
const BEYOND_BURST = 500;

/**
 * Selects the Initiates that are processed under load. Called before any computation: most of a flood should cost no
 * more than its reception.
 */
export class InitiateRates {
  readonly #networks = new NetworkLimiter(PER_NETWORK);
  readonly #overall = new TokenBucket(OVERALL, OVERALL);
  readonly #beyond = new TokenBucket(BEYOND, BEYOND_BURST);

  take(address: string, now: number): boolean {
    // Creates no bucket for the network when nothing is left overall: invented addresses are unlimited.
    const mayHave = this.#overall.level(now) >= 1 && this.#networks.take(address, now);
    return mayHave ? this.#overall.take(1, now) : this.#beyond.take(1, now);
  }
}
