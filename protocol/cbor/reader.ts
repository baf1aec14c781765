/**
 * Decodes CBOR bytes into plain values (RFC 8949 appendix C) and refuses everything outside the plain subset.
 *
 * Accepted: integers of at most 53 bits, byte and text strings, arrays, maps, false, true, null and floats of all three
 * widths; definite and indefinite lengths. Refused: tags, undefined and other simple values, reserved encodings, keys
 * that are not text, a repeated key in one map (compared after joining chunks), the key `__proto__` (a plain object
 * cannot hold it), text that is not UTF-8, nesting, counts and sizes over the limits, missing or extra bytes.
 *
 * Counts are compared with the number of bytes left before any loop, so work and memory are bounded by the input's
 * size.
 */
import { RemoteError } from '../errors/index.ts';

/** Limits of `decode`. */
export interface CborLimits {
  /** Nesting of arrays and maps. Default and maximum 16. */
  readonly depth?: number;
  /** Items of the whole input, keys and chunks included. Default 65,536. */
  readonly items?: number;
}

/** Deepest nesting that is decoded and encoded. */
export const MAX_DEPTH = 16;

const MAX_BYTES = 1 << 20;
const DEFAULT_ITEMS = 65_536;
/**
 * Texts up to this length, such as keys, are tried character by character, which costs less than a call of the decoder.
 */
const SHORT_TEXT = 24;

const MajorType = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6 } as const;

/** Additional information 31: indefinite length, or the break that ends it. */
const INDEFINITE = 31;
const BREAK = 0xff;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes the one item that `bytes` holds into plain values; byte strings are copied.
 * @throws RemoteError PARSE for anything but one well-formed item of the subset, of at most 1 MiB, within the limits
 */
export function decode(bytes: Uint8Array, limits: CborLimits = {}): unknown {
  if (bytes.length > MAX_BYTES) fail('too long', 0);
  const reader = new Reader(bytes, limits.items ?? DEFAULT_ITEMS, Math.min(limits.depth ?? MAX_DEPTH, MAX_DEPTH));
  const value = reader.item(0);
  reader.end();
  return value;
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #maxDepth: number;
  #itemsLeft: number;
  #offset = 0;

  constructor(bytes: Uint8Array, maxItems: number, maxDepth: number) {
    // The `slice` of a Buffer does not copy.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#itemsLeft = maxItems;
    this.#maxDepth = maxDepth;
  }

  item(depth: number): unknown {
    const initial = this.#initial();
    const information = initial & 31;
    switch (initial >> 5) {
      case MajorType.unsigned:
        return this.#integer(information, Number.MAX_SAFE_INTEGER);
      case MajorType.negative:
        return -1 - this.#integer(information, Number.MAX_SAFE_INTEGER - 1);
      case MajorType.bytes:
        return this.#byteString(information);
      case MajorType.text:
        return this.#text(information);
      case MajorType.array:
        return this.#array(information, depth + 1);
      case MajorType.map:
        return this.#map(information, depth + 1);
      case MajorType.tag:
        return fail('a tag', this.#offset - 1);
      default:
        return this.#simpleOrFloat(information);
    }
  }

  end(): void {
    if (this.#offset !== this.#bytes.length) fail('bytes after the item', this.#offset);
  }

  #initial(): number {
    if (this.#itemsLeft-- <= 0) fail('too many items', this.#offset);
    this.#require(1);
    return this.#bytes[this.#offset++]!;
  }

  #integer(information: number, max: number): number {
    const value = this.#argument(information);
    return value <= max ? value : fail('an integer of more than 53 bits', this.#offset - 8);
  }

  #byteString(information: number): Uint8Array {
    if (information !== INDEFINITE) return this.#copy(this.#argument(information));
    const chunks: Uint8Array[] = [];
    this.#chunks(MajorType.bytes, (length) => chunks.push(this.#copy(length)));
    return joined(chunks);
  }

  #copy(length: number): Uint8Array {
    this.#skip(length);
    return this.#bytes.slice(this.#offset - length, this.#offset);
  }

  #text(information: number): string {
    if (information !== INDEFINITE) return this.#utf8(this.#argument(information));
    let text = '';
    this.#chunks(MajorType.text, (length) => {
      text += this.#utf8(length);
    });
    return text;
  }

  /** Reads the chunks of an indefinite-length string: definite strings of the same type up to the break. */
  #chunks(type: number, chunk: (length: number) => void): void {
    while (!this.#atBreak()) {
      const initial = this.#initial();
      if (initial >> 5 !== type || (initial & 31) === INDEFINITE) fail('a chunk of another type', this.#offset - 1);
      chunk(this.#argument(initial & 31));
    }
  }

  #array(information: number, depth: number): unknown[] {
    this.#checkDepth(depth);
    const values: unknown[] = [];
    if (information === INDEFINITE) {
      while (!this.#atBreak()) values.push(this.item(depth));
      return values;
    }
    const count = this.#argument(information);
    this.#require(count);
    for (let i = 0; i < count; i++) values.push(this.item(depth));
    return values;
  }

  #map(information: number, depth: number): Record<string, unknown> {
    this.#checkDepth(depth);
    const entries: Record<string, unknown> = {};
    if (information === INDEFINITE) {
      while (!this.#atBreak()) this.#entry(entries, depth);
      return entries;
    }
    const count = this.#argument(information);
    this.#require(2 * count);
    for (let i = 0; i < count; i++) this.#entry(entries, depth);
    return entries;
  }

  #entry(entries: Record<string, unknown>, depth: number): void {
    const start = this.#offset;
    const initial = this.#initial();
    if (initial >> 5 !== MajorType.text) fail('a key that is not text', start);
    const key = this.#text(initial & 31);
    if (Object.hasOwn(entries, key)) fail('a key twice', start);
    if (key === '__proto__') fail('the key __proto__', start);
    entries[key] = this.item(depth);
  }

  #simpleOrFloat(information: number): unknown {
    if (information === 20 || information === 21) return information === 21;
    if (information === 22) return null;
    if (information >= 25 && information <= 27) return this.#float(1 << (information - 24));
    return fail(
      information === INDEFINITE ? 'a break outside an indefinite length' : 'a simple value outside the subset',
      this.#offset - 1,
    );
  }

  #float(width: number): number {
    this.#skip(width);
    const at = this.#offset - width;
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);
    if (width === 2) return half(view.getUint16(at));
    return width === 4 ? view.getFloat32(at) : view.getFloat64(at);
  }

  /** Reads the count or length that follows the initial byte; an unsupported one is larger than any input. */
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
    const short = length <= SHORT_TEXT ? this.#ascii(start) : null;
    if (short !== null) return short;
    try {
      return utf8.decode(this.#bytes.subarray(start, this.#offset));
    } catch {
      return fail('text that is not UTF-8', start);
    }
  }

  /** Returns the text from `start` to the current offset, or null when it is not all ASCII. */
  #ascii(start: number): string | null {
    let text = '';
    for (let at = start; at < this.#offset; at++) {
      const letter = this.#bytes[at]!;
      if (letter > 0x7f) return null;
      text += String.fromCharCode(letter);
    }
    return text;
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

/** Decodes a 16-bit float (RFC 8949 appendix D). */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent < 31) return sign * (1024 + fraction) * 2 ** (exponent - 25);
  return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function fail(what: string, offset: number): never {
  throw new RemoteError('PARSE', `CBOR: ${what} at byte ${offset}`);
}
