/**
 * Reads the datagrams that wait behind one that libuv has read.
 *
 * For each datagram libuv asks Node for a buffer of 64 KiB, shrinks it afterwards, and makes a call from C++ with an
 * object for the address. Here libuv only detects the first datagram; the ones that wait then are read in batches, into
 * reused memory.
 */
import { MESSAGES, Messages, NAME_WORDS } from './messages.ts';
import { SocketAddressReader } from './socket-address.ts';
import { MSG_DONTWAIT, type SystemCalls } from './system-calls.ts';

/** Most datagrams, and bytes, read between two turns of the event loop: other due work must get its turn, too. */
const PER_TURN = 64;
const BYTES_PER_TURN = 1024 * 1024;
/** Datagrams per call after a large one: more would have left a processor's cache before they are processed. */
const LARGE_BATCH = 4;
const LARGE = 16 * 1024;
/** Most consecutive skipped attempts to read more, after one found nothing. */
const MAX_SKIPPED = 15;

/** Receives each datagram; the bytes are lent, as BindOptions.receive says. */
export type Deliver = (datagram: Uint8Array, address: string, port: number) => void;

export class NativeReceiver {
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #messages: Messages;
  readonly #from: SocketAddressReader;
  #left = PER_TURN;
  #leftBytes = BYTES_PER_TURN;
  /** Whether the last datagram was large. */
  #large = false;
  /** Datagrams for which no attempt is made, and their number after the next attempt that finds nothing. */
  #skip = 0;
  #inVain = 0;
  #closed = false;

  constructor(calls: SystemCalls, fd: number) {
    this.#calls = calls;
    this.#fd = fd;
    this.#messages = new Messages(calls);
    this.#from = new SocketAddressReader(calls);
  }

  /** Call when libuv has delivered a datagram. */
  drain(deliver: Deliver): void {
    if (!this.#mayRead()) return;
    if (this.#skip > 0) {
      this.#skip--;
      return;
    }
    // In request and response traffic, one datagram at a time, each attempt would find nothing.
    this.#inVain = this.#readAll(deliver) > 0 ? 0 : Math.min(2 * this.#inVain + 1, MAX_SKIPPED);
    this.#skip = this.#inVain;
  }

  /** Stops using the descriptor, which another socket may get. */
  close(): void {
    this.#closed = true;
  }

  /** @returns number of datagrams */
  #readAll(deliver: Deliver): number {
    let all = 0;
    while (this.#mayRead()) {
      const most = this.#large ? LARGE_BATCH : MESSAGES;
      const count = this.#calls.recvmmsg(this.#fd, this.#messages.headers, most, MSG_DONTWAIT, null);
      if (count <= 0) break;
      if (this.#left === PER_TURN) setImmediate(this.#nextTurn);
      all += count;
      this.#deliver(count, deliver);
      if (count < most) break;
    }
    return all;
  }

  #mayRead(): boolean {
    return this.#left > 0 && this.#leftBytes > 0 && !this.#closed;
  }

  #deliver(count: number, deliver: Deliver): void {
    this.#left -= count;
    for (let i = 0; i < count; i++) {
      const datagram = this.#messages.datagram(i);
      this.#from.read(this.#messages.names, i * NAME_WORDS);
      this.#large = datagram.length >= LARGE;
      this.#leftBytes -= datagram.length;
      deliver(datagram, this.#from.address, this.#from.port);
    }
    this.#messages.reset(count);
  }

  readonly #nextTurn = (): void => {
    this.#left = PER_TURN;
    this.#leftBytes = BYTES_PER_TURN;
  };
}
