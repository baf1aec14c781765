/** The cipher the handshake runs on: ChaCha20-Poly1305 of RFC 8439 with Noise's nonce. The core's `Aead` has this shape. */

/** The part of a cipher that a handshake needs. */
export interface Aead {
  /** @param nonce counter below 2^53; goes out as 4 zero bytes ‖ u64 little-endian (Noise §12.3). Gives ciphertext ‖ 16-byte tag. */
  seal(key: Uint8Array, nonce: number, associatedData: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /** The plaintext, or null when the tag does not hold. */
  open(key: Uint8Array, nonce: number, associatedData: Uint8Array, sealed: Uint8Array): Uint8Array | null;
}
