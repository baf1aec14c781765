/**
 * The queue of one socket of a driver: the datagrams that the socket was given and has not given back.
 *
 * Two sources fill it: the engine, whose packets lie in memory that the engine needs back, and the owner of the driver, who forwards datagrams of others. Peers
 * fill it through them, by what they have the engine answer or the owner forward. A socket gives each datagram back when it has left, or when it was closed
 * (DatagramSocket.send); one that stalls gives none back.
 *
 * The queue is full from `MAX_QUEUED` datagrams on, or with as many packets of the engine as its share allows, until the engine's packets are down to half
 * and forwarded datagrams would be taken again. While it is full
 *   - the engine makes no packets for it, so what applications write waits (`room`), and so does the end of a connection;
 *   - packets that the engine makes regardless, such as handshake answers and path challenges, are dropped.
 * A datagram that is forwarded is refused `RESERVED` before that: however much is forwarded, the owner's own connections find room.
 */
import type { Path } from '../protocol/path.ts';
import type { Packets } from './engine.ts';
import type { DatagramSocket } from './environment.ts';

/** Most datagrams one socket may hold. */
export const MAX_QUEUED = 256;
/** Of them, those that only packets of the engine may take: a batch. */
const RESERVED = 32;

/** Called for each datagram that was given back. @param lent 1 for a packet of the engine, else 0 */
export type OnReleased = (queue: SocketQueue, lent: 0 | 1) => void;

export class SocketQueue {
  readonly socket: DatagramSocket;
  /** Datagrams with the socket. */
  length = 0;
  /** Those of them that are packets of the engine. */
  lent = 0;
  isFull = false;
  /** Packets of the engine that it may have. */
  #share = Number.POSITIVE_INFINITY;
  readonly #onReleased: OnReleased;
  readonly #releasers = new WeakMap<Packets, (offset: number) => void>();
  #lastPackets: Packets | undefined;
  #lastReleaser: (offset: number) => void = () => {};

  constructor(socket: DatagramSocket, onReleased: OnReleased) {
    this.socket = socket;
    this.#onReleased = onReleased;
  }

  /** Packets of the engine that it takes now; 0 while it is full. */
  get room(): number {
    return this.isFull ? 0 : this.#share - this.lent;
  }

  /** Few enough packets of the engine are left that making more is worth a service; a full one has room again. */
  get isDrained(): boolean {
    return this.lent <= Math.min(MAX_QUEUED, this.#share) / 2 && this.length <= MAX_QUEUED - RESERVED;
  }

  /** Changes its share of the engine's packets, from 1. */
  limit(share: number): void {
    this.#share = share;
    this.isFull = this.isFull ? !this.isDrained : this.#isAtLimit;
  }

  /** Sends packets of the engine. */
  send(packets: Packets): void {
    const { path, count, buffer, offsets, lengths } = packets;
    const released = this.#releaser(packets);
    this.length += count;
    this.lent += count;
    if (this.#isAtLimit) this.isFull = true;
    for (let i = 0; i < count; i++) this.socket.send(buffer, offsets[i]!, lengths[i]!, path, released);
  }

  /** Sends a datagram that is not the engine's. @returns false when it has too many */
  forward(datagram: Uint8Array, path: Path): boolean {
    if (this.length >= MAX_QUEUED - RESERVED) return false;
    this.length++;
    this.socket.send(datagram, 0, datagram.length, path, this.#left);
    return true;
  }

  /**
   * Sends such a datagram with a hop limit of its own. It does not count here: the socket bounds how many of these wait.
   * @returns false when the queue has too many, or the socket cannot do it
   */
  forwardWithHopLimit(datagram: Uint8Array, path: Path, hopLimit: number): boolean {
    if (this.socket.sendWithHopLimit === undefined || this.length >= MAX_QUEUED - RESERVED) return false;
    this.socket.sendWithHopLimit(datagram, path, hopLimit);
    return true;
  }

  get #isAtLimit(): boolean {
    return this.length >= MAX_QUEUED || this.lent >= this.#share;
  }

  /** One callback for each batch object, and engines use the same few objects for ever. */
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
      this.lent--;
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
