/** Contenders that seal and open a message with ChaCha20-Poly1305 in any JavaScript engine, into an existing buffer. */
import { ChaCha20Poly1305, newInstance } from '@chainsafe/as-chacha20poly1305';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { Core } from '../bindings/index.ts';
import type { Contender } from './rounds.ts';

export const TAG = 16;

export interface Message {
  readonly key: Uint8Array;
  readonly ad: Uint8Array;
  readonly plaintext: Uint8Array;
  /** Sealed under nonce 0. */
  readonly sealed: Uint8Array;
  readonly target: Uint8Array;
}

/** Returns a message of `size` random bytes with 13 bytes of additional data. */
export function message(size: number): Message {
  const [key, ad, plaintext] = [random(32), random(13), random(size)] as const;
  const sealed = chacha20poly1305(key, new Uint8Array(12), ad).encrypt(plaintext);
  return { key, ad, plaintext, sealed, target: new Uint8Array(size + TAG) };
}

/** Contenders that seal, each time under a new nonce. */
export function sealers({ key, ad, plaintext, target }: Message): Contender[] {
  const { aead } = Core.create();
  const chainsafe = new ChaCha20Poly1305(newInstance());
  const nonce = new Nonce();
  let counter = 0;
  return [
    { name: 'ours', run: () => aead.sealInto(target, key, counter++, ad, plaintext) },
    { name: '@noble/ciphers', run: () => chacha20poly1305(key, nonce.next(), ad).encrypt(plaintext, target) },
    { name: '@chainsafe/as-chacha20poly1305', run: () => chainsafe.seal(key, nonce.next(), plaintext, ad, target) },
  ];
}

/** Contenders that open the same message every time. */
export function openers({ key, ad, plaintext, sealed, target }: Message): Contender[] {
  const { aead } = Core.create();
  const chainsafe = new ChaCha20Poly1305(newInstance());
  const nonce = new Uint8Array(12);
  const opened = target.subarray(0, plaintext.length);
  return [
    {
      name: 'ours',
      run: () => {
        if (aead.openInto(opened, key, 0, ad, sealed) < 0) throw new Error('the tag does not hold');
      },
    },
    { name: '@noble/ciphers', run: () => chacha20poly1305(key, nonce, ad).decrypt(sealed, opened) },
    {
      name: '@chainsafe/as-chacha20poly1305',
      run: () => {
        if (!chainsafe.open(key, nonce, sealed, ad, opened)) throw new Error('the tag does not hold');
      },
    },
  ];
}

/** A nonce of 4 zero bytes and a counter, in one reused buffer. */
export class Nonce {
  readonly #bytes = new Uint8Array(12);
  readonly #words = new DataView(this.#bytes.buffer);
  #counter = 0;

  next(): Uint8Array {
    this.#words.setUint32(4, this.#counter++, true);
    return this.#bytes;
  }
}

function random(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}
