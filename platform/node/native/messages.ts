/**
 * Memory for `recvmmsg(2)`: a `struct mmsghdr` for each datagram, each pointing to room for its bytes and for the
 * address of its sender.
 *
 * The kernel follows these pointers, so their targets are allocated once and live as long as this object. Memory
 * allocated as an ArrayBuffer does not move.
 */
import { LENGTH_IPV6 } from './socket-address.ts';
import type { SystemCalls } from './system-calls.ts';

/** Datagrams per call. */
export const MESSAGES = 32;
/**
 * Bytes from one datagram's room to the next: the largest datagram, rounded up, and some more, since addresses a power
 * of two apart share the lines of a processor's cache. Unused pages are not resident.
 */
const STRIDE = 65_536 + 1536;
const LARGEST = 65_536;
/** 32-bit words from one address to the next. */
export const NAME_WORDS = 8;

/**
 * Offsets of fields (`struct msghdr`, recvmsg(2)), counted in pointers: each field takes the size of one, with padding.
 */
export const NAME = 0;
export const NAME_LENGTH = 1;
export const IOV = 2;
export const IOV_COUNT = 3;
export const CONTROL = 4;
export const CONTROL_LENGTH = 5;
/** Bytes received: after name, vectors, control data and flags, which take the size of seven pointers. */
const LENGTH = 7;
const FIELDS = 8;
/** Fields of a `struct iovec`: address and length. */
export const IOV_FIELDS = 2;

export class Messages {
  /** `struct mmsghdr[]`, for the kernel. */
  readonly headers: Uint8Array;
  /** The addresses of the senders, `MESSAGES` times `NAME_WORDS` words. */
  readonly names = new Uint32Array(new ArrayBuffer(MESSAGES * NAME_WORDS * 4));
  readonly #bytes = new Uint8Array(new ArrayBuffer(MESSAGES * STRIDE));
  readonly #vectors: Uint8Array;
  /** The headers as 32-bit words, and the number of words per pointer. */
  readonly #words: Uint32Array;
  readonly #wide: number;
  /** The last view lent from each room: most datagrams of a transfer have the same length. */
  readonly #lent = new Array<Uint8Array>(MESSAGES).fill(this.#bytes);

  constructor(calls: Pick<SystemCalls, 'addressOf' | 'pointerSize'>) {
    const { pointerSize } = calls;
    this.#wide = pointerSize / 4;
    this.headers = new Uint8Array(new ArrayBuffer(MESSAGES * FIELDS * pointerSize));
    this.#words = new Uint32Array(this.headers.buffer);
    this.#vectors = new Uint8Array(new ArrayBuffer(MESSAGES * IOV_FIELDS * pointerSize));
    const header = writer(this.headers, pointerSize);
    const vector = writer(this.#vectors, pointerSize);
    const bytes = calls.addressOf(this.#bytes);
    const names = calls.addressOf(this.names);
    const vectors = calls.addressOf(this.#vectors);
    for (let i = 0; i < MESSAGES; i++) {
      vector(i * IOV_FIELDS, bytes + BigInt(i * STRIDE));
      vector(i * IOV_FIELDS + 1, BigInt(LARGEST));
      header(i * FIELDS + NAME, names + BigInt(i * NAME_WORDS * 4));
      header(i * FIELDS + IOV, vectors + BigInt(i * IOV_FIELDS * pointerSize));
      header(i * FIELDS + IOV_COUNT, 1n);
    }
    this.reset(MESSAGES);
  }

  /** Returns the bytes of a datagram, lent until the next call. */
  datagram(index: number): Uint8Array {
    const length = this.#words[(index * FIELDS + LENGTH) * this.#wide]!;
    const lent = this.#lent[index]!;
    if (lent.length === length) return lent;
    const view = this.#bytes.subarray(index * STRIDE, index * STRIDE + length);
    this.#lent[index] = view;
    return view;
  }

  /** Prepares the first `count` for reuse: the kernel has written the length of each address. */
  reset(count: number): void {
    for (let i = 0; i < count; i++) this.#words[(i * FIELDS + NAME_LENGTH) * this.#wide] = LENGTH_IPV6;
  }
}

/** Returns a function that writes the n-th field of pointer size. */
export function writer(memory: Uint8Array, pointerSize: number): (field: number, value: bigint) => void {
  if (pointerSize === 8) {
    const fields = new BigUint64Array(memory.buffer);
    return (field, value) => void fields.fill(value, field, field + 1);
  }
  const fields = new Uint32Array(memory.buffer);
  return (field, value) => void fields.fill(Number(value), field, field + 1);
}
