/**
 * Reset, in both directions: "I have lost the state of this id" (PROTOCOL.md §2, RFC 9000 §10.3).
 *
 * Sent only in response to Data or Route with one of our ids that has no owner, always smaller than the packet it
 * answers, and rate-limited. An id without our keyed hash gets no answer at all, so a scanner sees nothing.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeReset, RESET_LENGTH, TOKEN_LENGTH } from '../packet/index.ts';
import { TokenBucket } from '../token-bucket.ts';

/** Resets a second, and burst: a station that restarts has to answer every peer. */
export const RATE = 1000;

export class Resets {
  readonly #crypto: CryptoProvider;
  readonly #secret: Uint8Array;
  readonly #bucket = new TokenBucket(RATE, RATE);

  constructor(crypto: CryptoProvider, secret: Uint8Array) {
    this.#crypto = crypto;
    this.#secret = secret;
  }

  /** Returns the token of one of our connection or route ids: HMAC-SHA-256(reset secret, id), first 16 bytes. */
  token(id: Uint8Array): Uint8Array {
    return this.#crypto.hmacSha256(this.#secret, id).slice(0, TOKEN_LENGTH);
  }

  /** Returns the Reset that answers a packet of `length` bytes for `id`, or null when it must not be sent. */
  answer(id: Uint8Array, length: number, now: number): Uint8Array | null {
    if (length <= RESET_LENGTH || !this.#bucket.take(1, now)) return null;
    return encodeReset({ id, token: this.token(id) });
  }
}
