/**
 * The IO shell: the one place where sockets, a timer and an engine meet.
 *
 * 1. For each datagram of a socket: call `engine.receive`, then drain events at once, so that a waiting reader resumes before the socket
 *    is asked for the next one.
 * 2. A service follows when all code and promises that this set going are through (`clock.soon`): an answer leaves in the very turn of the
 *    question, and the acknowledgement with it, in one packet. The same for `wake`, by whoever gave the engine something to do. But after a
 *    service for several datagrams more are expected: then events and service follow the whole batch of IO (`clock.defer`), until such a batch
 *    was a single datagram. Whether datagrams come in batches is found out by putting off one service in `LOOK_EVERY`. No clock tells: how
 *    soon a socket gives the next datagram that is already there depends on the machine, and on a slow one it takes as long as an answer on a
 *    fast one.
 * 3. The service hands due timeouts to the engine,
 * 4. drains its events to the owner, who may call the engine in turn, at once or from promises (its answers leave in the same service),
 * 5. asks for packets until there are none and hands them to the sockets without copying; after `PACKETS_PER_SERVICE` it lets
 *    the sockets receive first and goes on in the next service,
 * 6. and arms one timer for the engine's next timeout. A timer that fires too early finds nothing due and arms again: that is cheaper than
 *    moving it with every packet.
 * 7. A socket gives each packet back when it has left; the engine may use its memory again. Each socket has a queue with a limit (socket-queue.ts): the engine
 *    makes no packets for one that is full, so a full socket buffer slows the sender down instead of growing a queue here. No socket gets so many packets of
 *    the engine that too few were left for another, should all others stall. Sockets that were added with a share in common count as one, however many they
 *    are.
 *
 * It decides nothing about connections, and allocates nothing per packet. An engine or owner that throws has a bug: that is
 * logged and counted, and the loop goes on.
 */

