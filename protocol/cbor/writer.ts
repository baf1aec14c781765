/**
 * Writes CBOR items in sequence (RFC 8949 §3): heads in their shortest form, strings, doubles. The contents of an array
 * or map follow its head.
 */

export const MajorType = { unsigned: 0x00, negative: 0x20, bytes: 0x40, text: 0x60, array: 0x80, map: 0xa0 } as const;
export type MajorType = (typeof MajorType)[keyof typeof MajorType];

export const FALSE = 0xf4;
export const TRUE = 0xf5;
export const NULL = 0xf6;
const DOUBLE = 0xfb;
const DOUBLE_LENGTH = 8;
const TWO_TO_32 = 0x1_0000_0000;
const FIRST_ROOM = 64;
const LONGEST_HEAD = 9;

const utf8 = new TextEncoder();

export class CborWriter {
  #bytes = new Uint8Array(FIRST_ROOM);
  #length = 0;

  /**
   * @param value an integer from 0 to 2^53 - 1: the number itself, or the count of bytes, items or pairs that follow
   */
  head(type: MajorType, value: number): void {
    this.#reserve(LONGEST_HEAD);
    if (value < 24) this.#put(type | value);
    else if (value < 0x100) this.#put(type | 24, value);
    else if (value < 0x1_0000) this.#put(type | 25, value >>> 8, value);
    else {
      this.#put(type | (value < TWO_TO_32 ? 26 : 27));
      if (value >= TWO_TO_32) this.#word(Math.floor(value / TWO_TO_32));
      this.#word(value);
    }
  }

  /** Writes one of the simple values. */
  simple(value: typeof FALSE | typeof TRUE | typeof NULL): void {
    this.#reserve(1);
    this.#put(value);
  }

  /** Writes any number as a double. */
  double(value: number): void {
    this.#reserve(1 + DOUBLE_LENGTH);
    this.#put(DOUBLE);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value);
    this.#length += DOUBLE_LENGTH;
  }

  /** @param text without lone surrogates */
  text(text: string): void {
    const bytes = utf8.encode(text);
    this.head(MajorType.text, bytes.length);
    this.raw(bytes);
  }

  bytes(bytes: Uint8Array): void {
    this.head(MajorType.bytes, bytes.length);
    this.raw(bytes);
  }

  /** Writes bytes unchanged: an item that is already CBOR. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Returns the bytes written. The writer wipes its own copy, since messages hold tokens. */
  finish(): Uint8Array {
    const result = this.#bytes.slice(0, this.#length);
    this.#bytes.fill(0);
    this.#length = 0;
    return result;
  }

  #put(...bytes: readonly number[]): void {
    for (const byte of bytes) this.#bytes[this.#length++] = byte;
  }

  /** Writes the low 32 bits, highest byte first. */
  #word(value: number): void {
    this.#put(value >>> 24, value >>> 16, value >>> 8, value);
  }

  #reserve(length: number): void {
    const needed = this.#length + length;
    if (needed <= this.#bytes.length) return;
    const old = this.#bytes;
    this.#bytes = new Uint8Array(Math.max(needed, 2 * old.length));
    this.#bytes.set(old);
    old.fill(0);
  }
}
