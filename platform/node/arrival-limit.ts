/**
 * Limits the datagrams of strangers that are looked at, before they are decoded: a flood then costs next to nothing,
 * and one source leaves room for the others.
 */
import { TokenBucket } from '../../protocol/token-bucket.ts';

/** Datagrams at once, and a second: of one source, and of all. All of 150 instances may answer at once. */
export const SOURCE = { burst: 256, rate: 64 };
export const ALL = { burst: 1_024, rate: 256 };
/** Sources with a count of their own. A further one replaces the one that was counted first. */
export const MAX_SOURCES = 64;

export class ArrivalLimit {
  readonly #all = new TokenBucket(ALL.rate, ALL.burst);
  readonly #sources = new Map<string, TokenBucket>();

  /** Whether a datagram is looked at. @param now ms, monotonic */
  admits(source: string, now: number): boolean {
    return this.#bucketOf(source).take(1, now) && this.#all.take(1, now);
  }

  #bucketOf(source: string): TokenBucket {
    const known = this.#sources.get(source);
    if (known !== undefined) return known;
    const [first] = this.#sources.keys();
    if (this.#sources.size === MAX_SOURCES && first !== undefined) this.#sources.delete(first);
    const bucket = new TokenBucket(SOURCE.rate, SOURCE.burst);
    this.#sources.set(source, bucket);
    return bucket;
  }
}
