/**
 * The IO shell: the one place where sockets, a timer and an engine meet.
 *
 * 1. For each datagram: call `engine.receive`, then drain events immediately, so that a waiting reader resumes before
 *    the next datagram is read.
 * 2. A service follows once the running code and all promises that it settles have run (`clock.soon`). So a response
 *    leaves in the same turn as its request, in one packet with the acknowledgement. The same holds for `wake`. After a
 *    service for several datagrams the driver expects more: then events and service follow the whole batch of IO
 *    (`clock.defer`), until such a batch is a single datagram. To find out whether datagrams come in batches, the
 *    driver defers one service in `LOOK_EVERY`. A clock cannot show this: how soon a socket delivers the next queued
 *    datagram depends on the machine; on a slow one it takes as long as a response on a fast one.
 * 3. The service passes due timeouts to the engine,
 * 4. drains its events to the owner, which may call the engine in turn, at once or from promises (its answers leave in
 *    the same service),
 * 5. takes packets from the engine until there are none and passes them to the sockets without copying; after
 *    `PACKETS_PER_SERVICE` it lets the sockets receive first and continues in the next service,
 * 6. and arms one timer for the engine's next timeout. A timer that fires too early finds nothing due and arms again:
 *    that is cheaper than resetting it with every packet.
 * 7. A socket releases each packet when it has left; the engine may then reuse its memory. Each socket has a bounded
 *    queue (socket-queue.ts). The engine makes no packets for a full one, so a full socket buffer slows the sender down
 *    instead of growing a queue here. No socket takes so large a share of the engine's packets that another would run
 *    short if all others stalled. Sockets that were added with a common share count as one.
 *
 * The driver decides nothing about connections, and allocates nothing per packet. An exception of engine or owner is a
 * bug: it is logged and counted, and the loop continues.
 */

import type { BindOptions, BoundSocket, Cancel, DatagramSocket, Environment } from '../platform/environment.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { Engine, Packets } from './engine.ts';
import { Share, SocketQueue } from './socket-queue.ts';

/** Options of a driver: its environment, its engine and its callbacks. */
export interface DriverOptions<Event> {
  environment: Pick<Environment, 'clock' | 'network' | 'log'>;
  engine: Engine<Event>;
  /** Receives each event of the engine, within a service. */
  onEvent: (event: Event) => void;
  /** As {@link BindOptions.unreachable}, for the sockets that the driver opens. */
  onUnreachable?: (address: string) => void;
}

/**
 * Receives a datagram before the engine does, on loan as in {@link BindOptions.receive}.
 * @returns true when it takes the datagram
 */
export type Interceptor = (datagram: Uint8Array, path: Path) => boolean;

/** Datagrams counted since the start. */
export interface DriverStats {
  received: number;
  sent: number;
  /** Packets and datagrams whose socket was removed, or whose queue was full. */
  dropped: number;
  /** Exceptions of engine or owner: each is a bug. */
  failures: number;
}

/** Packets per service before arrivals get their turn: what waits behind a bulk transfer waits for one such batch. */
const PACKETS_PER_SERVICE = 32;
/** Free slots below which the engine may return no packets only because it lacks slots. */
const MIN_FREE = 2;
/** Share of the engine's slots that is left for the last socket when all others stall. */
const RESERVE = 1 / 4;
/** ms until the next service after one that threw, so that a persistent bug does not spin. */
const FAILURE_PAUSE = 100;
/**
 * Arrivals after which events are drained before the end of the batch: an engine queues only a limited number of
 * events, such as 64 datagrams of tunnels.
 */
const DRAIN_EVERY = 32;
/**
 * Immediate services before one waits for its batch, to see how many datagrams that has: batches of a bulk transfer
 * have 31.
 */
const LOOK_EVERY = 16;

/** One loop over one engine and its sockets. */
export class Driver<Event> {
  readonly stats: DriverStats = { received: 0, sent: 0, dropped: 0, failures: 0 };

