/**
 * Writes one small map entry by entry, in the same bytes as `encode`. For the handshake: its maps have a known form and
 * are written while a peer waits, by code that has run too seldom for the engine to compile it.
 */
import { LocalError } from '../errors/index.ts';
import { CborWriter, MajorType } from './writer.ts';

/** A map; each name must be written once. */
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

  /** @param item already encoded CBOR */
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
