/**
 * The sockets of a driver, each with its queue (socket-queue.ts), and the share of the engine's packets that each may
 * hold: while all others stall, packets are left for the last socket. Sockets that were added with a common share count
 * as one.
 */
import type { DatagramSocket } from '../platform/environment.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { Packets } from './engine.ts';
import { Share, SocketQueue } from './socket-queue.ts';

/** Share of the engine's slots that is left for the last socket when all others stall. */
const RESERVE = 1 / 4;

/** Counters of what the queues took and what they dropped. */
export interface QueueStats {
  sent: number;
  /** Packets and datagrams whose socket was removed, or whose queue was full. */
  dropped: number;
}

export class SocketQueues {
  /** `room` has returned 0 for some socket since this was reset. */
  hadNoRoom = false;
  readonly #slots: number;
  readonly #stats: QueueStats;
  readonly #drained: () => void;
  readonly #queues = new Map<number, SocketQueue>();
  /** The share common to many sockets, and how many sockets have it. */
  readonly #common = new Share();
  #withCommon = 0;
  /** Queues that are full. */
  readonly #full = new Set<SocketQueue>();
  /** Datagrams queued at all sockets, removed ones included; and how many of them are packets of the engine. */
  #queued = 0;
  #lent = 0;

  /** @param slots of the engine @param drained called when a datagram has left a queue that has room again */
  constructor(slots: number, stats: QueueStats, drained: () => void) {
    this.#slots = slots;
    this.#stats = stats;
    this.#drained = drained;
  }

  /** Sockets in the order in which they were added. */
  get sockets(): readonly DatagramSocket[] {
    return [...this.#queues.values()].map(({ socket }) => socket);
  }

  /** Nothing is queued at any socket, not even at a removed one. */
  get isEmpty(): boolean {
    return this.#queued === 0;
  }

  /** Packets of the engine that are queued. */
  get lent(): number {
    return this.#lent;
  }

  get isAnyFull(): boolean {
    return this.#full.size > 0;
  }

  get areAllFull(): boolean {
    return this.#full.size > 0 && this.#full.size === this.#queues.size;
  }

  has(socket: DatagramSocket): boolean {
    return this.#queues.get(socket.index)?.socket === socket;
  }

  /**
   * @param inCommon the socket shares one part of the engine's packets with all sockets added this way
   * @throws LocalError INVALID_ARGUMENT when another socket has its index
   */
  add(socket: DatagramSocket, inCommon: boolean): void {
    if (this.#queues.has(socket.index)) throw new LocalError('INVALID_ARGUMENT', `another socket has the index ${socket.index}`);
    const queue = new SocketQueue(socket, inCommon ? this.#common : new Share(), this.#released);
    this.#queues.set(socket.index, queue);
    // One more user of the common share changes no limit: there may be ten thousand of these.
    if (!inCommon || ++this.#withCommon === 1) this.#shareSlots();
  }

  /** Removes a socket and closes it. @returns false for a socket that was not added */
  remove(socket: DatagramSocket): boolean {
    const queue = this.#queues.get(socket.index);
    if (queue?.socket !== socket) return false;
    this.#queues.delete(socket.index);
    this.#full.delete(queue);
    // Packets that it still releases no longer count towards a full queue.
    queue.isFull = false;
    socket.close();
    if (queue.share !== this.#common || --this.#withCommon === 0) this.#shareSlots();
    return true;
  }

  /** Sends a datagram that is not the engine's. @returns false when it was dropped */
  forward(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    const queue = this.#queues.get(path.socket);
    const sent = hopLimit === undefined ? queue?.forward(datagram, path) : queue?.forwardWithHopLimit(datagram, path, hopLimit);
    if (sent !== true) {
      this.#stats.dropped++;
      return false;
    }
    // A datagram with a hop limit is never released.
    if (hopLimit === undefined) this.#queued++;
    this.#stats.sent++;
    return true;
  }

  /** Sends packets of the engine, or drops them where they have no socket or no room. */
  send(packets: Packets): void {
    const { count, offsets } = packets;
    const queue = this.#queues.get(packets.path.socket);
    if (queue === undefined || queue.room === 0) {
      this.#stats.dropped += count;
      for (let i = 0; i < count; i++) packets.release(offsets[i]!);
      return;
    }
    this.#queued += count;
    this.#lent += count;
    this.#stats.sent += count;
    queue.send(packets);
    if (queue.isFull) this.#full.add(queue);
  }

  /** Returns how many packets a socket takes now. For a removed socket there is no limit: its packets are dropped. */
  readonly room = (socket: number): number => {
    const room = this.#queues.get(socket)?.room ?? Number.POSITIVE_INFINITY;
    if (room === 0) this.hadNoRoom = true;
    return room;
  };

  /** Closes all sockets. */
  close(): void {
    for (const { socket } of this.#queues.values()) socket.close();
    this.#queues.clear();
  }

  /** A datagram has left, or never will. */
  readonly #released = (queue: SocketQueue, lent: 0 | 1): void => {
    this.#queued--;
    this.#lent -= lent;
    if (queue.share !== this.#common) this.#reopen(queue);
    else for (const each of this.#full) this.#reopen(each);
    if (queue.isDrained) this.#drained();
  };

  #reopen(queue: SocketQueue): void {
    if (!queue.isFull || !queue.isDrained) return;
    queue.isFull = false;
    this.#full.delete(queue);
  }

  /**
   * A single share may have all slots of the engine (n / 0 is Infinity). With several, all but one together leave a
   * part free.
   */
  #shareSlots(): void {
    const queues = [...this.#queues.values()];
    const shares = new Set(queues.map(({ share }) => share));
    const limit = Math.floor(((1 - RESERVE) * this.#slots) / (shares.size - 1));
    for (const share of shares) share.limit = Math.max(1, limit);
    for (const queue of queues) queue.review();
    this.#full.clear();
    for (const queue of queues) if (queue.isFull) this.#full.add(queue);
  }
}
