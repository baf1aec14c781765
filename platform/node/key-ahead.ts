/**
 * One X25519 key made ahead. A key costs as much as two packets, and a handshake needs a new one exactly when a caller
 * waits for it: so the next one is made in the turn of the event loop after one was taken, while the peer computes its
 * part.
 */
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';

/** Returns the same crypto with a key in stock, for one environment. */
export function withKeyAhead(crypto: CryptoProvider): CryptoProvider {
  let next: PrivateKey | null = null;
  const prepare = (): void => {
    next ??= crypto.generateKey();
  };
  return {
    ...crypto,
    generateKey() {
      const key = next ?? crypto.generateKey();
      next = null;
      setImmediate(prepare);
      return key;
    },
  };
}
