/**
 * Random bytes in small pieces, drawn from the host in larger ones: one draw costs as much as a whole small packet. For
 * tokens, which every party on the connection sees, not for keys.
 */
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';

/** Bytes drawn at a time. */
const DRAW = 512;

export class RandomPool {
  readonly #crypto: CryptoProvider;
  #bytes: Uint8Array = new Uint8Array(0);
  #used = 0;

  constructor(crypto: CryptoProvider) {
    this.#crypto = crypto;
  }

  /** @param length at most 512 @returns fresh bytes, never handed out twice */
  take(length: number): Uint8Array {
    if (this.#used + length > this.#bytes.length) {
      this.#bytes = this.#crypto.randomBytes(DRAW);
      this.#used = 0;
    }
    const taken = new Uint8Array(length);
    for (let index = 0; index < length; index++) taken[index] = this.#bytes[this.#used + index]!;
    this.#bytes.fill(0, this.#used, this.#used + length);
    this.#used += length;
    return taken;
  }
}
