/**
 * Rewrites checked CBOR bytes into forms that cbor-x reads as we mean them. Only called for bytes that hold one of these:
 *
 * - strings of indefinite length, which cbor-x refuses: their chunks are joined;
 * - 64-bit integers, which cbor-x reads as BigInt: below 2^53 a double holds them exactly and has the same size;
 * - text above 64 bytes that begins with a byte order mark, which cbor-x drops: the mark is doubled.
 *
 * The input has passed `checkWellFormed`, so nothing is checked here.
 */
import { BREAK, INDEFINITE, LONG_TEXT, MajorType } from './well-formed.ts';

/** Rewritten copy of `bytes`, one item that passed `checkWellFormed`. */
export function normalize(bytes: Uint8Array): Uint8Array {
  const rewrite = new Rewrite(bytes);
  rewrite.item();
  return rewrite.output();
}

class Rewrite {
  readonly #input: Uint8Array;
  readonly #output: Uint8Array;
  readonly #view: DataView;
  #read = 0;
  #written = 0;

  constructor(input: Uint8Array) {
    this.#input = input;
    // Joining never grows a string; a doubled mark adds 3 bytes to a text above 64.
    this.#output = new Uint8Array(input.length + Math.ceil(input.length / 16));
    this.#view = new DataView(this.#output.buffer);
  }

  output(): Uint8Array {
    return this.#output.subarray(0, this.#written);
  }

  item(): void {
    const initial = this.#input[this.#read]!;
    const type = initial >> 5;
    if (type === MajorType.bytes || type === MajorType.text) this.#string(type);
    else if (type === MajorType.array || type === MajorType.map) this.#container(type);
    else if (type <= MajorType.negative && (initial & 31) === 27) this.#wideInteger(type);
    else this.#copy(headLength(initial));
  }

  #wideInteger(type: number): void {
    this.#read++;
    const high = this.#argument(26);
    const value = high * 0x1_0000_0000 + this.#argument(26);
    this.#output[this.#written] = 0xfb;
    this.#view.setFloat64(this.#written + 1, type === MajorType.unsigned ? value : -1 - value);
    this.#written += 9;
  }

  #container(type: number): void {
    const information = this.#input[this.#read]! & 31;
    if (information === INDEFINITE) {
      this.#copy(1);
      while (this.#input[this.#read] !== BREAK) this.item();
      this.#copy(1);
      return;
    }
    const start = this.#read++;
    const count = this.#argument(information) * (type === MajorType.map ? 2 : 1);
    const head = this.#read - start;
    this.#read = start;
    this.#copy(head);
    for (let i = 0; i < count; i++) this.item();
  }

  #string(type: number): void {
    const chunks = this.#chunks();
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const marked = type === MajorType.text && length > LONG_TEXT && startsWithMark(chunks);
    this.#head(type, marked ? length + 3 : length);
    if (marked) this.#append(BYTE_ORDER_MARK);
    for (const chunk of chunks) this.#append(chunk);
  }

  #chunks(): Uint8Array[] {
    const information = this.#input[this.#read++]! & 31;
    if (information !== INDEFINITE) return [this.#take(this.#argument(information))];
    const chunks: Uint8Array[] = [];
    while (this.#input[this.#read] !== BREAK) chunks.push(this.#take(this.#argument(this.#input[this.#read++]! & 31)));
    this.#read++;
    return chunks;
  }

  #argument(information: number): number {
    if (information < 24) return information;
    let value = 0;
    for (let i = 1 << (information - 24); i > 0; i--) value = value * 256 + this.#input[this.#read++]!;
    return value;
  }

  #take(length: number): Uint8Array {
    this.#read += length;
    return this.#input.subarray(this.#read - length, this.#read);
  }

  #copy(length: number): void {
    this.#append(this.#take(length));
  }

  #append(bytes: Uint8Array): void {
    this.#output.set(bytes, this.#written);
    this.#written += bytes.length;
  }

  #head(type: number, length: number): void {
    const initial = type << 5;
    if (length < 24) this.#append(Uint8Array.of(initial | length));
    else if (length < 0x100) this.#append(Uint8Array.of(initial | 24, length));
    else if (length < 0x10000) this.#append(Uint8Array.of(initial | 25, length >> 8, length & 255));
    else this.#append(Uint8Array.of(initial | 26, length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255));
  }
}

const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf);

/** Chunks of text are whole characters, so the mark lies in the first chunk that is not empty. */
function startsWithMark(chunks: readonly Uint8Array[]): boolean {
  const first = chunks.find((chunk) => chunk.length > 0);
  return first !== undefined && BYTE_ORDER_MARK.every((byte, i) => first[i] === byte);
}

/** Bytes of an integer, simple value or float with this initial byte. */
function headLength(initial: number): number {
  const information = initial & 31;
  return information < 24 ? 1 : 1 + (1 << (information - 24));
}
