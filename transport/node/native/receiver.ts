/**
 * Reading what waits behind a datagram that libuv has read.
 *
 * For each datagram libuv asks Node for a buffer of 64 KiB, shrinks it afterwards, and makes a call from C++ with an object for the address.
 * It is left to find out that there is something; what waits then is read by the batch, into memory that is used again.
 */
import { MESSAGES, Messages, NAME_WORDS } from './messages.ts';
import { SocketAddressReader } from './socket-address.ts';
import { MSG_DONTWAIT, type SystemCalls } from './system-calls.ts';

/** Batches read between two turns of the event loop: what else is due has to come to its turn, too. */
const PER_TURN = 4;

/** Who gets each datagram; the bytes are lent, as BindOptions.receive says. */
export type Deliver = (datagram: Uint8Array, address: string, port: number) => void;

export class NativeReceiver {
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #messages: Messages;
  readonly #from = new SocketAddressReader();
  #left = PER_TURN;
  #closed = false;

  constructor(calls: SystemCalls, fd: number) {
    this.#calls = calls;
    this.#fd = fd;
    this.#messages = new Messages(calls);
  }

  /** To be called when a datagram has come. */
  drain(deliver: Deliver): void {
    for (let count = MESSAGES; count === MESSAGES && this.#left > 0 && !this.#closed; ) {
      count = this.#calls.recvmmsg(this.#fd, this.#messages.headers, MESSAGES, MSG_DONTWAIT, null);
      if (count <= 0) return;
      if (this.#left-- === PER_TURN) setImmediate(this.#nextTurn);
      for (let i = 0; i < count; i++) {
        this.#from.read(this.#messages.names, i * NAME_WORDS);
        deliver(this.#messages.datagram(i), this.#from.address, this.#from.port);
      }
      this.#messages.reset(count);
    }
  }

  /** The descriptor may be another's from now on. */
  close(): void {
    this.#closed = true;
  }

  readonly #nextTurn = (): void => {
    this.#left = PER_TURN;
  };
}
