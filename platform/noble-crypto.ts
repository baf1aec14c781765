/**
 * The host's cryptography in plain JavaScript, over the audited noble libraries: for browsers and for the simulator.
 * Node has a native one (`platform/node/crypto.ts`, 35 times faster at X25519); one test suite covers both.
 *
 * Randomness is an argument: the browser's generator, or a seeded one in the simulator. JavaScript cannot guarantee
 * constant time or that a copy of a key is erased; noble does what can be done (docs/cryptography.md).
 */
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { CryptoProvider, PrivateKey } from '../protocol/crypto-provider.ts';
import { checkPrivateKey, KEY_LENGTH } from '../protocol/identity/index.ts';

/** @param randomBytes cryptographically secure outside of simulations */
export function nobleCrypto(randomBytes: (length: number) => Uint8Array): CryptoProvider {
  return {
    generateKey: () => new NobleKey(randomBytes(KEY_LENGTH)),
    importKey: (raw) => new NobleKey(Uint8Array.from(checkPrivateKey(raw))),
    sha256: (...parts) => digest(sha256.create(), parts),
    hmacSha256: (key, ...parts) => digest(hmac.create(sha256, key), parts),
    randomBytes,
    scrypt: (password, salt, cost, dkLen) => scryptAsync(password, salt, { ...cost, dkLen }),
  };
}

class NobleKey implements PrivateKey {
  readonly publicKey: Uint8Array;
  readonly #raw: Uint8Array;

  constructor(raw: Uint8Array) {
    this.#raw = raw;
    this.publicKey = x25519.getPublicKey(raw);
  }

  /** Throws on an all-zero result (RFC 7748 §6.1), as {@link PrivateKey.diffieHellman} allows. */
  diffieHellman(remotePublicKey: Uint8Array): Uint8Array {
    return x25519.getSharedSecret(this.#raw, remotePublicKey);
  }

  export(): Uint8Array {
    return this.#raw.slice();
  }

  wipe(): void {
    this.#raw.fill(0);
  }
}

function digest(hash: { update(part: Uint8Array): unknown; digest(): Uint8Array }, parts: readonly Uint8Array[]): Uint8Array {
  for (const part of parts) hash.update(part);
  return hash.digest();
}
