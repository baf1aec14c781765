/**
 * Access tokens by credential: kept until shortly before they expire, fetched once at a time, few enough to remember. Time is an argument, the
 * fetching comes in from outside.
 */

/** A token as it was given. */
export interface AccessToken {
  readonly token: string;
  /** ms it is valid from now on. */
  readonly lifetime: number;
}

/** ms before its expiry after which a token is not used any more: a notification may be on its way that long. */
const MARGIN = 120_000;
/** Credentials remembered. */
const CAPACITY = 1_000;

interface Kept {
  readonly token: string;
  readonly until: number;
}

export class TokenCache {
  readonly #kept = new Map<string, Kept>();
  readonly #fetching = new Map<string, Promise<string>>();

  /**
   * The token of a credential.
   * @param now monotonic ms; @param fetch called when there is none; what it throws reaches all who wait, and is not kept
   */
  get(key: string, now: () => number, fetch: () => Promise<AccessToken>): Promise<string> {
    const kept = this.#kept.get(key);
    if (kept !== undefined && now() < kept.until) return Promise.resolve(kept.token);
    const running = this.#fetching.get(key);
    if (running !== undefined) return running;
    const fetching = this.#fetch(key, now, fetch).finally(() => this.#fetching.delete(key));
    this.#fetching.set(key, fetching);
    return fetching;
  }

  /** Forgets a token that was refused; one that came since stays. */
  drop(key: string, token: string): void {
    if (this.#kept.get(key)?.token === token) this.#kept.delete(key);
  }

  async #fetch(key: string, now: () => number, fetch: () => Promise<AccessToken>): Promise<string> {
    const { token, lifetime } = await fetch();
    this.#kept.delete(key);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= CAPACITY) this.#kept.delete(oldest);
    // A short-lived token is good for half its life at least.
    this.#kept.set(key, { token, until: now() + Math.max(lifetime - MARGIN, lifetime / 2) });
    return token;
  }
}