  readonly #environment: DriverOptions<Event>['environment'];
  readonly #engine: Engine<Event>;
  readonly #onEvent: DriverOptions<Event>['onEvent'];
  readonly #onUnreachable: DriverOptions<Event>['onUnreachable'];
  /** Never mutated, only replaced. */
  #interceptors: readonly Interceptor[] = [];
  readonly #sockets = new Map<number, SocketQueue>();
  /** The share common to many sockets, and how many sockets have it. */
  readonly #common = new Share();
  #withCommon = 0;
  /** Queues that are full. */
  readonly #full = new Set<SocketQueue>();
  /** Datagrams queued at all sockets, removed ones included; and how many of them are packets of the engine. */
  #queued = 0;
  #lent = 0;
  #serviceDue = false;
  /**
   * Immediate services left, 0 after one for several datagrams; and how many follow the next batch of a single
   * datagram.
   */
  #atOnce = LOOK_EVERY;
  #nextAtOnce = LOOK_EVERY;
  /** Datagrams since the last service. */
  #arrived = 0;
  /** Packets sent since the sockets last got a turn. */
  #sentInTurn = 0;
  /** A service has emitted events and waits for the promises that they settle. */
  #hasEmitted = false;
  /** Events are being drained: the next service handles what they cause. */
  #draining = false;
  /** `#room` has returned 0 for some socket since packets were last asked for. */
  #hadNoRoom = false;
  /** The engine may have more packets: ask again when the sockets have caught up. */
  #askAgain = false;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: Cancel | undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #closing: Promise<void> | undefined;
  /** Wait until everything has left. */
  #flushing: (() => void)[] = [];

  constructor(options: DriverOptions<Event>) {
    this.#environment = options.environment;
    this.#engine = options.engine;
    this.#onEvent = options.onEvent;
    this.#onUnreachable = options.onUnreachable;
  }

