/**
 * Reading what waits behind a datagram that libuv has read.
 *
 * For each datagram libuv asks Node for a buffer of 64 KiB, shrinks it afterwards, and makes a call from C++ with an object for the address.
 * It is left to find out that there is something; what waits then is read by the batch, into memory that is used again.
 */
import { MESSAGES, Messages, NAME_WORDS } from './messages.ts';
import { SocketAddressReader } from './socket-address.ts';
import { MSG_DONTWAIT, type SystemCalls } from './system-calls.ts';

/** Datagrams read between two turns of the event loop, and bytes: what else is due has to come to its turn, too. */
const PER_TURN = 128;
const BYTES_PER_TURN = 1024 * 1024;
/** Datagrams of one call, where the last one was large: more would not be in a processor's cache any more when they are looked at. */
const LARGE_BATCH = 4;
const LARGE = 16 * 1024;
/** How often in a row it is not looked whether there is more, after it was in vain. */
const MOST_SKIPPED = 15;

/** Who gets each datagram; the bytes are lent, as BindOptions.receive says. */
export type Deliver = (datagram: Uint8Array, address: string, port: number) => void;

export class NativeReceiver {
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #messages: Messages;
  readonly #from: SocketAddressReader;
  #left = PER_TURN;
  #leftBytes = BYTES_PER_TURN;
  /** The last datagram was. */
  #large = false;
  /** Datagrams after which it is not looked, and how many those are after the next vain look. */
  #skip = 0;
  #inVain = 0;
  #closed = false;

  constructor(calls: SystemCalls, fd: number) {
    this.#calls = calls;
    this.#fd = fd;
    this.#messages = new Messages(calls);
    this.#from = new SocketAddressReader(calls);
  }

  /** To be called when libuv has given a datagram. */
  drain(deliver: Deliver): void {
    if (!this.#mayRead()) return;
    if (this.#skip > 0) {
      this.#skip--;
      return;
    }
    // Where question follows answer, one datagram at a time, each look would be in vain.
    this.#inVain = this.#readAll(deliver) > 0 ? 0 : Math.min(2 * this.#inVain + 1, MOST_SKIPPED);
    this.#skip = this.#inVain;
  }

  /** The descriptor may be another's from now on. */
  close(): void {
    this.#closed = true;
  }

  /** @returns datagrams */
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
