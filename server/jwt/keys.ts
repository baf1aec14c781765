/**
 * A JWK Set (RFC 7517) as an issuer publishes it: which of its keys verify tokens, and with which algorithms.
 *
 * - A key is used with the one algorithm that its `alg` names, else with those of its type. `none` and symmetric keys
 *   are not accepted, so that the public key of an issuer cannot serve as an HMAC secret (RFC 8725 §2.1).
 * - Keys for another purpose (`use`, `key_ops`) and keys of unknown kinds are skipped.
 */
import type { JWK } from 'jose';
import { RemoteError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';

/** Accepted algorithms of tokens (RFC 7518 §3.1, RFC 8037, RFC 9864). */
export const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** Most keys of a set, usable or not. */
export const MAX_KEYS = 100;

/** A key that verifies tokens. */
export interface VerificationKey {
  /**
   * Its required members in their order, the input of an RFC 7638 thumbprint: the same key in another set has the same
   * id.
   */
  readonly id: string;
  readonly kid: string | null;
  readonly algorithms: readonly Algorithm[];
  /** The public members only. */
  readonly jwk: JWK;
}

/** A snapshot of the keys of an issuer. */
export class KeySet {
  readonly #keys: readonly VerificationKey[];
  readonly #ids: ReadonlySet<string>;

  constructor(keys: readonly VerificationKey[]) {
    this.#keys = keys;
    this.#ids = new Set(keys.map(({ id }) => id));
  }

  /**
   * Returns the keys that may have signed a token with this header, in their order. A header without `kid` fits all
   * keys; where no key has its `kid`, it fits those that have none (RFC 7517 §4.5).
   */
  candidates({ alg, kid }: { alg: Algorithm; kid: string | undefined }): readonly VerificationKey[] {
    const fitting = this.#keys.filter(({ algorithms }) => algorithms.includes(alg));
    if (kid === undefined) return fitting;
    const named = fitting.filter((key) => key.kid === kid);
    return named.length > 0 ? named : fitting.filter((key) => key.kid === null);
  }

  /** Returns whether the key is still one of the issuer's. */
  has(id: string): boolean {
    return this.#ids.has(id);
  }
}

/** @param body JSON of a JWK Set @throws RemoteError BAD_RESPONSE when it is not one, or has more than 100 keys */
export function readKeySet(body: Uint8Array): KeySet {
  const text = new TextDecoder('utf-8', { fatal: true });
  const keys = orElse(() => (JSON.parse(text.decode(body)) as { keys?: unknown }).keys, null);
  if (!Array.isArray(keys)) throw new RemoteError('BAD_RESPONSE', 'the issuer did not return a JWK Set');
  if (keys.length > MAX_KEYS) throw new RemoteError('BAD_RESPONSE', `the issuer has more than ${MAX_KEYS} keys`);
  return new KeySet(keys.map(verificationKey).filter((key) => key !== null));
}

/** Returns null for a key that verifies no tokens here. */
function verificationKey(value: unknown): VerificationKey | null {
  if (typeof value !== 'object' || value === null) return null;
  const { kty, crv, n, e, x, y, kid, alg, use, key_ops: operations } = value as Record<string, unknown>;
  if (use !== undefined && use !== 'sig') return null;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return null;
  const fitting = algorithmsOf(kty, crv);
  const algorithms = alg === undefined ? fitting : fitting.filter((each) => each === alg);
  if (algorithms.length === 0) return null;
  const members = kty === 'RSA' ? { e, kty, n } : kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x };
  if (!Object.values(members).every((member) => typeof member === 'string')) return null;
  return { id: JSON.stringify(members), kid: typeof kid === 'string' ? kid : null, algorithms, jwk: members as JWK };
}

function algorithmsOf(kty: unknown, crv: unknown): readonly Algorithm[] {
  if (kty === 'RSA') return ['RS256', 'PS256'];
  if (kty === 'EC') return crv === 'P-256' ? ['ES256'] : crv === 'P-384' ? ['ES384'] : [];
  return kty === 'OKP' && crv === 'Ed25519' ? ['EdDSA', 'Ed25519'] : [];
}
