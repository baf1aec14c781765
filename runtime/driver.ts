/**
 * The IO shell: the one place where sockets, a timer and an engine meet.
 *
 * 1. For each datagram: call `engine.receive`, then drain events immediately, so that a waiting reader resumes before
 *    the next datagram is read.
 * 2. A service follows once the running code and all promises that it settles have run (`clock.soon`). So a response
 *    leaves in the same turn as its request, in one packet with the acknowledgement. The same holds for `wake`. Where
 *    datagrams come in batches, events and service follow the whole batch of IO (`clock.defer`, service-pace.ts).
 * 3. The service passes due timeouts to the engine,
 * 4. drains its events to the owner, which may call the engine in turn, at once or from promises (its answers leave in
 *    the same service),
 * 5. takes packets from the engine until there are none and passes them to the sockets without copying; after
 *    `PACKETS_PER_SERVICE` it lets the sockets receive first and continues in the next service,
 * 6. and arms one timer for the engine's next timeout. A timer that fires too early finds nothing due and arms again:
 *    that is cheaper than resetting it with every packet.
 * 7. A socket releases each packet when it has left; the engine may then reuse its memory. Each socket has a bounded
 *    queue (socket-queues.ts). The engine makes no packets for a full one, so a full socket buffer slows the sender
 *    down instead of growing a queue here.
 *
 * The driver decides nothing about connections, and allocates nothing per packet. An exception of engine or owner is a
 * bug: it is logged and counted, and the loop continues.
 */

import type { BindOptions, BoundSocket, Cancel, DatagramSocket, Environment } from '../platform/environment.ts';
import type { Path } from '../protocol/path.ts';
import type { Engine } from './engine.ts';
import { ServicePace } from './service-pace.ts';
import { type QueueStats, SocketQueues } from './socket-queues.ts';

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
export interface DriverStats extends QueueStats {
  received: number;
  /** Exceptions of engine or owner: each is a bug. */
  failures: number;
}

/** Packets per service before arrivals get their turn: what waits behind a bulk transfer waits for one such batch. */
const PACKETS_PER_SERVICE = 32;
/** Free slots below which the engine may return no packets only because it lacks slots. */
const MIN_FREE = 2;
/** ms until the next service after one that threw, so that a persistent bug does not spin. */
const FAILURE_PAUSE = 100;
/**
 * Arrivals after which events are drained before the end of the batch: an engine queues only a limited number of
 * events, such as 64 datagrams of tunnels.
 */
const DRAIN_EVERY = 32;
/** One loop over one engine and its sockets. */
export class Driver<Event> {
  readonly stats: DriverStats = { received: 0, sent: 0, dropped: 0, failures: 0 };

  readonly #environment: DriverOptions<Event>['environment'];
  readonly #engine: Engine<Event>;
  readonly #onEvent: DriverOptions<Event>['onEvent'];
  readonly #onUnreachable: DriverOptions<Event>['onUnreachable'];
  /** Never mutated, only replaced. */
  #interceptors: readonly Interceptor[] = [];
  readonly #queues: SocketQueues;
  #serviceDue = false;
  readonly #pace = new ServicePace();
  /** Packets sent since the sockets last got a turn. */
  #sentInTurn = 0;
  /** A service has emitted events and waits for the promises that they settle. */
  #hasEmitted = false;
  /** Events are being drained: the next service handles what they cause. */
  #draining = false;
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
    this.#queues = new SocketQueues(options.engine.slots, this.stats, () => this.#drained());
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
    if (this.#queues.has(socket)) return;
    if (this.#state === 'open') this.#queues.add(socket, inCommon);
    else socket.close();
  }

  /**
   * Removes a socket and closes it: it releases the packets in its queue; packets that the engine still makes for its
   * paths are dropped and counted. Does nothing for a socket that was not added. May be called from any callback of the
   * driver.
   */
  remove(socket: DatagramSocket): void {
    if (this.#queues.remove(socket)) this.wake();
  }

  /** Sockets in the order in which they were added. */
  get sockets(): readonly DatagramSocket[] {
    return this.#queues.sockets;
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
    return this.#queues.forward(datagram, path, hopLimit);
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
    this.#pace.arrived++;
    const now = this.#environment.clock.now();
    try {
      if (this.#intercepted(datagram, path)) return;
      this.#engine.receive(datagram, path, now);
      if (!this.#serviceDue && this.#askService()) this.#drainEvents();
      else if (this.#pace.arrived % DRAIN_EVERY === 0) this.#drainEvents();
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
    const atOnce = this.#pace.isAtOnce && this.#sentInTurn < PACKETS_PER_SERVICE;
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
    this.#pace.served();
    if (this.#serviceDue) return;
    const hasLeft = this.#queues.isEmpty;
    if (this.#state === 'closing' && hasLeft) this.#end();
    else this.#arm(next, now);
    if (hasLeft && this.#flushing.length > 0) for (const resolve of this.#flushing.splice(0)) resolve();
  };

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
    const queues = this.#queues;
    queues.hadNoRoom = false;
    for (let packetsSent = 0; packetsSent < PACKETS_PER_SERVICE; ) {
      if (queues.areAllFull) {
        this.#askAgain = true;
        return;
      }
      const packets = this.#engine.transmit(now, queues.room);
      if (packets === null) {
        const isShort = this.#engine.slots - queues.lent < MIN_FREE;
        this.#askAgain = isShort || queues.hadNoRoom || queues.isAnyFull || this.#flushing.length > 0;
        return;
      }
      packetsSent += packets.count;
      this.#sentInTurn += packets.count;
      queues.send(packets);
    }
    this.#serviceDue = true;
    this.#environment.clock.defer(this.#serveBatch);
  }

  /** A socket has room again. */
  #drained(): void {
    if (!this.#askAgain) return;
    this.#askAgain = false;
    this.wake();
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
    this.#queues.close();
  }

  /** Counts every failure, logs the 1st, 2nd, 4th, 8th …: a bug in the path of each packet must not fill a disk. */
  #failed(where: string, error: unknown): void {
    const failures = ++this.stats.failures;
    if ((failures & (failures - 1)) !== 0) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#environment.log.error('unexpected exception, please report it', { where, failures, error: text });
  }
}
