/**
 * Sending with `dgram`.
 *
 * The cost of a datagram is Node's and the kernel's, so this adds little: no callback, no name lookup. `dgram` hands
 * each packet to libuv in a separate tick; libuv sends it at once or, when the kernel is full, queues it. So:
 *
 *   1. `send` queues the packet and requests a tick.
 *   2. That tick runs after the first packet's, and once more after those of packets sent meanwhile.
 *   3. Then all packets that libuv's queue does not hold have left: they are released, oldest first, since the queue
 *      keeps the order.
 *   4. While it holds some, it is checked again every `RETRY` ms. A closed socket sends nothing more and gives all
 *      packets back.
 *
 * While a datagram with a hop limit of its own waits or leaves (hop-limits.ts), packets are held back in the queue:
 * none of them may get that limit.
 */
import type { Socket, SocketType } from 'node:dgram';
import { HopLimits } from './hop-limits.ts';
import { PacketQueue, type Released, type Sender } from './packet-queue.ts';
import { isUnreachable } from './udp-errors.ts';

/** Called with the address of a datagram that could not be sent. */
export type Unreachable = (address: string) => void;

/** ms. The queue is the kernel's hint that the sender is too fast: checking late loses nothing. */
const RETRY = 1;

export class DgramSender implements Sender {
  readonly #socket: Socket;
  readonly #queue = new PacketQueue();
  readonly #limits: HopLimits;
  /** Number of newest packets in the queue that are held back. */
  #held = 0;
  /** Datagrams with a hop limit of their own wait, or are leaving. */
  #holding = false;
  #closed = false;
  /** Packets given to `dgram` when the current tick was requested, -1 = no tick. */
  #expected = -1;
  #whenIdle: (() => void) | undefined;
  readonly #unreachable: Unreachable;
  /** Destination of the first packet of the current tick. */
  #first = '';

  constructor(socket: Socket, family: SocketType, unreachable: Unreachable = () => {}) {
    this.#socket = socket;
    this.#unreachable = unreachable;
    this.#limits = new HopLimits(socket, family);
  }

  /**
   * Unreachable address or no permission: the datagram is lost. Without a callback `dgram` hides that error, so the
   * first packet of each tick has one.
   */
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

  /** Sends once nothing is in flight. @returns false when it was dropped: too many wait */
  sendWithHopLimit(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean {
    if (!this.#limits.add(datagram, address, port, hopLimit)) return false;
    if (!this.#holding) {
      this.#holding = true;
      if (this.#expected < 0) this.#comeBack();
    }
    return true;
  }

  /** Calls `run` once, as soon as nothing is in flight. */
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

  /** Number of packets given to `dgram`. */
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

  /** Releases held packets; datagrams with a hop limit that arrived meanwhile follow them. */
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
