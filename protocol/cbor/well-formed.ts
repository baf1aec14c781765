/**
 * Walks CBOR bytes before they are decoded (RFC 8949 appendix C) and refuses everything outside the plain subset.
 *
 * Accepted: integers of at most 53 bits, byte and text strings, arrays, maps, false, true, null and floats of all three widths;
 * definite and indefinite lengths. Refused: tags, undefined and other simple values, reserved encodings, keys that are not text,
 * a key twice in one map (compared after joining chunks), the key `__proto__` (a plain object cannot hold it), text that is not UTF-8,
 * nesting, counts and sizes over the limits, missing or further bytes.
 *
 * Counts are compared with the bytes that are left before anything is looped over, so the work is bounded by the input's size.
 * The walk keeps nothing but the keys of the maps it stands in. It does not build values: `codec.ts` does.
 */
import { RemoteError } from '../errors/index.ts';

/** What `decode` takes at most. */
export interface CborLimits {
  /** Bytes of the whole input. Default 1 MiB. */
  readonly bytes?: number;
  /** Arrays and maps inside each other. Default and maximum 16. */
  readonly depth?: number;
  /** Items of the whole input, keys and chunks included. Default 65,536. */
  readonly items?: number;
}

/** Nesting that is read and written. */
export const MAX_DEPTH = 16;

const DEFAULT_BYTES = 1 << 20;
const DEFAULT_ITEMS = 65_536;

/** Largest high word of a 64-bit integer that is still below 2^53. */
const MAX_HIGH_WORD = 0x1fffff;
/** Texts longer than this lose a leading byte order mark in cbor-x. */
export const LONG_TEXT = 64;

export const MajorType = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, other: 7 } as const;

/** Additional information 31: indefinite length, or the break that ends it. */
export const INDEFINITE = 31;
export const BREAK = 0xff;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Checks that `bytes` is exactly one item of the subset.
 * @returns true when cbor-x cannot read the bytes as they are and `normalize` has to rewrite them first
 * @throws RemoteError PARSE
 */
export function checkWellFormed(bytes: Uint8Array, limits: CborLimits = {}): boolean {
  if (bytes.length > (limits.bytes ?? DEFAULT_BYTES)) fail('too long', 0);
  const walk = new Walk(bytes, limits.items ?? DEFAULT_ITEMS, Math.min(limits.depth ?? MAX_DEPTH, MAX_DEPTH));
  walk.item(0);
  walk.end();
  return walk.unusual;
}

class Walk {
  /** Set when the bytes hold a form that cbor-x reads wrongly or not at all. */
  unusual = false;
  readonly #bytes: Uint8Array;
  readonly #maxDepth: number;
  #itemsLeft: number;
  #offset = 0;

  constructor(bytes: Uint8Array, maxItems: number, maxDepth: number) {
    this.#bytes = bytes;
    this.#itemsLeft = maxItems;
    this.#maxDepth = maxDepth;
  }

