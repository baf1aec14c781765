/**
 * Writes one small map straight out, entry by entry, in the same bytes as `encode`: for the handshake, whose maps have a known form and are written
 * while somebody waits, by code that has run too seldom to be compiled.
 */
import { LocalError } from '../errors/index.ts';
import { CborWriter, MajorType } from './writer.ts';

/** A map whose names are given once each. */
export class MapWriter {
  readonly #entries = new CborWriter();
  #count = 0;

  /** @throws LocalError INVALID_ARGUMENT for anything but an integer from 0 to 2^53 - 1 */
  uint(name: string, value: number): this {
    if (!Number.isSafeInteger(value) || value < 0) throw new LocalError('INVALID_ARGUMENT', `CBOR: ${name} is not an unsigned integer`);
    this.#name(name).head(MajorType.unsigned, value);
    return this;
  }

  bytes(name: string, value: Uint8Array): this {
    this.#name(name).bytes(value);
    return this;
  }

  /** @param item CBOR already */
  item(name: string, item: Uint8Array): this {
    this.#name(name).raw(item);
    return this;
  }

  finish(): Uint8Array {
    const map = new CborWriter();
    map.head(MajorType.map, this.#count);
    map.raw(this.#entries.finish());
    return map.finish();
  }

  #name(name: string): CborWriter {
    this.#count++;
    this.#entries.text(name);
    return this.#entries;
  }
}
