/**
 * SymmetricState (Noise rev. 34 §5.2): chaining key, handshake hash and the cipher of the handshake.
 *
 * Byte arrays held here are replaced, never changed in place, so that a copy of the state is cheap: see HandshakeState.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { type Aead, CipherState } from './cipher-state.ts';

const EMPTY = new Uint8Array(0);
const HASH_LENGTH = 32;

/** The state that both ends of a handshake share so far. */
export class SymmetricState {
  readonly #crypto: CryptoProvider;
  readonly #aead: Aead;
  #cipher: CipherState;
  #chainingKey: Uint8Array;
  #hash: Uint8Array;

  private constructor(crypto: CryptoProvider, aead: Aead, cipher: CipherState, chainingKey: Uint8Array, hash: Uint8Array) {
    this.#crypto = crypto;
    this.#aead = aead;
    this.#cipher = cipher;
    this.#chainingKey = chainingKey;
    this.#hash = hash;
  }

  /** InitializeSymmetric(protocol_name). */
  static initialize(crypto: CryptoProvider, aead: Aead, protocolName: string): SymmetricState {
    const name = new TextEncoder().encode(protocolName);
    const hash = name.length <= HASH_LENGTH ? padded(name) : crypto.sha256(name);
    return new SymmetricState(crypto, aead, new CipherState(aead), hash, hash);
  }

  /** h: after the last message it identifies the handshake and binds what runs over it. */
  get hash(): Uint8Array {
    return this.#hash;
  }

  /** True once a key is mixed in; from then on `s` and payloads carry a tag. */
  get hasKey(): boolean {
    return this.#cipher.hasKey;
  }

  mixKey(input: Uint8Array): void {
    const [chainingKey, key] = hkdf2(this.#crypto, this.#chainingKey, input);
    this.#chainingKey = chainingKey;
    this.#cipher = new CipherState(this.#aead, key);
  }

  mixHash(data: Uint8Array): void {
    this.#hash = this.#crypto.sha256(this.#hash, data);
  }

  encryptAndHash(plaintext: Uint8Array): Uint8Array {
    const ciphertext = this.#cipher.encryptWithAd(this.#hash, plaintext);
    this.mixHash(ciphertext);
    return ciphertext;
  }

  /** Returns the plaintext, or null when the tag does not verify. */
  decryptAndHash(ciphertext: Uint8Array): Uint8Array | null {
    const plaintext = this.#cipher.decryptWithAd(this.#hash, ciphertext);
    if (plaintext !== null) this.mixHash(ciphertext);
    return plaintext;
  }

  /** Derives two keys from the chaining key and a label. The empty label is Split() of Noise. */
  derive(label: Uint8Array = EMPTY): [Uint8Array, Uint8Array] {
    return hkdf2(this.#crypto, this.#chainingKey, label);
  }

  clone(): SymmetricState {
    return new SymmetricState(this.#crypto, this.#aead, this.#cipher.clone(), this.#chainingKey, this.#hash);
  }

  wipe(): void {
    this.#cipher.wipe();
    // The first chaining key is the hash of a public name and may be shared with `hash`, which stays readable.
    if (this.#chainingKey !== this.#hash) this.#chainingKey.fill(0);
    this.#chainingKey = EMPTY;
  }
}

function padded(name: Uint8Array): Uint8Array {
  const block = new Uint8Array(HASH_LENGTH);
  block.set(name);
  return block;
}

const ONE = Uint8Array.of(1);
const TWO = Uint8Array.of(2);

/** Returns HKDF(chainingKey, input, 2). */
export function hkdf2(crypto: Pick<CryptoProvider, 'hmacSha256'>, chainingKey: Uint8Array, input: Uint8Array): [Uint8Array, Uint8Array] {
  const temporary = crypto.hmacSha256(chainingKey, input);
  const first = crypto.hmacSha256(temporary, ONE);
  const second = crypto.hmacSha256(temporary, first, TWO);
  temporary.fill(0);
  return [first, second];
}
