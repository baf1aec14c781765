/**
 * Writes one small map straight out, entry by entry, in the same bytes as `encode`: for the handshake, whose maps have a known form and are written
 * while somebody waits, by code that has run too seldom to be compiled.
 */
import { LocalError } from '../errors/index.ts';

const UNSIGNED = 0x00;
const BYTES = 0x40;
const TEXT = 0x60;
const MAP = 0xa0;
const TWO_TO_32 = 0x1_0000_0000;

/** A map of at most 23 entries whose names are ASCII of at most 23 letters, each given once. */
export class MapWriter {
  readonly #bytes: number[] = [MAP];

  /** @throws LocalError INVALID_ARGUMENT for anything but an integer from 0 to 2^53 - 1 */
  uint(name: string, value: number): this {
    if (!Number.isSafeInteger(value) || value < 0) throw new LocalError('INVALID_ARGUMENT', `CBOR: ${name} is not an unsigned integer`);
    this.#name(name);
    this.#head(UNSIGNED, value);
    return this;
  }

  bytes(name: string, value: Uint8Array): this {
    this.#name(name);
    this.#head(BYTES, value.length);
    this.#append(value);
    return this;
  }

  /** @param item CBOR already */
  item(name: string, item: Uint8Array): this {
    this.#name(name);
    this.#append(item);
    return this;
  }

  finish(): Uint8Array {
    return new Uint8Array(this.#bytes);
  }

  #name(name: string): void {
    this.#bytes[0]!++;
    this.#bytes.push(TEXT | name.length);
    for (let at = 0; at < name.length; at++) this.#bytes.push(name.charCodeAt(at));
  }

  #append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) this.#bytes.push(bytes[at]!);
  }

  #head(type: number, value: number): void {
    if (value < 24) this.#bytes.push(type | value);
    else if (value < 0x100) this.#bytes.push(type | 24, value);
    else if (value < 0x1_0000) this.#bytes.push(type | 25, value >>> 8, value & 0xff);
    else if (value < TWO_TO_32) this.#bytes.push(type | 26, ...word(value));
    else this.#bytes.push(type | 27, ...word(Math.floor(value / TWO_TO_32)), ...word(value));
  }
}

/** Low 32 bits, highest byte first. */
function word(value: number): readonly number[] {
  const low = value >>> 0;
  return [low >>> 24, (low >>> 16) & 0xff, (low >>> 8) & 0xff, low & 0xff];
}