  /**
   * Opens a socket of the environment and adds it; closes it at once if the driver is closing. Errors as {@link
   * Environment.network}.
   */
  async bind(options: Omit<BindOptions, 'receive' | 'bulk' | 'unreachable'>): Promise<BoundSocket> {
    const unreachable = this.#onUnreachable;
    const socket = await this.#environment.network.bind({
      ...options,
      bulk: true,
      receive: this.receive,
      ...(unreachable && { unreachable }),
    });
    this.add(socket);
    return socket;
  }

  /**
   * Adds an open socket, which delivers to {@link receive}. The driver closes it in the end. For its queue see
   * socket-queue.ts. Does nothing if the socket was already added; a closing or closed driver closes it at once.
   * @param inCommon the socket shares one part of the engine's packets with all sockets added this way: for kinds of
   *   which there may be many
   * @throws LocalError INVALID_ARGUMENT when another socket has its index
   */
  add(socket: DatagramSocket, inCommon = false): void {
    const known = this.#sockets.get(socket.index);
    if (known?.socket === socket) return;
    if (known !== undefined) throw new LocalError('INVALID_ARGUMENT', `another socket has the index ${socket.index}`);
    if (this.#state !== 'open') {
      socket.close();
      return;
    }
    const queue = new SocketQueue(socket, inCommon ? this.#common : new Share(), this.#released);
    this.#sockets.set(socket.index, queue);
    // One more user of the common share changes no limit: there may be ten thousand of these.
    if (!inCommon || ++this.#withCommon === 1) this.#shareSlots();
  }

  /**
   * Removes a socket and closes it: it releases the packets in its queue; packets that the engine still makes for its
   * paths are dropped and counted. Does nothing for a socket that was not added. May be called from any callback of the
   * driver.
   */
  remove(socket: DatagramSocket): void {
    const queue = this.#sockets.get(socket.index);
    if (queue?.socket !== socket) return;
    this.#sockets.delete(socket.index);
    this.#full.delete(queue);
    // Packets that it still releases no longer count towards a full queue.
    queue.isFull = false;
    socket.close();
    if (queue.share !== this.#common || --this.#withCommon === 0) this.#shareSlots();
    this.wake();
  }

  /** Sockets in the order in which they were added. */
  get sockets(): readonly DatagramSocket[] {
    return [...this.#sockets.values()].map(({ socket }) => socket);
  }

  /**
   * Schedules a service. Call it after any call on the engine from outside a service: the engine may have packets,
   * events or a new timeout. Cheap and coalesced.
   */
  wake(): void {
    if (this.#serviceDue || this.#draining || this.#state === 'closed') return;
    this.#askService();
  }

  /**
   * Shows each datagram to `interceptor` before the engine, after earlier interceptors. The first that takes a datagram
   * hides it from later ones and from the engine; one that passes it on may have changed its bytes. An exception of an
   * interceptor is a bug: the datagram is dropped. Adding or removing an interceptor while a datagram is shown takes
   * effect with the next one.
   * @returns a function that removes the interceptor; harmless to call twice
   */
  intercept(interceptor: Interceptor): () => void {
    const own: Interceptor = (datagram, path) => interceptor(datagram, path); // the same function may be added twice
    this.#interceptors = [...this.#interceptors, own];
    return () => {
      this.#interceptors = this.#interceptors.filter((other) => other !== own);
    };
  }

  /**
   * Sends a datagram that is not the engine's, such as a forwarded one. The caller must not change it afterwards.
   * @param hopLimit 1 to 255, for this datagram only; default the system's
   * @returns false when it was dropped: no such socket, a queue without room, or no support for hop limits. True
   *   promises no delivery.
   */
  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    const queue = this.#sockets.get(path.socket);
    const sent = hopLimit === undefined ? queue?.forward(datagram, path) : queue?.forwardWithHopLimit(datagram, path, hopLimit);
    if (sent !== true) {
      this.stats.dropped++;
      return false;
    }
    // A datagram with a hop limit is never released.
    if (hopLimit === undefined) this.#queued++;
    this.stats.sent++;
    return true;
  }

  /** Sends what the engine has now; resolves when the sockets hold nothing any more. */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#state === 'closed') return resolve();
      this.#flushing.push(resolve);
      this.wake();
    });
  }

  /**
   * Sends what the engine still has, waits until it has left, then closes the sockets. Close the engine's connections
   * first.
   */
  close(): Promise<void> {
    if (this.#state === 'open') this.#state = 'closing';
    this.#closing ??= this.flush();
    return this.#closing;
  }

  /** Receives a datagram of an added socket, as {@link BindOptions.receive}. */
  readonly receive = (datagram: Uint8Array, path: Path): void => {
    if (this.#state === 'closed') return;
    this.stats.received++;
    this.#arrived++;
    const now = this.#environment.clock.now();
    try {
      if (this.#intercepted(datagram, path)) return;
      this.#engine.receive(datagram, path, now);
      if (!this.#serviceDue && this.#askService()) this.#drainEvents();
      else if (this.#arrived % DRAIN_EVERY === 0) this.#drainEvents();
    } catch (error) {
      this.#failed('receive', error);
      this.wake();
    }
  };

  #intercepted(datagram: Uint8Array, path: Path): boolean {
    const interceptors = this.#interceptors;
    for (let i = 0; i < interceptors.length; i++) if (interceptors[i]!(datagram, path)) return true;
    return false;
  }

  /** Returns true when the service runs immediately. */
  #askService(): boolean {
    this.#serviceDue = true;
    const { clock } = this.#environment;
    const atOnce = this.#atOnce > 0 && this.#sentInTurn < PACKETS_PER_SERVICE;
    if (atOnce) clock.soon(this.#service);
    else clock.defer(this.#serveBatch);
    return atOnce;
  }

  /** Drains the events of a batch of IO first: what they cause leaves in the service that follows. */
  readonly #serveBatch = (): void => {
    if (this.#state === 'closed') return;
    this.#sentInTurn = 0;
    this.#environment.clock.soon(this.#service);
    this.#drainEvents();
  };

  readonly #service = (): void => {
    if (this.#state === 'closed') return;
    const { clock } = this.#environment;
    const now = clock.now();
    let next = now + FAILURE_PAUSE;
    try {
      if (this.#engine.nextTimeout() <= now) this.#engine.handleTimeout(now);
      if (this.#drainEvents() && !this.#hasEmitted) {
        // What the promises of these events do must leave now, too.
        this.#hasEmitted = true;
        clock.soon(this.#service);
        return;
      }
      this.#serviceDue = false;
      this.#transmit(now);
      next = this.#engine.nextTimeout();
    } catch (error) {
      this.#serviceDue = false;
      this.#failed('service', error);
      this.#askAgain = true;
    }
    this.#hasEmitted = false;
    this.#countService();
    if (this.#serviceDue) return;
    const hasLeft = this.#queued === 0;
    if (this.#state === 'closing' && hasLeft) this.#end();
    else this.#arm(next, now);
    if (hasLeft && this.#flushing.length > 0) for (const resolve of this.#flushing.splice(0)) resolve();
  };

  /**
   * After batches of several, defers often at first: 1, 2, 4 … `LOOK_EVERY` immediate services between deferred ones.
   */
  #countService(): void {
    if (this.#arrived > 1) {
      this.#atOnce = 0;
      this.#nextAtOnce = 1;
    } else if (this.#atOnce > 0) this.#atOnce--;
    else {
      this.#atOnce = this.#nextAtOnce;
      this.#nextAtOnce = Math.min(2 * this.#nextAtOnce, LOOK_EVERY);
    }
    this.#arrived = 0;
  }

  /** Returns true when there were events. */
  #drainEvents(): boolean {
    this.#draining = true;
    let some = false;
    try {
      for (let event = this.#engine.nextEvent(); event !== null; event = this.#engine.nextEvent()) {
        some = true;
        this.#emit(event);
      }
    } catch (error) {
      this.#failed('event', error);
    } finally {
      this.#draining = false;
    }
    return some;
  }

  #emit(event: Event): void {
    try {
      this.#onEvent(event);
    } catch (error) {
      this.#failed('event', error);
    }
  }

  #transmit(now: number): void {
    this.#hadNoRoom = false;
    for (let packetsSent = 0; packetsSent < PACKETS_PER_SERVICE; ) {
      if (this.#full.size > 0 && this.#full.size === this.#sockets.size) {
        this.#askAgain = true;
        return;
      }
      const packets = this.#engine.transmit(now, this.#room);
      if (packets === null) {
        const isShort = this.#engine.slots - this.#lent < MIN_FREE;
        this.#askAgain = isShort || this.#hadNoRoom || this.#full.size > 0 || this.#flushing.length > 0;
        return;
      }
      packetsSent += packets.count;
      this.#sentInTurn += packets.count;
      this.#send(packets);
    }
    this.#serviceDue = true;
    this.#environment.clock.defer(this.#serveBatch);
  }

  #send(packets: Packets): void {
    const queue = this.#sockets.get(packets.path.socket);
    if (queue === undefined || queue.room === 0) {
      this.#drop(packets);
      return;
    }
    const { count } = packets;
    this.#queued += count;
    this.#lent += count;
    this.stats.sent += count;
    queue.send(packets);
    if (queue.isFull) this.#full.add(queue);
  }

  #drop(packets: Packets): void {
    const { count, offsets } = packets;
    this.stats.dropped += count;
    for (let i = 0; i < count; i++) packets.release(offsets[i]!);
  }

  /** Returns how many packets a socket takes now. For a removed socket there is no limit: its packets are dropped. */
  readonly #room = (socket: number): number => {
    const room = this.#sockets.get(socket)?.room ?? Number.POSITIVE_INFINITY;
    if (room === 0) this.#hadNoRoom = true;
    return room;
  };

  /** A datagram has left, or never will. */
  readonly #released = (queue: SocketQueue, lent: 0 | 1): void => {
    this.#queued--;
    this.#lent -= lent;
    if (queue.share !== this.#common) this.#reopen(queue);
    else for (const each of this.#full) this.#reopen(each);
    if (this.#askAgain && queue.isDrained) {
      this.#askAgain = false;
      this.wake();
    }
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
    const queues = [...this.#sockets.values()];
    const shares = new Set(queues.map(({ share }) => share));
    const limit = Math.floor(((1 - RESERVE) * this.#engine.slots) / (shares.size - 1));
    for (const share of shares) share.limit = Math.max(1, limit);
    for (const queue of queues) queue.review();
    this.#full.clear();
    for (const queue of queues) if (queue.isFull) this.#full.add(queue);
  }

  #arm(at: number, now: number): void {
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = this.#environment.clock.schedule(Math.max(0, at - now), this.#timeout);
  }

  readonly #timeout = (): void => {
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#cancelTimer = undefined;
    this.wake();
  };

  #end(): void {
    this.#state = 'closed';
    this.#cancelTimer?.();
    for (const { socket } of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  /** Counts every failure, logs the 1st, 2nd, 4th, 8th …: a bug in the path of each packet must not fill a disk. */
  #failed(where: string, error: unknown): void {
    const failures = ++this.stats.failures;
    if ((failures & (failures - 1)) !== 0) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#environment.log.error('unexpected exception, please report it', { where, failures, error: text });
  }
}
