/** What a responder under load does for Initiates and Completes, per network and in all: more addresses of one network get no more. */
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

/** Initiates a second that each network has answered whatever others send, and its burst. */
const PER_NETWORK = 20;
/** Of all networks together, and its burst: what answering them may cost, about a tenth of a processor. */
const OVERALL = 10_000;
/** Answered a second beyond what their networks have: an address that others feign is not shut out by that alone. */
const BEYOND = 5_000;
const BEYOND_BURST = 500;

/** Which Initiates are looked at under load. Asked before anything is computed: most of a flood is to cost no more than being received. */
export class InitiateRates {
  readonly #networks = new NetworkLimiter(PER_NETWORK);
  readonly #overall = new TokenBucket(OVERALL, OVERALL);
  readonly #beyond = new TokenBucket(BEYOND, BEYOND_BURST);

  take(address: string, now: number): boolean {
    // Without a bucket for the network where nothing is left for any: made-up addresses come without number.
    const mayHave = this.#overall.level(now) >= 1 && this.#networks.take(address, now);
    return mayHave ? this.#overall.take(1, now) : this.#beyond.take(1, now);
  }
}
