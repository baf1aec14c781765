/**
 * What protocol/ needs from its host in cryptography and randomness: native in Node (transport/node/crypto.ts), noble in browsers.
 * The AEAD is not here: it is the core's (bindings `Aead`).
 */

/** An X25519 private key (RFC 7748). The raw bytes stay inside the host; only Diffie-Hellman leaves it. */
export interface PrivateKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /**
   * X25519 of this key with a peer's public key, 32 bytes. An all-zero result (RFC 7748 §6.1) may be returned as zeros or thrown:
   * callers treat both as an abort of the handshake.
   */
  diffieHellman(remotePublicKey: Uint8Array): Uint8Array;
  /** The 32 private bytes, for storing the key as PKCS#8. The caller wipes its copy. */
  export(): Uint8Array;
  /** Overwrites the private bytes as far as the host can. The key must not be used afterwards. */
  wipe(): void;
}

/** Cost parameters of scrypt (RFC 7914 §2): memory is 128 × `N` × `r` bytes, work grows with all three. */
export interface ScryptCost {
  /** A power of 2. */
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** Keys, hashes and randomness of one host. */
export interface CryptoProvider {
  generateKey(): PrivateKey;
  /** @param raw 32 private bytes (RFC 7748 scalar before clamping), copied. */
  importKey(raw: Uint8Array): PrivateKey;
  /** SHA-256 over the parts in order, 32 bytes. */
  sha256(...parts: readonly Uint8Array[]): Uint8Array;
  /** HMAC-SHA-256 (RFC 2104) over the parts in order, 32 bytes. */
  hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array;
  /** Cryptographically secure random bytes. */
  randomBytes(length: number): Uint8Array;
  /** scrypt (RFC 7914), `length` bytes. Off the event loop where the host can. */
  scrypt(password: Uint8Array, salt: Uint8Array, cost: ScryptCost, length: number): Promise<Uint8Array>;
}
