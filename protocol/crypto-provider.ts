/**
 * Cryptography and randomness that protocol/ needs from its platform: native in Node (platform/node/crypto.ts), noble
 * in browsers. The AEAD is not here: it is the core's (bindings `Aead`).
 */

/** An X25519 private key (RFC 7748). The raw bytes stay inside the platform; callers use it for Diffie-Hellman. */
export interface PrivateKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /**
   * Returns X25519 of this key with a peer's public key, 32 bytes. For an all-zero result (RFC 7748 §6.1) it may return
   * zeros or throw: callers treat both as an abort of the handshake.
   */
  diffieHellman(remotePublicKey: Uint8Array): Uint8Array;
  /** Returns the 32 private bytes, for storing the key as PKCS#8. The caller wipes its copy. */
  export(): Uint8Array;
  /** Overwrites the private bytes as far as the platform can. The key must not be used afterwards. */
  wipe(): void;
}

/** Cost parameters of scrypt (RFC 7914 §2): memory is 128 × `N` × `r` bytes, work grows with all three. */
export interface ScryptCost {
  /** A power of 2. */
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** Keys, hashes and randomness of one platform. */
export interface CryptoProvider {
  generateKey(): PrivateKey;
  /** @param raw 32 private bytes (RFC 7748 scalar before clamping), copied. */
  importKey(raw: Uint8Array): PrivateKey;
  /** Returns SHA-256 over the parts in order, 32 bytes. */
  sha256(...parts: readonly Uint8Array[]): Uint8Array;
  /** Returns HMAC-SHA-256 (RFC 2104) over the parts in order, 32 bytes. */
  hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array;
  /** Returns cryptographically secure random bytes. */
  randomBytes(length: number): Uint8Array;
  /** Returns `length` bytes of scrypt (RFC 7914). Runs off the event loop where the platform can. */
  scrypt(password: Uint8Array, salt: Uint8Array, cost: ScryptCost, length: number): Promise<Uint8Array>;
}
