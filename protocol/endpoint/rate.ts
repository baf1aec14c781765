/** Token buckets: one, and one per network prefix. */

export class TokenBucket {
  readonly #rate: number;
  readonly #burst: number;
  #tokens: number;
  #at = Number.NEGATIVE_INFINITY;

  /** @param rate tokens per second @param burst most that add up */
  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Takes one token if there is one. */
  take(now: number): boolean {
    const gained = Math.max(0, now - this.#at) * (this.#rate / 1000);
    this.#tokens = Math.min(this.#burst, this.#tokens + gained);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** Prefixes watched at a time; beyond that the one seen first is forgotten. */
const MAX_PREFIXES = 4096;

/** A bucket per IPv4 address or IPv6 /64. */
export class PrefixLimiter {
  readonly #rate: number;
  readonly #buckets = new Map<string, TokenBucket>();

  /** @param rate tokens per second and prefix, and its burst */
  constructor(rate: number) {
    this.#rate = rate;
  }

  take(address: string, now: number): boolean {
    const key = prefix(address);
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#rate, this.#rate);
      if (this.#buckets.size >= MAX_PREFIXES) this.#buckets.delete(this.#buckets.keys().next().value!);
      this.#buckets.set(key, bucket);
    }
    return bucket.take(now);
  }
}

/** The IPv4 address, also of the mapped form, or the first four groups of an IPv6 address. */
export function prefix(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1]!;
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  const groups = [...front, ...new Array<string>(zeros).fill('0'), ...back];
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, '').toLowerCase())
    .join(':');
}
