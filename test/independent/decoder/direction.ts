/**
 * What one end of a connection sends: packet protection (PROTOCOL.md §4) and the streams in it (§5).
 *
 *   open: number from the mask of the id  →  not seen before  →  key by phase and number  →  tag  →  frames
 *
 * Only a packet that passes all of that changes anything.
 */
import { demand, maskOf, open, rekey } from './crypto.ts';
import { decodeFrames, type Frame } from './frames.ts';
import type { Data } from './packets.ts';

const TWO_TO_32 = 2 ** 32;
const HALF = 2 ** 31;

/** A Data packet that was opened. */
export interface OpenedData {
  readonly number: number;
  readonly phase: boolean;
  readonly frames: readonly Frame[];
}

/** One direction. */
export class Direction {
  /** Bytes of each stream, by id. */
  readonly streams = new Map<number, StreamBytes>();
  /** Keys that were used: the first, and one for each key update. */
  readonly keys: Uint8Array[];
  readonly #maskKey: Uint8Array;
  readonly #seen = new Set<number>();
  #largest = -1;
  #phase = false;
  /** Least number that came under the current key. */
  #phaseFirst = 0;

  constructor(key: Uint8Array, maskKey: Uint8Array) {
    this.keys = [key];
    this.#maskKey = maskKey;
  }

  /** Complete is packet 0 of the initiator. */
  countComplete(): void {
    this.#seen.add(0);
    this.#largest = 0;
  }

  /** @throws Refused, and then nothing has changed */
  open({ phase, destination, masked, header, sealed }: Data): OpenedData {
    const low = (masked - maskOf(this.#maskKey, destination) + TWO_TO_32) % TWO_TO_32;
    const number = nearest(this.#largest, low);
    demand(!this.#seen.has(number), 'a packet number that was seen before');
    const isCurrent = phase === this.#phase;
    const isNext = !isCurrent && number >= this.#phaseFirst;
    const current = this.keys.at(-1)!;
    const key = isCurrent ? current : isNext ? rekey(current) : this.keys.at(-2);
    demand(key !== undefined, 'a packet of a phase before the first');
    const frames = decodeFrames(open(key, BigInt(number), header, sealed));
    if (isNext) {
      this.keys.push(key);
      this.#phase = phase;
      this.#phaseFirst = number;
    } else if (isCurrent) this.#phaseFirst = Math.min(this.#phaseFirst, number);
    this.#seen.add(number);
    this.#largest = Math.max(this.#largest, number);
    return { number, phase, frames };
  }

  /** The stream of that id, with what a frame adds. */
  add({ id, offset, data, fin }: Extract<Frame, { type: 'STREAM' }>): StreamBytes {
    const stream = this.streams.get(id) ?? new StreamBytes();
    this.streams.set(id, stream);
    stream.add(offset, data, fin);
    return stream;
  }
}

/** The bytes of one direction of a stream, in whatever order they come. */
export class StreamBytes {
  #bytes = Buffer.alloc(0);
  /** Frames beyond a gap. */
  #ahead: { offset: number; data: Buffer }[] = [];
  #size: number | undefined;

  /** What has arrived without a gap. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** All has arrived, and the end is known. */
  get isWhole(): boolean {
    return this.#size === this.#bytes.length;
  }

  add(offset: number, data: Buffer, fin: boolean): void {
    const end = offset + data.length;
    if (fin) demand(this.#size === undefined || this.#size === end, 'a stream that ends twice');
    if (fin) this.#size = end;
    this.#ahead = [...this.#ahead, { offset, data }].sort((a, b) => a.offset - b.offset);
    while (this.#ahead.length > 0 && this.#ahead[0]!.offset <= this.#bytes.length) {
      const { offset: at, data: next } = this.#ahead.shift()!;
      this.#bytes = Buffer.concat([this.#bytes, next.subarray(Math.min(next.length, this.#bytes.length - at))]);
    }
  }
}

/** The number with these low 32 bits that is nearest to the next expected one (RFC 9000 appendix A.3). */
function nearest(largest: number, low: number): number {
  const expected = largest + 1;
  const candidate = expected - (expected % TWO_TO_32) + low;
  if (candidate + HALF <= expected) return candidate + TWO_TO_32;
  return candidate > expected + HALF && candidate >= TWO_TO_32 ? candidate - TWO_TO_32 : candidate;
}
