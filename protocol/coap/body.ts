/** Bodies in blocks: reassembly of an incoming one, and splitting of an outgoing one. */
import { BERT, type Block, blockOffset, blockUnit, isBlockLength } from './block.ts';
import { MAX_MESSAGE } from './message.ts';

/**
 * Memory for bodies in blocks that several channels share, bytes: it stays bounded whichever peer sends or requests
 * them.
 */
export class BodyRoom {
  readonly #max: number;
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** Takes `bytes`, or takes nothing and returns false when fewer are left. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#max) return false;
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

/**
 * A body being reassembled from consecutive blocks. Blocks are copied: a small block must not keep a large message in
 * memory.
 */
export class IncomingBody {
  readonly #max: number;
  readonly #room: BodyRoom | undefined;
  #buffer = new Uint8Array(0);
  #length = 0;

  /** @param max bytes of the whole body; @param room supplies its memory: then call `free` at the end */
  constructor(max: number, room?: BodyRoom) {
    this.#max = max;
    this.#room = room;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Adds the next block, or returns why it cannot: `gap` the block is not the next one, `length` its length is wrong,
   * `size` the body is too large, `room` no memory is left.
   */
  add(block: Block, payload: Uint8Array): 'ok' | 'gap' | 'length' | 'size' | 'room' {
    if (blockOffset(block) !== this.#length) return 'gap';
    if (!isBlockLength(block, payload.length)) return 'length';
    if (this.#length + payload.length > this.#max) return 'size';
    if (!this.#reserve(this.#length + payload.length)) return 'room';
    this.#buffer.set(payload, this.#length);
    this.#length += payload.length;
    return 'ok';
  }

  /** Returns a copy of the body so far. */
  join(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  /** Returns its memory to the room; the body is unusable afterwards. */
  free(): void {
    this.#room?.giveBack(this.#buffer.length);
    this.#buffer = new Uint8Array(0);
  }

  #reserve(length: number): boolean {
    if (length <= this.#buffer.length) return true;
    const size = Math.min(this.#max, Math.max(length, 2 * this.#buffer.length));
    if (this.#room?.take(size - this.#buffer.length) === false) return false;
    const larger = new Uint8Array(size);
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
    return true;
  }
}

/** One block of an outgoing body. */
export interface OutgoingBlock {
  readonly block: Block;
  readonly payload: Uint8Array;
}

/**
 * Returns the block of `body` that begins at `offset`.
 * @param exponent size exponent; with BERT the block has as many kilobytes as fit one message
 * @param headSize bytes of the message without payload
 */
export function cutBlock(body: Uint8Array, offset: number, exponent: number, headSize: number): OutgoingBlock {
  const unit = blockUnit(exponent);
  // The payload marker takes one byte.
  const size = exponent === BERT ? Math.floor((MAX_MESSAGE - headSize - 1) / unit) * unit : unit;
  const payload = body.subarray(offset, offset + size);
  return { block: { number: offset / unit, more: offset + size < body.length, exponent }, payload };
}