  item(depth: number): void {
    const initial = this.#initial();
    const information = initial & 31;
    const type = initial >> 5;
    if (type <= MajorType.negative) this.#integer(information, type === MajorType.unsigned ? 0xffffffff : 0xfffffffe);
    else if (type === MajorType.bytes) this.#byteString(information);
    else if (type === MajorType.text) this.#text(information);
    else if (type === MajorType.array) this.#array(information, depth + 1);
    else if (type === MajorType.map) this.#map(information, depth + 1);
    else if (type === MajorType.tag) fail('a tag', this.#offset - 1);
    else this.#simpleOrFloat(information);
  }

  end(): void {
    if (this.#offset !== this.#bytes.length) fail('bytes after the item', this.#offset);
  }

  #initial(): number {
    if (this.#itemsLeft-- <= 0) fail('too many items', this.#offset);
    this.#require(1);
    return this.#bytes[this.#offset++]!;
  }

  /** @param maxLow largest low word beside the largest high word: -1 - n reaches the limit one earlier than n */
  #integer(information: number, maxLow: number): void {
    if (information !== 27) {
      this.#argument(information);
      return;
    }
    const high = this.#word(4);
    const low = this.#word(4);
    if (high > MAX_HIGH_WORD || (high === MAX_HIGH_WORD && low > maxLow)) fail('an integer of more than 53 bits', this.#offset - 8);
    this.unusual = true;
  }

  #byteString(information: number): void {
    if (information === INDEFINITE) this.#chunks(MajorType.bytes, (length) => this.#skip(length));
    else this.#skip(this.#argument(information));
  }

  #text(information: number): string {
    if (information !== INDEFINITE) return this.#utf8(this.#argument(information));
    let text = '';
    this.#chunks(MajorType.text, (length) => {
      text += this.#utf8(length);
    });
    return text;
  }

  /** Chunks of an indefinite-length string: definite strings of the same type up to the break. */
  #chunks(type: number, chunk: (length: number) => void): void {
    this.unusual = true;
    while (!this.#atBreak()) {
      const initial = this.#initial();
      if (initial >> 5 !== type || (initial & 31) === INDEFINITE) fail('a chunk of another type', this.#offset - 1);
      chunk(this.#argument(initial & 31));
    }
  }

  #array(information: number, depth: number): void {
    this.#checkDepth(depth);
    if (information === INDEFINITE) {
      while (!this.#atBreak()) this.item(depth);
      return;
    }
    const count = this.#argument(information);
    this.#require(count);
    for (let i = 0; i < count; i++) this.item(depth);
  }

  #map(information: number, depth: number): void {
    this.#checkDepth(depth);
    const keys = new Set<string>();
    if (information === INDEFINITE) {
      while (!this.#atBreak()) this.#entry(keys, depth);
      return;
    }
    const count = this.#argument(information);
    this.#require(2 * count);
    for (let i = 0; i < count; i++) this.#entry(keys, depth);
  }

  #entry(keys: Set<string>, depth: number): void {
    const start = this.#offset;
    const initial = this.#initial();
    if (initial >> 5 !== MajorType.text) fail('a key that is not text', start);
    const key = this.#text(initial & 31);
    if (keys.has(key)) fail('a key twice', start);
    if (key === '__proto__') fail('the key __proto__', start);
    keys.add(key);
    this.item(depth);
  }

  #simpleOrFloat(information: number): void {
    if (information >= 20 && information <= 22) return;
    const float = information >= 25 && information <= 27;
    if (float) this.#skip(1 << (information - 24));
    else fail(information === INDEFINITE ? 'a break outside an indefinite length' : 'a simple value outside the subset', this.#offset - 1);
  }

  /** Count or length that follows the initial byte; an unsupported one is larger than any input. */
  #argument(information: number): number {
    if (information < 24) return information;
    if (information > 27) fail('a reserved length', this.#offset - 1);
    if (information < 27) return this.#word(1 << (information - 24));
    const high = this.#word(4);
    return high * 0x1_0000_0000 + this.#word(4);
  }

  #word(width: number): number {
    this.#require(width);
    let value = 0;
    for (let i = 0; i < width; i++) value = value * 256 + this.#bytes[this.#offset++]!;
    return value;
  }

  #utf8(length: number): string {
    const start = this.#offset;
    this.#skip(length);
    const bytes = this.#bytes.subarray(start, this.#offset);
    if (length > LONG_TEXT && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) this.unusual = true;
    try {
      return utf8.decode(bytes);
    } catch {
      return fail('text that is not UTF-8', start);
    }
  }

  #atBreak(): boolean {
    this.#require(1);
    if (this.#bytes[this.#offset] !== BREAK) return false;
    this.#offset++;
    return true;
  }

  #skip(length: number): void {
    this.#require(length);
    this.#offset += length;
  }

  #require(length: number): void {
    if (length > this.#bytes.length - this.#offset) fail('an early end', this.#bytes.length);
  }

  #checkDepth(depth: number): void {
    if (depth > this.#maxDepth) fail('too much nesting', this.#offset - 1);
  }
}

function fail(what: string, offset: number): never {
  throw new RemoteError('PARSE', `CBOR: ${what} at byte ${offset}`);
}
