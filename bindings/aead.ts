/**
 * ChaCha20-Poly1305 (RFC 8439) of the core, one message at a time, for the handshake and for callers that need the bare
 * cipher.
 *
 * Data packets do not come here: the core seals and opens them in place. A call copies key, additional data and text
 * into a transfer area of the core and the result out of it. That area limits lengths: 64 bytes of additional data,
 * 16,384 of text.
 */
import { LocalError } from './error.ts';

/** Bytes that sealing adds to the plaintext. */
export const TAG_LENGTH = 16;

const KEY_LENGTH = 32;
const NONCE_LENGTH = 12;
const TWO_TO_32 = 0x1_0000_0000;

/** ChaCha20-Poly1305 with a key per call. */
export interface Aead {
  /**
   * Returns ciphertext ‖ 16-byte tag.
   *
   * @param nonce counter below 2^53, encoded as 4 zero bytes ‖ u64 little-endian (Noise §12.3), or 12 bytes. Never
   *   twice with one key.
   * @throws LocalError INVALID_ARGUMENT for a key or nonce of the wrong length or more bytes than fit
   */
  seal(key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /** Returns the plaintext, or null when the tag does not match. Arguments as for `seal`. */
  open(key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, sealed: Uint8Array): Uint8Array | null;
  /**
   * As `seal` without allocation: writes to `target`, which may overlay the plaintext, and returns the number of bytes.
   */
  sealInto(target: Uint8Array, key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, plaintext: Uint8Array): number;
  /** As `open` without allocation: returns the number of bytes written to `target`, or -1 with `target` untouched. */
  openInto(target: Uint8Array, key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, sealed: Uint8Array): number;
}

/** The core's exports for the cipher (`core-as/aead/one-shot.ts`). */
export interface AeadExports {
  aeadKey(): number;
  aeadAd(): number;
  aeadAdSize(): number;
  aeadText(): number;
  aeadTextSize(): number;
  aeadSeal(nonce0: number, nonce1: number, nonce2: number, adLength: number, length: number): void;
  aeadOpen(nonce0: number, nonce1: number, nonce2: number, adLength: number, length: number): number;
}

/** The cipher of a core, over its transfer area. */
export class OneShotAead implements Aead {
  private readonly core: AeadExports;
  private readonly key: Uint8Array;
  private readonly ad: Uint8Array;
  private readonly text: Uint8Array;
  /**
   * View of the last result: messages of one size often follow each other, and making a view costs as much as copying
   * 1,000 bytes.
   */
  private result: Uint8Array;
  private nonce0 = 0;
  private nonce1 = 0;
  private nonce2 = 0;

  /** @param buffer all of the core's memory, which must never grow */
  constructor(core: AeadExports, buffer: Uint8Array) {
    this.core = core;
    this.key = buffer.subarray(core.aeadKey(), core.aeadKey() + KEY_LENGTH);
    this.ad = buffer.subarray(core.aeadAd(), core.aeadAd() + core.aeadAdSize());
    this.text = buffer.subarray(core.aeadText(), core.aeadText() + core.aeadTextSize() + TAG_LENGTH);
    this.result = this.text;
  }

  seal(key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    const target = new Uint8Array(plaintext.length + TAG_LENGTH);
    this.sealInto(target, key, nonce, ad, plaintext);
    return target;
  }

  open(key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
    const target = new Uint8Array(Math.max(0, sealed.length - TAG_LENGTH));
    return this.openInto(target, key, nonce, ad, sealed) < 0 ? null : target;
  }

  sealInto(target: Uint8Array, key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, plaintext: Uint8Array): number {
    const { length } = plaintext;
    this.load(key, nonce, ad, plaintext, length);
    this.core.aeadSeal(this.nonce0, this.nonce1, this.nonce2, ad.length, length);
    this.copyOut(target, length + TAG_LENGTH);
    return length + TAG_LENGTH;
  }

  openInto(target: Uint8Array, key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, sealed: Uint8Array): number {
    const length = sealed.length - TAG_LENGTH;
    if (length < 0) return -1;
    this.load(key, nonce, ad, sealed, length);
    if (!this.core.aeadOpen(this.nonce0, this.nonce1, this.nonce2, ad.length, length)) return -1;
    this.copyOut(target, length);
    return length;
  }

  private load(key: Uint8Array, nonce: number | Uint8Array, ad: Uint8Array, text: Uint8Array, length: number): void {
    if (key.length !== KEY_LENGTH) throw new LocalError('INVALID_ARGUMENT', `the key must have ${KEY_LENGTH} bytes, not ${key.length}`);
    if (ad.length > this.ad.length) {
      throw new LocalError('INVALID_ARGUMENT', `additional data may have ${this.ad.length} bytes, not ${ad.length}`);
    }
    if (length > this.text.length - TAG_LENGTH) {
      throw new LocalError('INVALID_ARGUMENT', `a message may have ${this.text.length - TAG_LENGTH} bytes, not ${length}`);
    }
    if (typeof nonce === 'number') this.setCounter(nonce);
    else this.setNonce(nonce);
    this.key.set(key);
    this.ad.set(ad);
    this.text.set(text);
  }

  private setCounter(counter: number): void {
    this.nonce0 = 0;
    this.nonce1 = counter >>> 0;
    this.nonce2 = 0;
    if (this.nonce1 === counter) return;
    if (!Number.isSafeInteger(counter) || counter < 0)
      throw new LocalError('INVALID_ARGUMENT', `a nonce counter is an integer from 0 to 2^53 - 1, not ${counter}`);
    this.nonce2 = Math.floor(counter / TWO_TO_32);
  }

  private setNonce(nonce: Uint8Array): void {
    if (nonce.length !== NONCE_LENGTH) {
      throw new LocalError('INVALID_ARGUMENT', `the nonce must have ${NONCE_LENGTH} bytes, not ${nonce.length}`);
    }
    const view = new DataView(nonce.buffer, nonce.byteOffset, NONCE_LENGTH);
    this.nonce0 = view.getUint32(0, true);
    this.nonce1 = view.getUint32(4, true);
    this.nonce2 = view.getUint32(8, true);
  }

  private copyOut(target: Uint8Array, length: number): void {
    if (target.length < length) throw new LocalError('INVALID_ARGUMENT', `the target has ${target.length} bytes, ${length} are needed`);
    if (this.result.length !== length) this.result = this.text.subarray(0, length);
    target.set(this.result);
  }
}
