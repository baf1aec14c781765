/**
 * CipherState (Noise rev. 34 §5.1): a key and a counting nonce. Without a key it passes bytes through.
 *
 * Rekey is not here: after the handshake the core encrypts and does its own key updates.
 */

/** The part of a cipher that a handshake needs. */
export interface Aead {
  /**
   * Returns ciphertext ‖ 16-byte tag.
   * @param nonce counter below 2^53, encoded as 4 zero bytes ‖ u64 little-endian (Noise §12.3)
   */
  seal(key: Uint8Array, nonce: number, associatedData: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /** Returns the plaintext, or null when the tag does not verify. */
  open(key: Uint8Array, nonce: number, associatedData: Uint8Array, sealed: Uint8Array): Uint8Array | null;
}

/** Key and nonce of one direction of a handshake. */
export class CipherState {
  readonly #aead: Aead;
  #key: Uint8Array | null;
  #nonce: number;

  constructor(aead: Aead, key: Uint8Array | null = null, nonce = 0) {
    this.#aead = aead;
    this.#key = key;
    this.#nonce = nonce;
  }

  get hasKey(): boolean {
    return this.#key !== null;
  }

  encryptWithAd(associatedData: Uint8Array, plaintext: Uint8Array): Uint8Array {
    if (this.#key === null) return plaintext.slice();
    return this.#aead.seal(this.#key, this.#nonce++, associatedData, plaintext);
  }

  /** Returns the plaintext, or null when the tag does not verify; the nonce then does not advance. */
  decryptWithAd(associatedData: Uint8Array, ciphertext: Uint8Array): Uint8Array | null {
    if (this.#key === null) return ciphertext.slice();
    const plaintext = this.#aead.open(this.#key, this.#nonce, associatedData, ciphertext);
    if (plaintext !== null) this.#nonce++;
    return plaintext;
  }

  clone(): CipherState {
    return new CipherState(this.#aead, this.#key, this.#nonce);
  }

  wipe(): void {
    this.#key?.fill(0);
    this.#key = null;
  }
}
