/**
 * An endpoint: all connections of one identity, dialed and accepted, over any number of paths. Sans-IO: datagrams and
 * time come in, packets and events go out.
 *
 *   receive ─▶ demultiplex ─┬▶ connections (Data)        ─▶ core
 *                           ├▶ dialing   (Retry, Respond, Versions)
 *                           └▶ accepting (Initiate, Complete)
 *   transmit ◀─ packets of the handshake first, then those of each connection in turn
 *
 * After receive, handleTimeout and any call on a connection: transmit until null, nextEvent until null, then
 * nextTimeout. It knows no sockets and no products: names, limits and permissions come with the configuration.
 */
import type { Connection } from '../connection/index.ts';
import { CloseCode, LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import type { Path } from '../path.ts';
import { Acceptor } from './accepting.ts';
import { BareRoutes } from './bare-routes.ts';
import { Outbox, type PacketBatch } from './batch.ts';
import { Completer } from './completing.ts';
import type { ConnectOptions, EndpointConfig, PrepareOptions, RouteOptions } from './config.ts';
import { type Context, mostStreams } from './context.ts';
import { Demultiplexer } from './demultiplex.ts';
import { Dialer } from './dialing.ts';
import type { HalfOpen } from './half-open.ts';
import { updateIds } from './id-supply.ts';
import { Ids } from './ids.ts';
import { type EndpointEvent, Registry, type RegistryHooks, type Slot } from './registry.ts';
import { Resets } from './reset.ts';
import { Routes } from './routes.ts';
import { type EndpointStats, newStats } from './stats.ts';
import { Transmitter } from './transmitter.ts';

/** Most ids allocated for accepted connections: the table has its size from the start. */
const MAX_IDS = 1 << 17;
/**
 * Ids of a connection besides its first, and of all connections: when many use them, the first to request them get
 * them.
 */
const FURTHER_IDS = 3;
const MAX_FURTHER_IDS = 1 << 13;
/** Ids kept for connections beyond the limits: dialed ones and closing ones. */
const SPARE_IDS = 64;
const SECRET_LENGTH = 32;
/** Our constant: the initial window of an accepted stream. */
const STREAM_WINDOW = 64 << 10;

/** All connections of one identity; the top of this file says when to call what. */
export class Endpoint {
  readonly #context: Context;
  readonly #demultiplexer: Demultiplexer;
  readonly #dialer: Dialer;
  readonly #acceptor: Acceptor;
  readonly #transmitter: Transmitter;
  readonly #bareRoutes: BareRoutes;
  #failed = false;

  /** @throws LocalError INVALID_ARGUMENT for a reset secret that is not 32 bytes */
  constructor(config: EndpointConfig) {
    if (config.resetSecret.length !== SECRET_LENGTH) throw new LocalError('INVALID_ARGUMENT', 'the reset secret has 32 bytes');
    this.#context = newContext(config, {
      released: (slot) => this.#released(slot),
      pathAdded: (path) => {
        this.#context.routes.add(path, path.resetToken);
        this.#bareRoutes.drop(path);
      },
    });
    this.#bareRoutes = new BareRoutes(this.#context.ids, this.#context.routes);
    this.#dialer = new Dialer(this.#context);
    this.#acceptor = new Acceptor(this.#context, (entry) => this.#noteUnused(this.#bareRoutes.dropOf(entry)));
    const completer = new Completer(this.#context, this.#acceptor.halfOpen, this.#bareRoutes);
    this.#demultiplexer = new Demultiplexer(this.#context, this.#dialer, this.#acceptor, completer, (path) => this.withdrawRoute(path));
    this.#transmitter = new Transmitter(config.core, this.#context.registry);
  }

  /** Live counters. */
  get stats(): Readonly<EndpointStats> {
    return this.#context.stats;
  }

  /** True when no connection is left, not even a closing one. */
  get idle(): boolean {
    return this.#context.registry.size === 0;
  }

  /** Whether a peer has our Respond, and its Complete may be on the way. */
  get isAwaited(): boolean {
    return this.#acceptor.halfOpen.size > 0;
  }

  /**
   * Begins a handshake. Its outcome is the event `opened` or `failed` of the connection: FINGERPRINT_MISMATCH,
   * WRONG_PRODUCT_ID, WRONG_DEVICE_ID, NOT_IMPLEMENTED (no common version), TIMEOUT.
   * @throws LocalError INVALID_ARGUMENT (pin), OUT_OF_MEMORY (no id), INVALID_STATE (endpoint closed), CORE_FAILED
   */
  connect(options: ConnectOptions, now: number): Connection {
    this.#checkOpen();
    return this.#dialer.connect(options, now);
  }

  /** Begins a handshake whose Initiate the base station carries: `connection.initiate`. Errors as {@link connect}. */
  prepare(options: PrepareOptions, now: number): Connection {
    this.#checkOpen();
    return this.#dialer.prepare(options, now);
  }

  /** Gives a prepared connection the Respond and the path to use. An invalid Respond fails it with BAD_RESPONSE. */
  respond(connection: Connection, respond: Uint8Array, path: Path, now: number, options: RouteOptions = {}): void {
    this.#guarded(() => this.#dialer.respond(connection, respond, path, now, options));
  }

  /**
   * Returns the Respond to an Initiate that the base station carried.
   * @throws RemoteError PARSE, NOT_FOUND (another name), NOT_IMPLEMENTED (version), TOO_MANY_REQUESTS, BAD_REQUEST
   */
  accept(initiate: Uint8Array, path: Path, now: number, options: RouteOptions = {}): Uint8Array {
    this.#checkOpen();
    return this.#acceptor.accept(initiate, path, now, options);
  }

  /**
   * Offers a route that had no handshake to the connection that has this id, or to the half-open handshake that will
   * have it; it takes the route when a packet of its peer arrives there (PROTOCOL.md §6). Replaces an earlier offer.
   * Event `route-unused` when the offer ends, after 30 s at the latest.
   * @throws RemoteError NOT_FOUND: nothing has the id
   */
  offerRoute(id: Uint8Array, path: Path, now: number, options: RouteOptions = {}): void {
    this.#checkOpen();
    this.#noteUnused(this.#bareRoutes.offer(id, path, options, now));
  }

  /** Withdraws the offer of a route that has ended. */
  withdrawRoute(path: Path): void {
    this.#bareRoutes.drop(path);
  }

  /**
   * Returns whether a connection or a handshake, half-open ones included, uses the route, or it is offered to a
   * connection.
   */
  usesRoute(path: Path): boolean {
    return this.#context.routes.has(path);
  }

  /**
   * Processes one datagram, whose bytes are the caller's again on return. Whatever it contains, it closes at most the
   * connection that it authentically came from, and nothing is thrown.
   */
  receive(datagram: Uint8Array, path: Path, now: number): void {
    try {
      if (this.#context.config.core.failed) this.#fail();
      else this.#demultiplexer.receive(datagram, path, now);
    } catch (error) {
      this.#handle(error);
    }
  }

  /** Packets that can be outstanding: returned by `transmit` and not released. */
  get slots(): number {
    return this.#context.config.core.packetSlots;
  }

  /**
   * Returns packets for one path, or null. The batch object is reused: read it before the next call.
   * @param room returns how many packets the socket of this index takes. At 0, connections whose active path uses it
   *   wait until there is room, even to announce their end; handshake answers and path challenges are returned
   *   nevertheless, and cost little when they are dropped. Default: any number
   */
  transmit(now: number, room?: (socket: number) => number): PacketBatch | null {
    if (this.#context.config.core.failed) this.#fail();
    try {
      return this.#context.outbox.next() ?? this.#transmitter.next(now, room);
    } catch (error) {
      this.#handle(error);
      return null;
    }
  }

  /** Returns when to call handleTimeout, Infinity for never. Valid after transmit returned null. */
  nextTimeout(): number {
    if (this.#context.config.core.failed && !this.#failed) return 0;
    return Math.min(this.#context.registry.timers.next(), this.#acceptor.halfOpen.nextTimeout(), this.#bareRoutes.nextTimeout());
  }

  handleTimeout(now: number): void {
    this.#guarded(() => {
      const { registry } = this.#context;
      for (let slot = registry.timers.due(now); slot !== undefined; slot = registry.timers.due(now)) this.#timeout(slot, now);
      this.#acceptor.halfOpen.handleTimeout(now);
      for (const path of this.#bareRoutes.handleTimeout(now)) this.#noteUnused(path);
    });
  }

  nextEvent(): EndpointEvent | null {
    return this.#context.registry.nextEvent();
  }

  /**
   * Closes all connections and accepts no further ones. Continue until `idle`, or stop at once: then the peers notice
   * by timeout.
   */
  close(now: number, code: number = CloseCode.SHUTDOWN, reason = ''): void {
    this.#demultiplexer.accepting = false;
    this.#guarded(() => {
      this.#acceptor.halfOpen.removeWhere(() => true);
      for (const slot of [...this.#context.registry.slots]) slot.connection.close(code, reason, now);
    });
  }

  #timeout(slot: Slot, now: number): void {
    const { registry } = this.#context;
    if (slot.dial !== null) this.#dialer.handleTimeout(slot, slot.dial, now);
    else {
      slot.connection.handleTimeout(now);
      registry.ready(slot);
      registry.activate(slot);
    }
  }

  #released(slot: Slot): void {
    const { ids } = this.#context;
    for (const id of slot.ids) ids.release(id);
    if (slot.route !== null) leaveRoute(this.#context, slot.route);
    this.#transmitter.forget(slot);
    this.#noteUnused(this.#bareRoutes.dropOf(slot));
  }

  #noteUnused(path: Path | null): void {
    if (path !== null) this.#context.registry.announce({ kind: 'route-unused', path });
  }

  #checkOpen(): void {
    if (this.#context.config.core.failed) throw new LocalError('CORE_FAILED', 'the core of this endpoint is dead');
    if (!this.#demultiplexer.accepting) throw new LocalError('INVALID_STATE', 'the endpoint is closed');
  }

  #guarded(work: () => void): void {
    try {
      if (this.#context.config.core.failed) this.#fail();
      else work();
    } catch (error) {
      this.#handle(error);
    }
  }

  /**
   * A dead core ends everything; an error caused by the network drops a packet; anything else is a bug and is rethrown.
   */
  #handle(error: unknown): void {
    if (this.#context.config.core.failed) this.#fail();
    else if (error instanceof RemoteError) this.#context.stats.badHandshake++;
    else throw error;
  }

  #fail(): void {
    if (this.#failed) return;
    this.#failed = true;
    const error: SvcError = new LocalError('CORE_FAILED', 'the core of this endpoint is dead, its connections are lost');
    const { registry } = this.#context;
    this.#acceptor.halfOpen.removeWhere(() => true);
    for (const slot of [...registry.slots]) registry.lose(slot, error);
    registry.announce({ kind: 'failed', error });
  }
}

/** Call when a connection no longer uses this path. */
function leaveRoute({ registry, routes }: Context, path: Path): void {
  if (routes.remove(path)) registry.announce({ kind: 'route-unused', path });
}

function newContext(config: EndpointConfig, hooks: Pick<RegistryHooks, 'released' | 'pathAdded'>): Context {
  const stats = newStats();
  const { core, crypto, limits, resetSecret, capacity = limits.connections } = config;
  const ids = Math.min(Math.max(limits.connections, capacity), MAX_IDS) + limits.halfOpen + SPARE_IDS;
  const further = Math.min(FURTHER_IDS * Math.max(limits.connections, capacity), MAX_FURTHER_IDS);
  const registry = new Registry(stats, {
    ...hooks,
    touched: config.touched ?? (() => {}),
    idsChanged: (slot, inForce, core) => updateIds(context, slot, inForce, core),
    pathRemoved: (path) => leaveRoute(context, path),
  });
  const context: Context = {
    config,
    stats,
    ids: new Ids<Slot | HalfOpen>(crypto, resetSecret, ids, further),
    registry,
    routes: new Routes(),
    resets: new Resets(crypto, resetSecret),
    outbox: new Outbox(),
    streams: {
      open: 0,
      max: () => Math.min(limits.streams ?? Number.POSITIVE_INFINITY, mostStreams(core)),
      window: config.streamWindow ?? STREAM_WINDOW,
    },
  };
  return context;
}
