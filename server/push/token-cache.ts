/**
 * Access tokens by credential: cached until shortly before they expire, with one fetch at a time, for a bounded number
 * of credentials. Time and fetch are arguments.
 */

/** A token as issued. */
export interface AccessToken {
  readonly token: string;
  /** ms for which it is valid from now on. */
  readonly lifetime: number;
}

/** ms before its expiry from which a token is no longer used: a notification may take that long. */
const MARGIN = 120_000;
/** Most credentials remembered. */
export const CAPACITY = 1_000;

interface Entry {
  readonly token: string;
  readonly until: number;
}

export class TokenCache {
  readonly #kept = new Map<string, Entry>();
  readonly #fetching = new Map<string, Promise<string>>();

  /**
   * Returns the token of a credential.
   * @param now monotonic ms
   * @param fetch called when there is none; its error reaches all waiting callers, and is not cached
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

  /** Forgets a token that was refused; a newer one stays. */
  drop(key: string, token: string): void {
    if (this.#kept.get(key)?.token === token) this.#kept.delete(key);
  }

  async #fetch(key: string, now: () => number, fetch: () => Promise<AccessToken>): Promise<string> {
    const { token, lifetime } = await fetch();
    this.#kept.delete(key);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= CAPACITY) this.#kept.delete(oldest);
    // A short-lived token is used for at least half its lifetime.
    this.#kept.set(key, { token, until: now() + Math.max(lifetime - MARGIN, lifetime / 2) });
    return token;
  }
}
