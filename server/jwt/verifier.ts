/**
 * Decides whether a client's token of an issuer admits it to a device. Each address may have a few tokens checked per
 * second; a valid one is remembered until it expires or its key is no longer the issuer's.
 */

import type { Clock } from '../../platform/environment.ts';
import { Rates } from '../../protocol/rates.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { JwtApp, KeySets } from './key-sets.ts';
import type { KeySet } from './keys.ts';
import { LEEWAY, type TokenHeader, tokenHeader, UNSIGNED, type VerifiedToken, type VerifyToken, verifyToken } from './token.ts';

/** The token that a client shows, with its context. */
export interface ShownToken {
  readonly app: JwtApp;
  readonly token: string;
  /** `<productId>.<deviceId>`. */
  readonly device: string;
  /** Address of the client, as `addressKey` returns it. */
  readonly address: string;
}

/**
 * - admitted: it names the device; elsewhere: it is valid but does not
 * - invalid: it is not the issuer's, or not valid now
 * - unavailable: the issuer's keys cannot be fetched; wait: s until another token of the address may be checked
 */
export type TokenVerdict = 'admitted' | 'elsewhere' | 'invalid' | 'unavailable' | { readonly wait: number };

export interface TokenVerifierOptions {
  readonly clock: Clock;
  readonly tally: LogTally;
  readonly keySets: KeySets;
  /** Tokens checked a second for one address (IPv4) or /64 (IPv6), and burst. */
  readonly rate: number;
  readonly burst: number;
  /** Default: jose. */
  readonly verify?: VerifyToken;
}

/** Most tokens remembered, and devices that they name: an issuer may name two thousand in each. */
export const CAPACITY = 10_000;
export const MAX_DEVICES = 100_000;

export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #rates: Rates;
  /** Verified tokens by app with its settings, and token. */
  readonly #known = new Map<string, VerifiedToken>();
  #devices = 0;

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
    this.#rates = new Rates(options.rate, options.burst);
  }

  /** Number of remembered tokens. */
  get size(): number {
    return this.#known.size;
  }

  /** Checks a token, and logs why it is refused. Never rejects because of the client's or the issuer's data. */
  async check({ app, token, device, address }: ShownToken): Promise<TokenVerdict> {
    const refuse = (reason: string, verdict: 'invalid' | 'elsewhere' = 'invalid'): TokenVerdict => {
      this.#options.tally.each('a token was refused', app.appId, { app: app.appId, device, address, reason });
      return verdict;
    };
    const verdictOf = ({ devices }: VerifiedToken): TokenVerdict =>
      devices.has(device) ? 'admitted' : refuse(`its ${app.jwt.svcIdsClaim} does not name the device`, 'elsewhere');
    const header = tokenHeader(token);
    if (header === null) return refuse('it is not a JWT with an accepted algorithm');
    const key = keyOf(app, token);
    const known = await this.#remembered(key, app);
    if (known !== null) return verdictOf(known);
    const wait = this.#rates.take(address, this.#options.clock.now());
    if (wait > 0) return { wait };
    const verified = await this.#verified(app, token, header);
    if (verified === null) return 'unavailable';
    if (typeof verified === 'string') return refuse(verified);
    this.#remember(key, verified);
    return verdictOf(verified);
  }

  async #remembered(key: string, app: JwtApp): Promise<VerifiedToken | null> {
    const known = this.#known.get(key);
    if (known === undefined) return null;
    const isCurrent = this.#options.clock.wallTime() < known.expires + LEEWAY * 1000;
    if (isCurrent && (await this.#options.keySets.of(app))?.has(known.keyId)) return known;
    this.#forget(key);
    return null;
  }

  #remember(key: string, verified: VerifiedToken): void {
    this.#forget(key);
    this.#known.set(key, verified);
    this.#devices += verified.devices.size;
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= CAPACITY && this.#devices <= MAX_DEVICES) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#devices -= this.#known.get(key)?.devices.size ?? 0;
    this.#known.delete(key);
  }

  /**
   * Verifies with the issuer's keys, and where none of them has signed the token, with those of a newer set.
   * @returns why the token is refused; null when the keys cannot be fetched
   */
  async #verified(app: JwtApp, token: string, header: TokenHeader): Promise<VerifiedToken | string | null> {
    const { keySets, clock, verify = verifyToken } = this.#options;
    const verifyWith = (set: KeySet): Promise<VerifiedToken | string> =>
      verify(token, header, { keys: set.candidates(header), issuer: app.jwt, wallTime: clock.wallTime() });
    const set = await keySets.of(app);
    if (set === null) return null;
    const verified = await verifyWith(set);
    if (verified !== UNSIGNED) return verified;
    const newer = await keySets.of(app, set);
    return newer === null || newer === set ? verified : verifyWith(newer);
  }
}

/**
 * Returns the cache key. It includes what a token was checked against: another issuer, audience or claim needs another
 * check.
 */
function keyOf({ appId, jwt }: JwtApp, token: string): string {
  return hashSecret(JSON.stringify([appId, jwt.issuer, jwt.audience, jwt.audienceClaim, jwt.jwksUri, jwt.svcIdsClaim, token]));
}
