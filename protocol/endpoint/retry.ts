/**
 * Tokens of Retry: proof that the initiator receives at its address. Stateless: 4 bytes issue time (s) ‖
 * HMAC-SHA-256(secret, time ‖ source id ‖ port ‖ address), first 16 bytes. They are valid for 120 s; the secret changes
 * every 120 s and the previous one still counts.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from '../identity/index.ts';
import { ID_LENGTH, TOKEN_LENGTH, u32, writeU16, writeU32 } from '../packet/index.ts';
import type { Path } from '../path.ts';

/** Lifetime of a token and of a secret, ms. */
const RETRY_LIFETIME = 120_000;
const TIME_LENGTH = 4;
const LENGTH = TIME_LENGTH + TOKEN_LENGTH;
/** Offsets in the data that a token authenticates. */
const PORT_AT = TIME_LENGTH + ID_LENGTH;
const ADDRESS_AT = PORT_AT + 2;

export class RetryTokens {
  readonly #crypto: CryptoProvider;
  #current: Uint8Array | null = null;
  #previous: Uint8Array | null = null;
  #changeAt = Number.NEGATIVE_INFINITY;

  constructor(crypto: CryptoProvider) {
    this.#crypto = crypto;
  }

  issue(path: Path, source: Uint8Array, now: number): Uint8Array {
    this.#rotate(now);
    const token = new Uint8Array(LENGTH);
    writeU32(token, 0, seconds(now));
    token.set(this.#mac(this.#current!, token.subarray(0, TIME_LENGTH), path, source), TIME_LENGTH);
    return token;
  }

  /** Returns whether we issued the token for this path and source id, at most 120 s ago. */
  holds(token: Uint8Array, path: Path, source: Uint8Array, now: number): boolean {
    if (token.length !== LENGTH) return false;
    this.#rotate(now);
    const age = (seconds(now) - u32(token, 0)) >>> 0;
    if (age > RETRY_LIFETIME / 1000) return false;
    const time = token.subarray(0, TIME_LENGTH);
    const mac = token.subarray(TIME_LENGTH);
    return [this.#current, this.#previous].some((secret) => secret !== null && equalBytes(this.#mac(secret, time, path, source), mac));
  }

  #mac(secret: Uint8Array, time: Uint8Array, path: Path, source: Uint8Array): Uint8Array {
    const { address, port } = path;
    const bound = new Uint8Array(ADDRESS_AT + address.length);
    bound.set(time);
    bound.set(source, TIME_LENGTH);
    writeU16(bound, PORT_AT, port);
    for (let i = 0; i < address.length; i++) bound[ADDRESS_AT + i] = address.charCodeAt(i);
    return this.#crypto.hmacSha256(secret, bound).subarray(0, TOKEN_LENGTH);
  }

  #rotate(now: number): void {
    if (now < this.#changeAt) return;
    // After a pause of two lifetimes nothing issued before may count.
    this.#previous = now < this.#changeAt + RETRY_LIFETIME ? this.#current : null;
    this.#current = this.#crypto.randomBytes(32);
    this.#changeAt = now + RETRY_LIFETIME;
  }
}

/** Seconds modulo 2^32 of a monotonic time. */
function seconds(now: number): number {
  return Math.floor(now / 1000) >>> 0;
}
