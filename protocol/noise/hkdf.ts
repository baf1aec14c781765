/** HKDF of Noise (rev. 34 §4.3): RFC 5869 with the chaining key as salt and empty info; two outputs of 32 bytes. */
import type { CryptoProvider } from '../crypto-provider.ts';

const ONE = Uint8Array.of(1);
const TWO = Uint8Array.of(2);

/** Returns HKDF(chainingKey, input, 2). */
export function hkdf2(crypto: Pick<CryptoProvider, 'hmacSha256'>, chainingKey: Uint8Array, input: Uint8Array): [Uint8Array, Uint8Array] {
  const temporary = crypto.hmacSha256(chainingKey, input);
  const first = crypto.hmacSha256(temporary, ONE);
  const second = crypto.hmacSha256(temporary, first, TWO);
  temporary.fill(0);
  return [first, second];
}
