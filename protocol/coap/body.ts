/** Bodies that travel in blocks: the part we have of one that comes, and the cutting of one that goes. */

import { BERT, type Block, blockOffset, blockUnit, isBlockLength } from './block.ts';
import { MAX_MESSAGE } from './message.ts';

/** A body being put together from consecutive blocks. */
export class IncomingBody {
  readonly #chunks: Uint8Array[] = [];
  readonly #max: number;
  #length = 0;

  /** @param max bytes of the whole body */
  constructor(max: number) {
    this.#max = max;
  }

  get length(): number {
    return this.#length;
  }

  /** Takes the next block, or says why it cannot: `gap` it is not the next one, `length` its length does not fit, `size` too much. */
  add(block: Block, payload: Uint8Array): 'ok' | 'gap' | 'length' | 'size' {
    if (blockOffset(block) !== this.#length) return 'gap';
    if (!isBlockLength(block, payload.length)) return 'length';
    if (this.#length + payload.length > this.#max) return 'size';
    this.#chunks.push(payload);
    this.#length += payload.length;
    return 'ok';
  }

  /** The body so far as one array. */
  join(): Uint8Array {
    if (this.#chunks.length === 1) return this.#chunks[0]!;
    const body = new Uint8Array(this.#length);
    let offset = 0;
    for (const chunk of this.#chunks) {
      body.set(chunk, offset);
      offset += chunk.length;
    }
    return body;
  }
}

/** One block of a body that goes out. */
export interface OutgoingBlock {
  readonly block: Block;
  readonly payload: Uint8Array;
}

/**
 * The block of `body` that begins at `offset`.
 * @param exponent size exponent; with BERT the block takes as many kilobytes as fit one message
 * @param headSize bytes of the message without payload
 */
export function cutBlock(body: Uint8Array, offset: number, exponent: number, headSize: number): OutgoingBlock {
  const unit = blockUnit(exponent);
  // The payload marker takes one byte.
  const size = exponent === BERT ? Math.floor((MAX_MESSAGE - headSize - 1) / unit) * unit : unit;
  const payload = body.subarray(offset, offset + size);
  return { block: { number: offset / unit, more: offset + size < body.length, exponent }, payload };
}
