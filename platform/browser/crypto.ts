/**
 * The platform's cryptography in browsers: noble, with the browser's generator. WebCrypto has X25519, too, but only
 * asynchronously.
 */
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { nobleCrypto } from '../noble-crypto.ts';

/** `getRandomValues` fills at most this many bytes per call (Web Cryptography, §10.1.1). */
const QUOTA = 65_536;

/** The cryptography of this page or worker. */
export function browserCrypto(): CryptoProvider {
  return nobleCrypto((length) => {
    const bytes = new Uint8Array(length);
    for (let start = 0; start < length; start += QUOTA) crypto.getRandomValues(bytes.subarray(start, start + QUOTA));
    return bytes;
  });
}
