/**
 * Sending with `dgram`.
 *
 * What a datagram costs is Node's and the kernel's, so little is added to it: no callback, no name to look up. `dgram` hands each packet to
 * libuv in a tick of its own, libuv sends it at once or, when the kernel takes no more, keeps it in a queue. So:
 *
 *   1. `send` queues the packet and asks for a tick;
 *   2. that tick comes behind the first packet's, and once more behind those of the packets that were sent meanwhile;
 *   3. then all packets have left that libuv's queue does not hold: they are released, oldest first, since the queue keeps the order;
 *   4. while it holds some, it is looked at again every `RETRY` ms. A closed socket sends nothing any more and gives all back.
 */
import type { Socket } from 'node:dgram';
import { PacketQueue, type Released, type Sender } from './packet-queue.ts';

/** ms. The queue is the kernel's hint that the sender is too fast: nothing is lost by coming back late. */
const RETRY = 1;

export class DgramSender implements Sender {
  readonly #socket: Socket;
  readonly #queue = new PacketQueue();
  #closed = false;
  /** Packets of the queue that the tick under way was asked for, -1 = none is. */
  #expected = -1;
  #whenIdle: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Address unreachable, no permission: without a callback `dgram` keeps that to itself. It is UDP's loss. */
  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): void {
    const packet = this.#queue.push(buffer, offset, length, address, port, released);
    this.#socket.send(this.#queue.view(packet), port, address);
    if (this.#expected < 0) this.#comeBack();
  }

  /** Calls once, as soon as nothing is under way. */
  whenIdle(run: () => void): void {
    this.#whenIdle = run;
    if (this.#expected < 0) this.#comeBack();
  }

  close(): void {
    this.#closed = true;
  }

  #comeBack(): void {
    this.#expected = this.#queue.length;
    process.nextTick(this.#settle);
  }

  readonly #settle = (): void => {
    if (this.#queue.length > this.#expected && !this.#closed) {
      this.#comeBack();
      return;
    }
    const queued = this.#closed ? 0 : this.#socket.getSendQueueCount();
    for (let left = this.#queue.length - queued; left > 0; left--) this.#queue.release();
    if (queued > 0) setTimeout(this.#retry, RETRY);
    else if (this.#queue.length > 0) this.#comeBack();
    else this.#beIdle();
  };

  #beIdle(): void {
    this.#expected = -1;
    this.#whenIdle?.();
    this.#whenIdle = undefined;
  }

  readonly #retry = (): void => this.#comeBack();
}
