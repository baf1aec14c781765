/**
 * The queue of one socket of a driver: the datagrams that the socket holds and has not released.
 *
 * Two sources fill it: the engine, whose packets lie in memory that the engine needs back, and the owner of the driver,
 * which forwards datagrams of others. Peers fill it indirectly, by what they make the engine answer or the owner
 * forward. A socket releases each datagram when it has left, or when the socket was closed (DatagramSocket.send); a
 * stalled one releases none.
 *
 * The queue is full from `MAX_QUEUED` datagrams on, or with as many packets of the engine as its share allows. It stays
 * full until the engine's packets are down to half and forwarded datagrams would be taken again. Several queues may
 * have a common share. While it is full, or its socket says that it has no room,
 *   - the engine makes no packets for it, so what applications write waits (`room`), and so does the end of a
 *     connection;
 *   - packets that the engine makes regardless, such as handshake answers and path challenges, are dropped. Forwarding
 *     stops `RESERVED` datagrams earlier: however much is forwarded, the owner's own connections find room.
 */

import type { DatagramSocket } from '../platform/environment.ts';
import type { Path } from '../protocol/path.ts';
import type { Packets } from './engine.ts';

/** Most datagrams that one socket may hold. */
export const MAX_QUEUED = 256;
/** Part of `MAX_QUEUED` that only packets of the engine may use: a batch. */
export const RESERVED = 32;

/** Called for each released datagram. @param lent 1 for a packet of the engine, else 0 */
export type OnReleased = (queue: SocketQueue, lent: 0 | 1) => void;

/** Packets of the engine that one queue may hold, or several together. */
export class Share {
  /** From 1. After a change each of its queues must be reviewed. */
  limit = Number.POSITIVE_INFINITY;
  /** Packets that the sockets hold now. */
  lent = 0;
}

export class SocketQueue {
  readonly socket: DatagramSocket;
  readonly share: Share;
  /** Datagrams with the socket. */
  length = 0;
  isFull = false;
  readonly #onReleased: OnReleased;
  readonly #releasers = new WeakMap<Packets, (offset: number) => void>();
  #lastPackets: Packets | undefined;
  #lastReleaser: (offset: number) => void = () => {};

  constructor(socket: DatagramSocket, share: Share, onReleased: OnReleased) {
    this.socket = socket;
    this.share = share;
    this.#onReleased = onReleased;
  }

  /** Packets of the engine that the queue takes now; none while it is full, or while others use the whole share. */
  get room(): number {
    return this.isFull ? 0 : Math.max(0, Math.min(this.share.limit - this.share.lent, this.#socketRoom));
  }

  /** The queue holds so few packets of the engine that making more is worth a service; a full queue has room again. */
  get isDrained(): boolean {
    const isDown = this.share.lent <= Math.min(MAX_QUEUED, this.share.limit) / 2 && this.length <= MAX_QUEUED - RESERVED;
    return isDown && this.#socketRoom > 0;
  }

  /** Call after the limit of its share has changed. */
  review(): void {
    this.isFull = this.isFull ? !this.isDrained : this.#isAtLimit;
  }

  /** Sends packets of the engine. */
  send(packets: Packets): void {
    const { path, count, buffer, offsets, lengths } = packets;
    const released = this.#releaser(packets);
    this.length += count;
    this.share.lent += count;
    if (this.#isAtLimit) this.isFull = true;
    for (let i = 0; i < count; i++) this.socket.send(buffer, offsets[i]!, lengths[i]!, path, released);
  }

  /** Sends a datagram that is not the engine's. @returns false when the queue has no room for it */
  forward(datagram: Uint8Array, path: Path): boolean {
    if (this.length >= MAX_QUEUED - RESERVED || this.#socketRoom === 0) return false;
    this.length++;
    this.socket.send(datagram, 0, datagram.length, path, this.#left);
    return true;
  }

  /**
   * Sends such a datagram with its own hop limit. It does not count here: the socket bounds how many of these wait.
   * @returns false when the queue has no room, or the socket does not support hop limits
   */
  forwardWithHopLimit(datagram: Uint8Array, path: Path, hopLimit: number): boolean {
    if (this.socket.sendWithHopLimit === undefined || this.length >= MAX_QUEUED - RESERVED) return false;
    this.socket.sendWithHopLimit(datagram, path, hopLimit);
    return true;
  }

  get #isAtLimit(): boolean {
    return this.length >= MAX_QUEUED || this.share.lent >= this.share.limit;
  }

  get #socketRoom(): number {
    return this.socket.room ?? Number.POSITIVE_INFINITY;
  }

  /** One callback for each batch object: engines reuse a few objects. */
  #releaser(packets: Packets): (offset: number) => void {
    if (packets === this.#lastPackets) return this.#lastReleaser;
    const released = this.#releasers.get(packets) ?? this.#makeReleaser(packets);
    this.#lastPackets = packets;
    this.#lastReleaser = released;
    return released;
  }

  #makeReleaser(packets: Packets): (offset: number) => void {
    const released = (offset: number): void => {
      packets.release(offset);
      this.length--;
      this.share.lent--;
      this.#onReleased(this, 1);
    };
    this.#releasers.set(packets, released);
    return released;
  }

  readonly #left = (): void => {
    this.length--;
    this.#onReleased(this, 0);
  };
}
