/**
 * CBOR (RFC 8949) as far as PROTOCOL.md §7 has it: integers, strings, arrays, maps with text keys, true, false and
 * null; no tags.
 */
import { demand, Refused } from './crypto.ts';

export type Cbor = number | string | boolean | null | Buffer | readonly Cbor[] | CborMap;
export interface CborMap {
  readonly [key: string]: Cbor;
}

const INDEFINITE = 31;
const BREAK = 0xff;
const DEPTH = 16;

/** One item that fills the bytes. @throws Refused */
export function decodeCbor(bytes: Uint8Array): Cbor {
  const reader = new Reader(Buffer.from(bytes));
  const value = reader.item(DEPTH);
  demand(reader.at === bytes.length, 'bytes behind the CBOR item');
  return value;
}

/** The same, which must be a map. */
export function decodeMap(bytes: Uint8Array): CborMap {
  const value = decodeCbor(bytes);
  demand(typeof value === 'object' && value !== null && !Buffer.isBuffer(value) && !Array.isArray(value), 'no CBOR map');
  return value as CborMap;
}

class Reader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  item(depth: number): Cbor {
    demand(depth > 0, 'CBOR is nested too deeply');
    const head = this.#take(1)[0]!;
    const [major, information] = [head >> 5, head & 31];
    if (major === 7) return simple(information);
    if (major === 2 || major === 3) {
      const bytes = this.#string(major, information);
      return major === 2 ? bytes : bytes.toString('utf8');
    }
    if (major === 4) return [...this.#items(information, () => this.item(depth - 1))];
    if (major === 5) return this.#map(information, depth);
    demand(major !== 6, 'a CBOR tag');
    const value = this.#argument(information);
    return major === 0 ? value : -1 - value;
  }

  #map(information: number, depth: number): CborMap {
    const map: Record<string, Cbor> = {};
    for (const key of this.#items(information, () => this.item(depth - 1))) {
      demand(typeof key === 'string' && !Object.hasOwn(map, key), 'a CBOR key that is no text, or comes twice');
      map[key] = this.item(depth - 1);
    }
    return map;
  }

  /** Each element of an array, or each key of a map. */
  *#items(information: number, next: () => Cbor): Generator<Cbor> {
    if (information !== INDEFINITE) for (let left = this.#argument(information); left > 0; left--) yield next();
    else for (; !this.#isBreak(); ) yield next();
  }

  #string(major: number, information: number): Buffer {
    if (information !== INDEFINITE) return this.#take(this.#argument(information));
    const chunks: Buffer[] = [];
    while (!this.#isBreak()) {
      const head = this.#take(1)[0]!;
      demand(head >> 5 === major && (head & 31) !== INDEFINITE, 'a chunk of another kind');
      chunks.push(this.#take(this.#argument(head & 31)));
    }
    return Buffer.concat(chunks);
  }

  #isBreak(): boolean {
    if (this.#bytes[this.at] !== BREAK) return false;
    this.at++;
    return true;
  }

  #argument(information: number): number {
    if (information < 24) return information;
    demand(information <= 27, 'a reserved CBOR length');
    const bytes = this.#take(2 ** (information - 24));
    const value = Number(BigInt(`0x${bytes.toString('hex')}`));
    demand(Number.isSafeInteger(value), 'a CBOR integer above 2^53');
    return value;
  }

  #take(length: number): Buffer {
    demand(this.at + length <= this.#bytes.length, 'CBOR ends early');
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }
}

function simple(information: number): Cbor {
  if (information === 20 || information === 21) return information === 21;
  if (information === 22) return null;
  throw new Refused(`the CBOR simple value ${information}`);
}
