/**
 * The keys of issuers, fetched by HTTPS and cached (RFC 7517, RFC 9111 §5.2).
 *
 * - A set is fresh for as long as `Cache-Control: max-age` says, 5 minutes to 24 hours; 5 minutes without it.
 * - It is fetched again when a token names an unknown key, and after a failure: for each app at most once in 30 s, one
 *   request at a time.
 * - While the issuer cannot be reached, the last set remains valid for another 24 hours.
 *
 * Each fetch checks where the URL leads (`outbound/addresses.ts`): an app belongs to a tenant, and the network is the
 * operator's.
 */

import type { Clock, Network } from '../../platform/environment.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import { allowedAddresses, NOT_ALLOWED } from '../outbound/addresses.ts';
import { type HttpGet, withTimeout } from '../outbound/http.ts';
import type { App } from '../storage/store.ts';
import { type KeySet, readKeySet } from './keys.ts';

export interface KeySetsOptions {
  readonly clock: Clock;
  readonly network: Pick<Network, 'resolve'>;
  readonly tally: LogTally;
  readonly get: HttpGet;
  /** Returns whether the operator allows an issuer at this private address. */
  readonly allowPrivate: (address: string) => boolean;
  /** Ends the requests under way. */
  readonly signal: AbortSignal;
}

/** An app whose clients show tokens. */
export type JwtApp = App & { readonly jwt: NonNullable<App['jwt']> };

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
/** Least and most ms for which a set is fresh, whatever the issuer says. */
const LEAST = 300 * SECOND;
const MOST = 24 * HOUR;
/** ms for which a set remains valid beyond its time when there is no newer one. */
const GRACE = 24 * HOUR;
/** ms between two requests for one app. */
export const PAUSE = 30 * SECOND;
/**
 * ms for resolver and request together: less than a session without a valid credential lives (`arrivalTimeout`), so
 * that its client gets an answer.
 */
export const TIMEOUT = 3 * SECOND;
/** Most bytes of a set. */
export const MAX_LENGTH = 65_536;
/** Most apps whose keys are cached. */
export const CAPACITY = 1_000;
/** Concurrent requests, for one organization and in total. */
export const REQUESTS = { perKey: 4, total: 64 };

interface Entry {
  readonly uri: string;
  set: KeySet | null;
  /** Monotonic ms until which the set is fresh. */
  freshUntil: number;
  /** Time of the latest request to the issuer. */
  askedAt: number;
  /** Whether the issuer returned no set then. */
  isSilent: boolean;
  asking: Promise<void> | null;
}

export class KeySets {
  readonly #options: KeySetsOptions;
  readonly #requests = new ConcurrencyLimit(REQUESTS);
  /** Entries by app, the most recently used last. */
  readonly #kept = new Map<string, Entry>();

  constructor(options: KeySetsOptions) {
    this.#options = options;
  }

  /**
   * Returns the keys of the app's issuer.
   * @param lacking a set without the key of a token: a newer one is fetched, unless it is too soon
   * @returns null when there are none
   */
  async of(app: JwtApp, lacking?: KeySet): Promise<KeySet | null> {
    const kept = this.#entry(app);
    const { clock } = this.#options;
    const isFresh = (): boolean => kept.set !== null && clock.now() < kept.freshUntil && kept.set !== lacking;
    if (!isFresh()) {
      const wasSilent = kept.isSilent && clock.now() - kept.askedAt < 2 * PAUSE;
      const asked = this.#refresh(app, kept);
      // While the issuer is silent, callers that would get the cached set anyway do not wait.
      if (!wasSilent || kept.set === null || kept.set === lacking) await asked;
    }
    return clock.now() < kept.freshUntil + GRACE ? kept.set : null;
  }

  #entry({ appId, jwt }: JwtApp): Entry {
    const known = this.#kept.get(appId);
    const none = { set: null, freshUntil: Number.NEGATIVE_INFINITY, askedAt: Number.NEGATIVE_INFINITY, isSilent: false, asking: null };
    const kept = known?.uri === jwt.jwksUri ? known : { uri: jwt.jwksUri, ...none };
    this.#kept.delete(appId);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= CAPACITY) this.#kept.delete(oldest);
    this.#kept.set(appId, kept);
    return kept;
  }

  /** Fetches the set, unless the latest request is too recent. Never rejects. */
  #refresh(app: JwtApp, kept: Entry): Promise<void> {
    if (kept.asking !== null) return kept.asking;
    if (this.#options.clock.now() - kept.askedAt < PAUSE) return Promise.resolve();
    const release = this.#requests.acquire(app.organizationId);
    if (release === null) return Promise.resolve();
    kept.askedAt = this.#options.clock.now();
    kept.asking = this.#ask(app, kept).finally(() => {
      kept.asking = null;
      release();
    });
    return kept.asking;
  }

  async #ask({ appId, jwt }: JwtApp, kept: Entry): Promise<void> {
    const { clock, tally } = this.#options;
    try {
      const { set, lifetime } = await this.#fetch(new URL(jwt.jwksUri));
      kept.set = set;
      kept.freshUntil = clock.now() + lifetime;
      kept.isSilent = false;
    } catch (error) {
      if (error instanceof LocalError) return;
      kept.isSilent = true;
      tally.log.warn('the keys of an issuer cannot be fetched', { app: appId, issuer: jwt.issuer, reason: reasonOf(error) });
    }
  }

  async #fetch(url: URL): Promise<{ set: KeySet; lifetime: number }> {
    const { clock, network, get, allowPrivate, signal } = this.#options;
    const until = clock.now() + TIMEOUT;
    if (url.protocol !== 'https:') throw new RemoteError('BAD_RESPONSE', 'the URL is not https');
    const addresses = await withTimeout(
      clock,
      TIMEOUT,
      allowedAddresses(url, (host) => network.resolve(host), allowPrivate),
    );
    const timeout = Math.max(1, until - clock.now());
    const headers = { accept: 'application/jwk-set+json, application/json' };
    const { status, headers: answered, body, cut } = await get({ url, headers, addresses, timeout, limit: MAX_LENGTH, signal });
    if (status !== 200) throw new RemoteError('BAD_RESPONSE', `the issuer answered ${status}`);
    if (cut) throw new RemoteError('BAD_RESPONSE', `the issuer's answer has more than ${MAX_LENGTH} bytes`);
    return { set: readKeySet(body), lifetime: lifetimeOf(answered['cache-control']) };
  }
}

/** Returns the lifetime, ms. Of a list of directives (RFC 9111 §5.2) the first `max-age` counts. */
function lifetimeOf(cacheControl = ''): number {
  const directives = cacheControl.toLowerCase().split(/\s*,\s*/);
  if (directives.some((each) => each === 'no-store' || each === 'no-cache')) return LEAST;
  const age = directives.map((each) => /^max-age="?(\d{1,10})"?$/.exec(each.trim())?.[1]).find((each) => each !== undefined);
  return Math.min(Math.max(Number(age ?? 0) * SECOND, LEAST), MOST);
}

function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason === NOT_ALLOWED ? `${reason}: --jwks-allow names private networks where an issuer may be` : reason;
}
