/** The cipher of the handshake: ChaCha20-Poly1305 of RFC 8439 with Noise's nonce. The core's `Aead` has this shape. */

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
