/**
 * Crypto for tests: the same suites run over Node's native X25519 and SHA-256 and over noble. Both are seeded, so a run
 * repeats exactly.
 */
import { createHash, createHmac, createPrivateKey, createPublicKey, diffieHellman, type KeyObject, scryptSync } from 'node:crypto';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { nobleCrypto } from '../../platform/noble-crypto.ts';
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';
import type { Aead } from '../../protocol/noise/index.ts';

/** A seeded generator of numbers in [0, 1): mulberry32. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Seeded bytes, for keys and tokens of tests. */
export function seededBytes(seed: number): (length: number) => Uint8Array {
  const next = generator(seed);
  return (length) => {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = Math.floor(next() * 256);
    return bytes;
  };
}

/** Node's native crypto with seeded randomness. */
export function nativeHost(seed: number): CryptoProvider {
  const randomBytes = seededBytes(seed);
  return {
    generateKey: () => new NativeKey(randomBytes(32)),
    importKey: (raw) => new NativeKey(raw.slice()),
    sha256: (...parts) => {
      const hash = createHash('sha256');
      for (const part of parts) hash.update(part);
      return new Uint8Array(hash.digest());
    },
    hmacSha256: (key, ...parts) => {
      const hmac = createHmac('sha256', key);
      for (const part of parts) hmac.update(part);
      return new Uint8Array(hmac.digest());
    },
    randomBytes,
    scrypt: async (password, salt, cost, length) => new Uint8Array(scryptSync(password, salt, length, cost)),
  };
}

/** noble with seeded randomness. */
export function nobleHost(seed: number): CryptoProvider {
  return nobleCrypto(seededBytes(seed));
}

/** Both platforms, for `describe.each`. */
export const hosts: readonly [string, (seed: number) => CryptoProvider][] = [
  ['native', nativeHost],
  ['noble', nobleHost],
];

/** The handshake's cipher over @noble/ciphers. */
export const nobleAead: Aead = {
  seal: (key, nonce, associatedData, plaintext) => chacha20poly1305(key, nonceBytes(nonce), associatedData).encrypt(plaintext),
  open: (key, nonce, associatedData, sealed) => {
    try {
      return chacha20poly1305(key, nonceBytes(nonce), associatedData).decrypt(sealed);
    } catch {
      return null;
    }
  },
};

function nonceBytes(counter: number): Uint8Array {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setBigUint64(4, BigInt(counter), true);
  return nonce;
}

const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI = Buffer.from('302a300506032b656e032100', 'hex');

class NativeKey implements PrivateKey {
  readonly publicKey: Uint8Array;
  readonly #raw: Uint8Array;
  readonly #key: KeyObject;

  constructor(raw: Uint8Array) {
    this.#raw = raw;
    this.#key = createPrivateKey({ key: Buffer.concat([PKCS8, raw]), format: 'der', type: 'pkcs8' });
    this.publicKey = new Uint8Array(createPublicKey(this.#key).export({ format: 'der', type: 'spki' }).subarray(SPKI.length));
  }

  diffieHellman(remotePublicKey: Uint8Array): Uint8Array {
    const publicKey = createPublicKey({ key: Buffer.concat([SPKI, remotePublicKey]), format: 'der', type: 'spki' });
    return new Uint8Array(diffieHellman({ privateKey: this.#key, publicKey }));
  }

  export(): Uint8Array {
    return this.#raw.slice();
  }

  wipe(): void {
    this.#raw.fill(0);
  }
}
