/**
 * Connection ids of this endpoint and their owners: 8 bytes = word (u32) ‖ keyed hash of the word (u32).
 *
 * The word has the index into a table in its low bits and a generation above, so that demultiplexing is an array index
 * and a new owner of a slot has a different id. The width of the index follows the table's size; the generation starts
 * at random, so that ids do not recur after a restart. The hash is HMAC-SHA-256(id secret, word), first 4 bytes: it
 * distinguishes our ids from invented ones without any state, also after a restart, which makes it safe to answer
 * unknown ids with Reset (PROTOCOL.md §2).
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { ID_LENGTH, u32, writeU32 } from '../packet/index.ts';

const LABEL = new TextEncoder().encode('svc id');

export class Ids<T> {
  readonly #crypto: CryptoProvider;
  readonly #secret: Uint8Array;
  readonly #mask: number;
  readonly #owners: (T | undefined)[];
  readonly #words: Uint32Array;
  readonly #hashes: Uint32Array;
  /** Ring of free indices: the one freed longest ago is used next. */
  readonly #free: Uint32Array;
  #freeHead = 0;
  #freeCount: number;
  /** Further ids that may still be assigned. */
  #further: number;
  /** By index, 1: a further id. */
  readonly #isFurther: Uint8Array;

  /**
   * @param capacity most owners
   * @param further ids besides the first of an owner, in all. The table has the next power of two that holds both, so
   *   further ids never take the slot of an owner.
   */
  constructor(crypto: CryptoProvider, resetSecret: Uint8Array, capacity: number, further = 0) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, capacity + further)));
    this.#further = further;
    this.#isFurther = new Uint8Array(size);
    this.#crypto = crypto;
    this.#secret = crypto.hmacSha256(resetSecret, LABEL);
    this.#mask = size - 1;
    this.#owners = new Array<T | undefined>(size).fill(undefined);
    this.#hashes = new Uint32Array(size);
    this.#freeCount = size;
    const generation = u32(crypto.randomBytes(4), 0);
    this.#free = new Uint32Array(size);
    this.#words = new Uint32Array(size);
    // Not with `from`, which uses an iterator: there are thousands of entries, and the start waits for this.
    for (let index = 0; index < size; index++) {
      this.#free[index] = index;
      this.#words[index] = (generation & ~this.#mask) | index;
    }
  }

  /** Returns the owner created for a new id, or null when the table is full. */
  allocate<O extends T>(make: (id: Uint8Array) => O): O | null {
    // The share of further ids is not available to owners.
    if (this.#freeCount <= this.#further) return null;
    const id = this.#next();
    const owner = make(id);
    this.#owners[u32(id, 0) & this.#mask] = owner;
    return owner;
  }

  /** Returns a further id of an owner, null when all have been assigned. */
  allocateFurther(owner: T): Uint8Array | null {
    if (this.#further === 0) return null;
    this.#further--;
    const id = this.#next();
    const index = u32(id, 0) & this.#mask;
    this.#isFurther[index] = 1;
    this.#owners[index] = owner;
    return id;
  }

  #next(): Uint8Array {
    const index = this.#free[this.#freeHead]!;
    this.#freeHead = (this.#freeHead + 1) & this.#mask;
    this.#freeCount--;
    const word = (this.#words[index]! + this.#mask + 1) >>> 0;
    this.#words[index] = word;
    this.#hashes[index] = this.#hash(word);
    const id = new Uint8Array(ID_LENGTH);
    writeU32(id, 0, word);
    writeU32(id, 4, this.#hashes[index]!);
    return id;
  }

  /** Returns the owner of an id given as its two halves. */
  find(high: number, low: number): T | undefined {
    const index = high & this.#mask;
    return this.#words[index] === high && this.#hashes[index] === low ? this.#owners[index] : undefined;
  }

  /** Returns the owner of an id given as bytes. */
  owner(id: Uint8Array): T | undefined {
    return this.find(u32(id, 0), u32(id, 4));
  }

  /** Transfers an id in use to another owner. */
  replace(id: Uint8Array, owner: T): void {
    this.#owners[u32(id, 0) & this.#mask] = owner;
  }

  release(id: Uint8Array): void {
    const index = u32(id, 0) & this.#mask;
    if (this.#words[index] !== u32(id, 0) || this.#owners[index] === undefined) return;
    this.#owners[index] = undefined;
    this.#further += this.#isFurther[index]!;
    this.#isFurther[index] = 0;
    this.#free[(this.#freeHead + this.#freeCount) & this.#mask] = index;
    this.#freeCount++;
  }

  /** Returns whether an id was created with this secret, now or before a restart. Costs one HMAC. */
  isOurs(high: number, low: number): boolean {
    return this.#hash(high) === low;
  }

  #hash(word: number): number {
    const bytes = new Uint8Array(4);
    writeU32(bytes, 0, word);
    return u32(this.#crypto.hmacSha256(this.#secret, bytes), 0);
  }
}
