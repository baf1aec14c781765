/**
 * One party on the network: a Core, an Endpoint, its sockets and the Driver, with a Session for every connection.
 * Device, client and base station open one each (or several in one process: they share nothing). The layers above
 * decide which peers may connect.
 *
 * 1. Datagrams go from the driver to the endpoint, unless an interceptor takes them.
 * 2. The endpoint reports connections that have events. A dialed one settles its `connect`, an accepted one becomes a
 *    session, and a session translates the events of its connection.
 * 3. Calls of an application on a session wake the driver, which sends.
 * 4. When the core fails, all sessions end with CORE_FAILED and a new core and endpoint take over on the same sockets.
 */
import type { CoreOptions } from '../../bindings/index.ts';
import type { BoundSocket, DatagramSocket, Environment } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/address.ts';
import { BodyRoom } from '../../protocol/coap/index.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import type { EndpointEvent } from '../../protocol/endpoint/index.ts';
import { asSvcError, CloseCode, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { fingerprint } from '../../protocol/identity/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Deferred } from '../deferred.ts';
import { Driver, type Interceptor } from '../driver.ts';
import { guarded } from '../emitter.ts';
import type { Attempt } from '../race.ts';
import { IdleSweeper } from '../session/idle-sweeper.ts';
import { RandomPool } from '../session/random-pool.ts';
import { Session, type SharedBySessions } from '../session/session.ts';
import { whileOpen } from '../session/while-open.ts';
import type { Bind, ConnectOptions, ConnectTarget, HostConfig, HostLimits, NetworkWatcher, PreparedConnect } from './config.ts';
import { defaultKeepAlive, defaultLimits, defaultMaxRequests } from './defaults.ts';
import type { Dial } from './dial.ts';
import { Goodbye } from './goodbye.ts';
import { handshakeOf } from './handshake.ts';
import { RestartingEngine, type Running } from './restarting-engine.ts';
import { type RouteOptions, Routes } from './routes.ts';
import { Sockets } from './sockets.ts';
import { startEndpoint } from './start-endpoint.ts';

/**
 * Bytes of all bodies that peers send in blocks: four times what one session may have, 8 of 1 MiB (`ExchangesOptions`).
 */
export const BODY_ROOM = 32 << 20;

/** One party on the network. Made by `open`. */
export class Host {
  /** Receives each session that a peer opened; see HostConfig. */
  onSession: ((session: Session) => void) | null;
  /** Follows changes of the network (`roaming/`). */
  watcher: NetworkWatcher | null = null;
  readonly environment: Environment;
  /** Full hex fingerprint of the host's identity. */
  readonly fingerprint: string;
  /** Changes take effect at once. */
  readonly limits: HostLimits;

  readonly #config: HostConfig;
  /** Kept for the next core. */
  readonly #core: CoreOptions;
  readonly #engine: RestartingEngine;
  readonly #driver: Driver<EndpointEvent>;
  readonly #dials = new Map<Connection, Dial>();
  readonly #sessions = new Set<Session>();
  readonly #routes = new Routes();
  readonly #sockets: Sockets;
  readonly #shared: SharedBySessions;
  readonly #goodbye: Goodbye;
  #closing: Promise<void> | null = null;

  /**
   * Creates the core and binds the sockets.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (a bind's host), NOT_IMPLEMENTED (no wasm SIMD)
   */
  static async open(environment: Environment, config: HostConfig): Promise<Host> {
    const limits = { ...defaultLimits, ...config.limits };
    const resetSecret = config.resetSecret ?? environment.crypto.randomBytes(32);
    const core = { ...config.core };
    const start = (): Promise<Running> => startEndpoint(environment, { ...config, core }, limits, resetSecret);
    const host = new Host(environment, { ...config, core }, limits, await start(), start);
    try {
      for (const bind of config.binds) await host.bind(bind);
    } catch (error) {
      await host.close();
      throw error;
    }
    return host;
  }

  private constructor(environment: Environment, config: HostConfig, limits: HostLimits, running: Running, start: () => Promise<Running>) {
    this.environment = environment;
    this.fingerprint = fingerprint(config.identity.publicKey, environment.crypto);
    this.limits = limits;
    this.onSession = config.onSession ?? null;
    this.#config = config;
    this.#core = config.core ?? {};
    this.#engine = new RestartingEngine(running, {
      clock: environment.clock,
      log: environment.log,
      start,
      onFailed: () => this.#coreFailed(),
      onRestarted: () => this.#driver.wake(),
      onUnrecoverable: (error) => config.onUnrecoverable?.(asSvcError(error)),
    });
    this.#shared = {
      clock: environment.clock,
      random: new RandomPool(environment.crypto),
      log: environment.log,
      maxRequests: config.maxRequests ?? defaultMaxRequests,
      bodyRoom: new BodyRoom(BODY_ROOM),
      idleSweeper: new IdleSweeper(environment.clock),
      wake: () => this.#driver.wake(),
      // The station follows packets on the channel, never a Route packet (PROTOCOL.md §6.13): also after failover to a
      // route.
      suspected: (session) => {
        for (const path of session.paths) this.#routes.find(path)?.channel.suspect();
      },
      ended: (session, error) => this.#ended(session, error),
    };
    this.#driver = new Driver({
      environment,
      engine: this.#engine,
      onEvent: (event) => this.#handle(event),
      onUnreachable: (address) => this.watcher?.unreachable(address),
    });
    this.#goodbye = new Goodbye(environment.clock, () => this.#driver.flush());
    this.#sockets = new Sockets({
      driver: this.#driver,
      clock: environment.clock,
      leave: (socket, reason) => this.#leave(socket, reason),
    });
  }

  /** The bound sockets, in the order of their binds, without WebSockets. */
  get sockets(): readonly BoundSocket[] {
    return this.#sockets.bound;
  }

  /** The open sessions, opened by either end. */
  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /**
   * Binds another socket, used like those of the configuration: peers may use it, and a connect may leave by it.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (port or host), STOPPED when the host closes
   */
  async bind(bind: Bind): Promise<BoundSocket> {
    this.#assertOpen();
    const socket = await this.#sockets.bind(bind);
    // The driver has closed a socket that opened too late.
    this.#assertOpen();
    this.#sockets.bound.push(socket);
    return socket;
  }

  /**
   * Adopts a socket that was opened elsewhere: used and closed like those of `bind`. Does nothing for one that the host
   * has. One whose peers have addresses joins `sockets`; a WebSocket has one path, its own.
   * @param ownShare its own share of packet slots. Default: all sockets adopted this way have one in common.
   * @returns the receiver of its datagrams
   * @throws LocalError STOPPED when the host is closed
   */
  adopt(socket: DatagramSocket, ownShare = false): (datagram: Uint8Array, path: Path) => void {
    this.#assertOpen();
    this.#sockets.adopt(socket, !ownShare);
    return this.receive;
  }

  /** Receives the datagrams of sockets that are opened elsewhere, to be adopted. */
  get receive(): (datagram: Uint8Array, path: Path) => void {
    return this.#driver.receive;
  }

  /** Swaps a bound socket with the first of {@link sockets}, from which connects leave. */
  promote(socket: BoundSocket): void {
    this.#sockets.promote(socket);
  }

  /** Returns whether a session has a path on the socket, or a connect is under way there. */
  uses({ index }: BoundSocket): boolean {
    const dials = [...this.#dials.values()];
    return [...this.#sessions].some(({ connection }) => connection.isOn(index)) || dials.some(({ path }) => path?.socket === index);
  }

  /**
   * Closes a socket and everything that depends on it. Resolves when it is closed. Harmless for a socket that the host
   * does not have.
   * - Connects under way on it fail with STOPPED.
   * - Sessions lose their paths on it. One with another path migrates there by failover. One without ends with STOPPED
   *   and notifies its peer; if it was a channel to a base station, sessions on its routes end with CLOSED.
   * - Answers to handshakes that came in on it are dropped.
   */
  unbind(socket: DatagramSocket): Promise<void> {
    const name = 'port' in socket ? `the socket on port ${socket.port}` : 'the WebSocket';
    return this.#sockets.unbind(socket, new LocalError('STOPPED', `${name} was closed`));
  }

  /**
   * Removes a WebSocket that has ended, without notifying peers. Sessions without another path end with `reason`, or
   * rest.
   */
  drop(socket: DatagramSocket, reason: SvcError): void {
    this.#sockets.drop(socket, reason);
  }

  /**
   * Connects; resolves when the peer is authenticated.
   * @throws TIMEOUT; STOPPED (signal, host closed); RemoteError FINGERPRINT_MISMATCH, WRONG_PRODUCT_ID,
   *   WRONG_DEVICE_ID; OUT_OF_MEMORY; INVALID_ARGUMENT. A peer without a free slot ends the new session with
   *   DEVICE_INTERNAL_ERROR.
   */
  async connect(options: ConnectOptions): Promise<Session> {
    const { signal } = options;
    if (signal?.aborted === true) throw new LocalError('STOPPED', 'the connect was stopped');
    const dial = this.dial(options);
    signal?.addEventListener('abort', dial.cancel, { once: true });
    try {
      return await dial.result;
    } finally {
      signal?.removeEventListener('abort', dial.cancel);
    }
  }

  /** `connect` for callers that race attempts; ignores `signal`. Throws for invalid arguments or a closed host. */
  dial(options: ConnectOptions): Attempt<Session> {
    this.#assertOpen();
    const path = 'path' in options ? options.path : this.#sockets.path(options.address, options.port, options.socket);
    const now = this.environment.clock.now();
    const handshake = { ...handshakeOf(options, now), ...this.#routeOptions(path), path };
    const dial = this.#begin(options, this.#engine.endpoint.connect(handshake, now), path);
    return { result: dial.result.promise, cancel: () => this.#cancel(dial) };
  }

  /** First half of a connect through the base station. @throws as connect; `signal` counts from `establish` on */
  prepare(target: ConnectTarget): PreparedConnect {
    this.#assertOpen();
    const now = this.environment.clock.now();
    const dial = this.#begin(target, this.#engine.endpoint.prepare(handshakeOf(target, now), now), null);
    return {
      initiate: dial.connection.initiate ?? new Uint8Array(0),
      establish: (respond, path) => this.#establish(dial, respond, path),
      cancel: () => this.#cancel(dial),
    };
  }

  /**
   * Accepts a relayed Initiate (device: POST /p2p/connect) and returns the Respond packet for the answer. The session
   * appears in onSession when the Complete arrives on `path`.
   * @throws RemoteError when it is refused
   */
  acceptRelayed(initiate: Uint8Array, path: Path): Uint8Array {
    this.#assertOpen();
    const respond = this.#engine.endpoint.accept(initiate, path, this.environment.clock.now(), this.#routeOptions(path));
    this.#driver.wake();
    return respond;
  }

  /**
   * Offers a route to an open session (device: POST /p2p/connect without Initiate): the session whose peer sends to our
   * connection id `id` takes it when a packet of that peer arrives there.
   * @throws RemoteError NOT_FOUND: no session has the id
   */
  offerRoute(id: Uint8Array, channel: Session, routeId: Uint8Array, options: RouteOptions): void {
    this.#assertOpen();
    const path = this.routePath(channel, routeId, options);
    const isNew = !this.#usesRoute(path);
    try {
      this.#engine.endpoint.offerRoute(id, path, this.environment.clock.now(), this.#routeOptions(path));
    } catch (error) {
      if (isNew) this.#routes.forget(path);
      throw error;
    }
    this.#driver.wake();
  }

  /**
   * Returns the path through the base station that is the peer of `channel`, for our own route id (8 bytes). Same
   * arguments, same object. Sessions on it end with CLOSED when the channel ends, or when the station sends a Reset
   * with `resetToken` (16 bytes). `onUnused` is called when the route is no longer used, unless the channel has ended.
   */
  routePath(channel: Session, routeId: Uint8Array, options: RouteOptions = {}): Path {
    const now = this.environment.clock.now();
    this.#routes.prune((path) => this.#usesRoute(path), now);
    return this.#routes.add(channel, routeId, options, now).path;
  }

  /** The address of a route's far end, an unverified claim of the station; undefined without one. */
  peerAddress(path: Path): SocketAddress | undefined {
    return this.#routes.find(path)?.peerAddress;
  }

  /** Returns the channel to the station behind a route; undefined for a path that is not a route of this host. */
  channelOf(path: Path): Session | undefined {
    return this.#routes.find(path)?.channel;
  }

  /** Counts sessions with a route over `channel`, in use or kept warm, and connects under way on one. */
  relayedOver(channel: Session): number {
    const leadsThere = (path: Path | null): boolean => path?.kind === 'route' && this.#routes.find(path)?.channel === channel;
    const sessions = [...this.#sessions].filter(({ paths }) => paths.some(leadsThere));
    return sessions.length + [...this.#dials.values()].filter(({ path }) => leadsThere(path)).length;
  }

  /** Shows each datagram to `interceptor` before the endpoint (a base station's relay), as `Driver.intercept`. */
  intercept(interceptor: Interceptor): () => void {
    return this.#driver.intercept(interceptor);
  }

  /**
   * Sends one datagram unchanged (a base station's relay). The caller must not change it afterwards.
   * @param hopLimit 1 to 255, for this datagram only; default the system's
   * @returns false when it was dropped
   */
  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    return this.#driver.send(datagram, path, hopLimit);
  }

  /** First half of `close`: ends sessions of peers and over routes. Resolves when channels may end (`goodbye.ts`). */
  leave(): Promise<void> {
    return this.#goodbye.leave(this.#sessions, this.#engine.isRunning && this.#engine.endpoint.isAwaited);
  }

  /** Leaves, closes every session, waits at most a second for that to leave, closes the sockets. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /** Limits stream buffers of all sessions, in units of 256 bytes; bytes buffered above it stay until they drain. */
  limitStreamSegments(segments: number): void {
    this.#core.streamSegments = segments;
    this.#engine.core?.limitStreamSegments(segments);
    this.#driver.wake();
  }

  /** Returns counters of endpoint and driver. */
  stats(): Readonly<Record<string, number>> {
    const endpoint = this.#engine.isRunning ? this.#engine.endpoint.stats : {};
    return { sessions: this.#sessions.size, receiveBuffer: this.#sockets.receiveBuffer, ...this.#driver.stats, ...endpoint };
  }

  async #shutDown(): Promise<void> {
    for (const dial of [...this.#dials.values()]) this.#cancel(dial);
    await this.leave();
    for (const session of [...this.#sessions]) void session.close(CloseCode.SHUTDOWN);
    if (this.#engine.isRunning) this.#engine.endpoint.close(this.environment.clock.now());
    this.#engine.close();
    await this.#goodbye.within(this.#driver.close());
    this.#sockets.close();
  }

  #handle(event: EndpointEvent): void {
    if (event.kind === 'connection') this.#accepted(event.connection);
    else if (event.kind === 'active') this.#drain(event.connection);
    else if (event.kind === 'route-unused') this.#routes.unused(event.path);
    // The engine itself detects a failed core, wherever the trap happened.
  }

  #accepted(connection: Connection): void {
    const { router, rests } = this.#config;
    const session = this.#makeSession(connection, { ...(router && { router }), ...(rests && { rests }) });
    if (this.#goodbye.isUnderWay) void session.close(CloseCode.SHUTDOWN);
    const listener = session.isOpen ? this.onSession : null;
    if (listener !== null) guarded(this.environment.log, 'session listener', () => listener(session));
    this.#drain(connection);
  }

  #drain(connection: Connection): void {
    if (connection.attachment instanceof Session) {
      connection.attachment.drain();
      return;
    }
    const dial = this.#dials.get(connection);
    const next = (): ConnectionEvent | null => whileOpen(() => connection.nextEvent(), null);
    for (let event = next(); event !== null; event = next()) {
      if (dial === undefined) continue;
      if (event.kind === 'opened') {
        this.#opened(dial);
        return;
      }
      if (event.kind === 'failed' || event.kind === 'closed') this.#fail(dial, event.error ?? new RemoteError('CLOSED', 'closed'));
    }
  }

  #opened(dial: Dial): void {
    this.#dials.delete(dial.connection);
    const session = this.#makeSession(dial.connection, dial.target);
    // The opener keeps a connection alive; the acceptor relies on its idle timeout.
    session.setKeepAlive(this.#config.keepAlive ?? defaultKeepAlive);
    dial.result.resolve(session);
    // Other arrivals wait until the caller of `connect` has added its listeners.
    this.environment.clock.defer(() => {
      session.drain();
      this.#driver.wake();
    });
  }

  #makeSession(connection: Connection, target: Pick<ConnectTarget, 'identity' | 'router' | 'rests'>): Session {
    const { identity = this.#config.identity, rests = false } = target;
    const own = identity === this.#config.identity ? this.fingerprint : fingerprint(identity.publicKey, this.environment.crypto);
    const session = new Session(connection, own, target.router ?? null, this.#shared);
    connection.attachment = session;
    if (rests) session.allowRest();
    this.#sessions.add(session);
    this.watcher?.opened(session);
    return session;
  }

  #ended(session: Session, error: SvcError | null): void {
    if (error === null) this.#goodbye.noteClosed(session);
    session.connection.attachment = null;
    this.#sessions.delete(session);
    for (const path of this.#routes.removeOf(session)) this.#endRoute(path, error?.message ?? 'it was closed');
  }

  #leave(socket: DatagramSocket, error: SvcError): void {
    for (const dial of [...this.#dials.values()])
      if (dial.path?.kind !== 'route' && dial.path?.socket === socket.index) this.#fail(dial, error);
    // Ten thousand WebSockets may end at once.
    for (const session of this.#sessions) if (session.connection.isOn(socket.index)) this.#leaveSocket(session, socket, error);
  }

  /** Removes the active path last, so that failover does not pick another path on the same socket. */
  #leaveSocket(session: Session, socket: DatagramSocket, error: SvcError): void {
    const active = session.path;
    const lost = session.connection.paths.all.filter(({ kind, socket: index }) => kind !== 'route' && index === socket.index);
    for (const path of [...lost.filter((path) => path !== active), ...lost.filter((path) => path === active)])
      if (!this.#losePath(session, path, error)) session.end(error, CloseCode.NO_ERROR);
  }

  /** @returns false when the session has no other path, and may not rest */
  #losePath(session: Session, path: Path, reason: SvcError): boolean {
    // What came before the end of the path counts first: the peer may have said why.
    session.drain();
    return !session.isOpen || whileOpen(() => session.connection.pathLost(path, this.environment.clock.now(), reason), false);
  }

  #endRoute(path: Path, reason: string): void {
    const error = new RemoteError('CLOSED', `the channel to the base station ended (${reason}), and with it the route`);
    if (this.#engine.isRunning) this.#engine.endpoint.withdrawRoute(path);
    for (const session of [...this.#sessions]) if (!this.#losePath(session, path, error)) session.end(error, CloseCode.ROUTE_CLOSED);
    for (const dial of [...this.#dials.values()]) if (dial.path === path) this.#fail(dial, error);
  }

  #coreFailed(): void {
    const error = new LocalError('CORE_FAILED', 'the data plane failed, the connection is lost');
    for (const { result } of this.#dials.values()) result.reject(error);
    this.#dials.clear();
    for (const session of [...this.#sessions]) session.abandon(error);
  }

  #begin(target: ConnectTarget, connection: Connection, path: Path | null): Dial {
    const dial: Dial = { target, connection, path, result: Deferred.quiet() };
    this.#dials.set(connection, dial);
    this.#driver.wake();
    return dial;
  }

  async #establish(dial: Dial, respond: Uint8Array, path: Path): Promise<Session> {
    const { signal } = dial.target;
    const cancel = (): void => this.#cancel(dial);
    if (signal?.aborted === true) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      if (this.#dials.has(dial.connection)) {
        dial.path = path;
        this.#engine.endpoint.respond(dial.connection, respond, path, this.environment.clock.now(), this.#routeOptions(path));
        this.#driver.wake();
      } else this.#routes.unused(path);
      return await dial.result.promise;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #cancel(dial: Dial): void {
    this.#fail(dial, new LocalError('STOPPED', 'the connect was stopped'));
  }

  #fail(dial: Dial, error: SvcError): void {
    if (!this.#dials.delete(dial.connection)) return;
    dial.result.reject(error);
    whileOpen(() => dial.connection.close(CloseCode.NO_ERROR, '', this.environment.clock.now()), undefined);
    this.#driver.wake();
  }

  #routeOptions(path: Path): { routeResetToken?: Uint8Array } {
    const routeResetToken = this.#routes.find(path)?.resetToken;
    return routeResetToken === undefined ? {} : { routeResetToken };
  }

  /** No route is used while the core restarts. */
  #usesRoute(path: Path): boolean {
    return whileOpen(() => this.#engine.endpoint.usesRoute(path), false);
  }

  #assertOpen(): void {
    if (this.#goodbye.isUnderWay) throw new LocalError('STOPPED', 'this host is closed');
  }
}
