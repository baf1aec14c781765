/**
 * Route ids: 4 random bytes and 4 bytes of a keyed hash over them (PROTOCOL.md §2, Reset).
 *
 * The hash lets a station that lost its state recognize its own earlier ids, so that only those are answered with a
 * Reset; together the 8 bytes stay unguessable. Both keys are derived from the reset secret, which is stored beside the
 * identity key.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from '../identity/index.ts';
import { ID_LENGTH, TOKEN_LENGTH } from '../packet/index.ts';

const HALF = 4;

/** Creates and recognizes the route ids of one base station. */
export class RouteIds {
  readonly #crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>;
  readonly #secret: Uint8Array;
  readonly #idKey: Uint8Array;

  /** @param secret 32 bytes: the station's reset secret */
  constructor(crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>, secret: Uint8Array) {
    this.#crypto = crypto;
    this.#secret = secret;
    this.#idKey = crypto.hmacSha256(secret, new TextEncoder().encode('svc route id'));
  }

  /** Returns a new id, 8 bytes. */
  next(): Uint8Array {
    const id = new Uint8Array(ID_LENGTH);
    id.set(this.#crypto.randomBytes(HALF));
    id.set(this.#check(id.subarray(0, HALF)), HALF);
    return id;
  }

  /** Returns true when this station created the id, now or before a restart. */
  isOurs(id: Uint8Array): boolean {
    return equalBytes(this.#check(id.subarray(0, HALF)), id.subarray(HALF));
  }

  /** Returns the token of a Reset for this id: HMAC-SHA-256(reset secret, id), first 16 bytes. */
  resetToken(id: Uint8Array): Uint8Array {
    return this.#crypto.hmacSha256(this.#secret, id).slice(0, TOKEN_LENGTH);
  }

  #check(half: Uint8Array): Uint8Array {
    return this.#crypto.hmacSha256(this.#idKey, half).subarray(0, HALF);
  }
}