import { LocalError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { Engine, Packets } from './engine.ts';
import type { BindOptions, BoundSocket, Cancel, DatagramSocket, Environment } from './environment.ts';
import { Share, SocketQueue } from './socket-queue.ts';

/** What a driver drives. */
export interface DriverOptions<Event> {
  environment: Pick<Environment, 'clock' | 'network' | 'log'>;
  engine: Engine<Event>;
  /** Each event of the engine, within a service. */
  onEvent: (event: Event) => void;
  /** As {@link BindOptions.unreachable} of the sockets that the driver opens. */
  onUnreachable?: (address: string) => void;
}

/** Sees a datagram before the engine, lent as in {@link BindOptions.receive}. @returns true when it takes the datagram */
export type Interceptor = (datagram: Uint8Array, path: Path) => boolean;

/** Datagrams counted since the start. */
export interface DriverStats {
  received: number;
  sent: number;
  /** Packets and datagrams whose socket was removed, or whose queue was full. */
  dropped: number;
  /** Exceptions of engine or owner: each one a bug. */
  failures: number;
}

/** About half a millisecond of sending before arrivals get their turn. */
const PACKETS_PER_SERVICE = 128;
/** With fewer of its slots free the engine may answer "none" only because of that. */
const LEAST_FREE = 2;
/** Share of the engine's slots that stalled sockets leave to the last one. */
const RESERVE = 1 / 4;
/** Milliseconds until the next service after one that threw: a persistent bug must not spin. */
const FAILURE_PAUSE = 100;
/** Arrivals of a batch after which events are told before its end: an engine keeps few of what a batch brings, such as 64 datagrams of tunnels. */
const TELL_EVERY = 32;
/** Services at once before one follows the batch, to see how many datagrams that has: a bulk transfer's batches have 31. */
const LOOK_EVERY = 16;

/** One loop over one engine and its sockets. */
export class Driver<Event> {
  readonly stats: DriverStats = { received: 0, sent: 0, dropped: 0, failures: 0 };

  readonly #environment: DriverOptions<Event>['environment'];
  readonly #engine: Engine<Event>;
  readonly #onEvent: DriverOptions<Event>['onEvent'];
  readonly #onUnreachable: DriverOptions<Event>['onUnreachable'];
  /** Never changed, but replaced. */
  #interceptors: readonly Interceptor[] = [];
  readonly #sockets = new Map<number, SocketQueue>();
  /** Of all sockets that have it in common, and how many have. */
  readonly #common = new Share();
  #withCommon = 0;
  /** Those that are full. */
  readonly #full = new Set<SocketQueue>();
  /** Datagrams with all sockets, also those that were removed, and those of them that are packets of the engine. */
  #queued = 0;
  #lent = 0;
  #serviceDue = false;
  /** Services that may still come at once, 0 after one for several datagrams; and how many follow the next batch of a single datagram. */
  #atOnce = LOOK_EVERY;
  #nextAtOnce = LOOK_EVERY;
  /** Datagrams since the last service. */
  #arrived = 0;
  /** Packets sent without having given the sockets a turn on purpose. */
  #sentInTurn = 0;
  /** A service has told events and waits for what their promises do. */
  #told = false;
  /** Events are being drained: the service that follows sees to what that wakes. */
  #draining = false;
  /** The engine was told so of a socket since packets were asked for. */
  #hadNoRoom = false;
  /** Packets may be waiting that were not asked for: ask again when the sockets have caught up. */
  #askAgain = false;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: Cancel | undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #closing: Promise<void> | undefined;
  #finish: (() => void) | undefined;

  constructor(options: DriverOptions<Event>) {
    this.#environment = options.environment;
    this.#engine = options.engine;
    this.#onEvent = options.onEvent;
    this.#onUnreachable = options.onUnreachable;
  }

  /** Opens a socket of the environment and adds it; one that opens while the driver closes is closed. Errors as {@link Environment.network}. */
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
   * Adds an open socket, which delivers what arrives to {@link receive}, and closes it in the end. Its queue and what may fill it:
   * socket-queue.ts. Does nothing if the socket was already added; on a driver that closes or is closed the socket is closed at once.
   * @param inCommon it has its share of the engine's packets in common with all sockets added so: for those of which there may be many
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
    // One more with a share that others have changes none of them: of these there may be ten thousand.
    if (!inCommon || ++this.#withCommon === 1) this.#shareSlots();
  }

  /**
   * Removes a socket and closes it: the packets in its queue come back from it, those that the engine still makes for its paths are dropped and counted.
   * Does nothing for one that was not added. May be called from everything the driver calls.
   */
  remove(socket: DatagramSocket): void {
    const queue = this.#sockets.get(socket.index);
    if (queue?.socket !== socket) return;
    this.#sockets.delete(socket.index);
    this.#full.delete(queue);
    // Packets it still releases no longer count towards a full queue.
    queue.isFull = false;
    socket.close();
    if (queue.share !== this.#common || --this.#withCommon === 0) this.#shareSlots();
    this.wake();
  }

  /** In the order in which they were added. */
  get sockets(): readonly DatagramSocket[] {
    return [...this.#sockets.values()].map(({ socket }) => socket);
  }

  /** To be called after any call on the engine from outside a service: it may have packets, events or a new timeout. Cheap and coalesced. */
  wake(): void {
    if (this.#serviceDue || this.#draining || this.#state === 'closed') return;
    this.#askService();
  }

  /**
   * Shows each datagram to `interceptor` before the engine, after the interceptors that were added before. The first that takes a datagram keeps it from
   * those after it and from the engine; one that passes it on may have changed its bytes. An interceptor that throws has a bug: the datagram is dropped.
   * One that is added or removed while a datagram is shown counts from the next.
   * @returns what removes it; harmless to call twice
   */
  intercept(interceptor: Interceptor): () => void {
    const own: Interceptor = (datagram, path) => interceptor(datagram, path); // the same function may be added twice
    this.#interceptors = [...this.#interceptors, own];
    return () => {
      this.#interceptors = this.#interceptors.filter((other) => other !== own);
    };
  }

  /**
   * Sends a datagram that is not the engine's, such as one forwarded for others. It may not be changed afterwards.
   * @param hopLimit 1 to 255, of this datagram alone; default the system's
   * @returns false when it was dropped: no such socket, its queue has no room for it, or it knows no hop limits. A datagram is promised no more.
   */
  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    const queue = this.#sockets.get(path.socket);
    const sent = hopLimit === undefined ? queue?.forward(datagram, path) : queue?.forwardWithHopLimit(datagram, path, hopLimit);
    if (sent !== true) {
      this.stats.dropped++;
      return false;
    }
    // One with a hop limit is never given back.
    if (hopLimit === undefined) this.#queued++;
    this.stats.sent++;
    return true;
  }

  /** Sends what the engine still has, waits until it has left and closes the sockets. Close the engine's connections first. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#finish = resolve;
      this.#state = 'closing';
      this.wake();
    });
    return this.#closing;
  }

  /** A datagram of a socket; as {@link BindOptions.receive}. For sockets that are added. */
  readonly receive = (datagram: Uint8Array, path: Path): void => {
    if (this.#state === 'closed') return;
    this.stats.received++;
    this.#arrived++;
    const now = this.#environment.clock.now();
    try {
      if (this.#intercepted(datagram, path)) return;
      this.#engine.receive(datagram, path, now);
      if (!this.#serviceDue && this.#askService()) this.#drainEvents();
      else if (this.#arrived % TELL_EVERY === 0) this.#drainEvents();
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

  /** True when the service comes at once. */
  #askService(): boolean {
    this.#serviceDue = true;
    const { clock } = this.#environment;
    const atOnce = this.#atOnce > 0 && this.#sentInTurn < PACKETS_PER_SERVICE;
    if (atOnce) clock.soon(this.#service);
    else clock.defer(this.#serveBatch);
    return atOnce;
  }

  /** What a batch of IO brought is told first: what is done about it leaves in the service that follows. */
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
      if (this.#drainEvents() && !this.#told) {
        // What the promises of these events do is to leave now, too.
        this.#told = true;
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
    this.#told = false;
    this.#countService();
    if (this.#serviceDue) return;
    if (this.#state === 'closing' && this.#queued === 0) this.#end();
    else this.#arm(next, now);
  };

  /** After batches of several the turns are looked at often at first: 1, 2, 4 … `LOOK_EVERY` services come at once between two looks. */
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

  /** True when there were any. */
  #drainEvents(): boolean {
    this.#draining = true;
    let some = false;
    try {
      for (let event = this.#engine.nextEvent(); event !== null; event = this.#engine.nextEvent()) {
        some = true;
        this.#tell(event);
      }
    } catch (error) {
      this.#failed('event', error);
    } finally {
      this.#draining = false;
    }
    return some;
  }

  #tell(event: Event): void {
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
        const isShort = this.#engine.slots - this.#lent < LEAST_FREE;
        this.#askAgain = isShort || this.#hadNoRoom || this.#full.size > 0 || this.#state === 'closing';
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

  /** Packets that a socket takes now. For one that was removed the engine makes as many as it likes: they are dropped. */
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

  /** A share alone may have all slots of the engine (n / 0 is Infinity); of several, all but one together leave a part. */
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
    this.#finish?.();
  }

  /** Counts every one, writes the 1st, 2nd, 4th, 8th …: a bug in the path of each packet must not fill a disk. */
  #failed(where: string, error: unknown): void {
    const failures = ++this.stats.failures;
    if ((failures & (failures - 1)) !== 0) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#environment.log.error('unexpected exception, please report it', { where, failures, error: text });
  }
}
