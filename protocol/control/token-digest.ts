/**
 * The digest by which a device and its base station detect that both have the same list of server connect tokens
 * (PROTOCOL.md §7): SHA-256 over the SHA-256 hashes of the tokens, each once, in ascending order. A base station
 * computes it from the hashes, which are all that it keeps.
 */
import { hex } from '@scure/base';
import type { CryptoProvider } from '../crypto-provider.ts';

type Sha256 = Pick<CryptoProvider, 'sha256'>;

/** Returns the digest of a list of tokens, 32 bytes. */
export function digestOfTokens(tokens: readonly string[], crypto: Sha256): Uint8Array {
  const text = new TextEncoder();
  return digestOfTokenHashes(
    tokens.map((token) => hex.encode(crypto.sha256(text.encode(token)))),
    crypto,
  );
}

/** As {@link digestOfTokens}, from the tokens' SHA-256 hashes. @param hashes 64 lower-case hex digits each */
export function digestOfTokenHashes(hashes: readonly string[], crypto: Sha256): Uint8Array {
  // Lower-case hex sorts in the order of the bytes.
  const sorted = [...new Set(hashes)].sort();
  return crypto.sha256(hex.decode(sorted.join('')));
}
