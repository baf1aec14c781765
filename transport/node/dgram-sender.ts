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
 *
 * While a datagram with a hop limit of its own waits or leaves (hop-limits.ts), packets are held back in the queue: none of them may get that limit.
 */
import type { Socket, SocketType } from 'node:dgram';
import { HopLimits } from './hop-limits.ts';
import { PacketQueue, type Released, type Sender } from './packet-queue.ts';
import { isUnreachable } from './udp-errors.ts';

/** What is called with the address of a datagram that could not be sent. */
export type Unreachable = (address: string) => void;

/** ms. The queue is the kernel's hint that the sender is too fast: nothing is lost by coming back late. */
const RETRY = 1;

export class DgramSender implements Sender {
  readonly #socket: Socket;
  readonly #queue = new PacketQueue();
  readonly #limits: HopLimits;
  /** Newest packets of the queue that are held back. */
  #held = 0;
  /** Datagrams with a hop limit of their own wait, or leave now. */
  #holding = false;
  #closed = false;
  /** Packets given to `dgram` that the tick under way was asked for, -1 = none is. */
  #expected = -1;
  #whenIdle: (() => void) | undefined;
  readonly #unreachable: Unreachable;
  /** Destination of the first packet of the tick under way. */
  #first = '';

  constructor(socket: Socket, family: SocketType, unreachable: Unreachable = () => {}) {
    this.#socket = socket;
    this.#unreachable = unreachable;
    this.#limits = new HopLimits(socket, family);
  }

  /** Address unreachable, no permission: it is UDP's loss. Without a callback `dgram` keeps that to itself, so the first of each tick has one. */
  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): void {
    const packet = this.#queue.push(buffer, offset, length, address, port, released);
    if (this.#holding && !this.#closed) {
      this.#held++;
      return;
    }
    if (this.#expected >= 0) {
      this.#socket.send(this.#queue.view(packet), port, address);
      return;
    }
    this.#first = address;
    this.#socket.send(this.#queue.view(packet), port, address, this.#sent);
    this.#comeBack();
  }

  /** As soon as nothing is under way. @returns false when it was dropped: too many wait */
  sendWithHopLimit(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean {
    if (!this.#limits.add(datagram, address, port, hopLimit)) return false;
    if (!this.#holding) {
      this.#holding = true;
      if (this.#expected < 0) this.#comeBack();
    }
    return true;
  }

  /** Calls once, as soon as nothing is under way. */
  whenIdle(run: () => void): void {
    this.#whenIdle = run;
    if (this.#expected < 0 && !this.#holding) this.#comeBack();
  }

  close(): void {
    this.#closed = true;
    this.#limits.close();
    this.#held = 0;
    if (this.#expected < 0 && this.#queue.length > 0) this.#comeBack();
  }

  /** Packets with `dgram`. */
  get #given(): number {
    return this.#queue.length - this.#held;
  }

  #comeBack(): void {
    this.#expected = this.#given;
    process.nextTick(this.#settle);
  }

  readonly #sent = (error: Error | null): void => {
    if (error !== null && isUnreachable(error) && !this.#closed) this.#unreachable(this.#first);
  };

  readonly #settle = (): void => {
    if (this.#given > this.#expected && !this.#closed) {
      this.#comeBack();
      return;
    }
    const queued = this.#closed ? 0 : this.#socket.getSendQueueCount();
    for (let left = this.#given - queued; left > 0; left--) this.#queue.release();
    if (queued > 0) setTimeout(this.#retry, RETRY);
    else if (this.#given > 0) this.#comeBack();
    else this.#beIdle();
  };

  #beIdle(): void {
    this.#expected = -1;
    if (this.#holding && !this.#closed) {
      this.#limits.run(this.#limitsDone);
      return;
    }
    this.#whenIdle?.();
    this.#whenIdle = undefined;
  }

  /** What was held leaves; datagrams with a hop limit that came meanwhile follow it. */
  readonly #limitsDone = (): void => {
    for (; this.#held > 0; this.#held--) {
      const { address, port } = this.#queue.at(this.#given);
      this.#socket.send(this.#queue.view(this.#queue.at(this.#given)), port, address);
    }
    this.#holding = this.#limits.areWaiting;
    this.#comeBack();
  };

  readonly #retry = (): void => this.#comeBack();
}
