/**
 * The cipher alone, without the engine around it, optimized as in a release, and called over a small transfer area at
 * the end of its first pages.
 */
import { readFileSync } from 'node:fs';

interface Exports {
  readonly memory: WebAssembly.Memory;
  aeadSeal(key: number, nonce: number, ad: number, adLength: number, text: number, length: number, tag: number): void;
  aeadOpen(key: number, nonce: number, ad: number, adLength: number, text: number, length: number, tag: number): number;
  chachaBlock(key: number, counter: number, nonce: number, out: number): void;
  chachaFour(key: number, counter: number, nonce: number, out: number): void;
  chachaEight(key: number, counter: number, nonce: number, out: number): void;
  poly1305(key: number, message: number, length: number, tag: number): void;
  poly1305Woven(key: number, message: number, count: number, tag: number, wide: number): void;
  staticEnd(): number;
}

const KEY = 0x20000;
const NONCE = KEY + 32;
const AD = KEY + 64;
const TEXT = KEY + 4096;

export type ChachaWidth = 1 | 4 | 8;

const compiled = new WebAssembly.Module(readFileSync(new URL('../../../build/aead.test.wasm', import.meta.url)));

export class Cipher {
  readonly buffer: Uint8Array;
  readonly imports = WebAssembly.Module.imports(compiled);
  private readonly exports: Exports;

  constructor() {
    this.exports = new WebAssembly.Instance(compiled).exports as unknown as Exports;
    this.buffer = new Uint8Array(this.exports.memory.buffer);
  }

  /** Ciphertext ‖ tag. */
  seal(key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    this.load(key, nonce, ad, plaintext);
    const { length } = plaintext;
    this.exports.aeadSeal(KEY, NONCE, AD, ad.length, TEXT, length, TEXT + length);
    return this.buffer.slice(TEXT, TEXT + length + 16);
  }

  /** The bytes at the place of the text afterwards, and whether the tag was right. */
  open(key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, sealed: Uint8Array): { holds: boolean; text: Uint8Array } {
    this.load(key, nonce, ad, sealed);
    const length = sealed.length - 16;
    const holds = this.exports.aeadOpen(KEY, NONCE, AD, ad.length, TEXT, length, TEXT + length) !== 0;
    return { holds, text: this.buffer.slice(TEXT, TEXT + length) };
  }

  /** Key stream from block `counter` on, made by the function that computes `width` blocks at once. */
  keyStream(width: ChachaWidth, key: Uint8Array, nonce: Uint8Array, counter: number, length: number): Uint8Array {
    this.load(key, nonce, new Uint8Array(), new Uint8Array());
    const name = width === 1 ? 'chachaBlock' : width === 4 ? 'chachaFour' : 'chachaEight';
    for (let done = 0; done < length; done += 64 * width) this.exports[name](KEY, counter + done / 64, NONCE, TEXT + done);
    return this.buffer.slice(TEXT, TEXT + length);
  }

  poly1305(key: Uint8Array, message: Uint8Array): Uint8Array {
    this.load(key, new Uint8Array(), new Uint8Array(), message);
    this.exports.poly1305(KEY, TEXT, message.length, NONCE);
    return this.buffer.slice(NONCE, NONCE + 16);
  }

  /** Poly1305 of whole blocks by the code interleaved with the four-block or eight-block function. */
  poly1305Woven(width: 4 | 8, key: Uint8Array, message: Uint8Array): Uint8Array {
    this.load(key, new Uint8Array(), new Uint8Array(), message);
    this.exports.poly1305Woven(KEY, TEXT, message.length / 16, NONCE, width === 8 ? 1 : 0);
    return this.buffer.slice(NONCE, NONCE + 16);
  }

  /** A copy of all static memory of the cipher. */
  statics(): Uint8Array {
    return this.buffer.slice(0, this.exports.staticEnd());
  }

  /** Bytes right behind the last text and tag. */
  behind(length: number): Uint8Array {
    return this.buffer.slice(TEXT + length, TEXT + length + 64);
  }

  private load(key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, text: Uint8Array): void {
    this.buffer.fill(0xa5, KEY, TEXT + text.length + 1024);
    this.buffer.set(key, KEY);
    this.buffer.set(nonce, NONCE);
    this.buffer.set(ad, AD);
    this.buffer.set(text, TEXT);
  }
}

export function hex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replace(/[\s:]/g, ''), 'hex'));
}
