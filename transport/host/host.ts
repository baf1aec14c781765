/**
 * One party on the network: a Core, an Endpoint, its sockets and the Driver, with a Session for every connection. Device, client and base station
 * open one each (or several in one process: they share nothing). Who may connect is decided above.
 *
 * 1. Datagrams go from the driver to the endpoint, unless an interceptor takes them.
 * 2. The endpoint names connections that have events: those being dialed resolve or fail their `connect`, accepted ones become sessions,
 *    and an established one's session translates its events.
 * 3. What an application calls on a session wakes the driver, which sends.
 * 4. When the core fails, all sessions end with CORE_FAILED and a new core and endpoint take over on the same sockets.
 */
import type { CoreOptions } from '../../bindings/index.ts';
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
import type { BoundSocket, DatagramSocket, Environment } from '../environment.ts';
import type { Attempt } from '../race.ts';
import { IdleSweeper } from '../session/idle-sweeper.ts';
import { RandomPool } from '../session/random-pool.ts';
import { Session, type SharedBySessions } from '../session/session.ts';
import { whileOpen } from '../session/while-open.ts';
import type { Bind, ConnectOptions, ConnectTarget, HostConfig, HostLimits, NetworkWatcher, PreparedConnect } from './config.ts';
import { defaultKeepAlive, defaultLimits, defaultMaxRequests } from './defaults.ts';
import type { Dial } from './dial.ts';
import { handshakeOf } from './handshake.ts';
import { RestartingEngine, type Running } from './restarting-engine.ts';
import { type RouteOptions, Routes } from './routes.ts';
import { Sockets } from './sockets.ts';
import { startEndpoint } from './start-endpoint.ts';

/** Bytes of all bodies that peers have under way in blocks: four times what one session may have, 8 of 1 MiB (`ExchangesOptions`). */
const BODY_ROOM = 32 << 20;
/** ms `close` waits for the last packets to leave. */
const CLOSE_TIMEOUT = 1000;

/** One party on the network. Made by `open`. */
export class Host {
  /** Sees each session a peer opened; see HostConfig. */
  onSession: ((session: Session) => void) | null;
  /** Follows changes of the network (`roaming/`). */
  watcher: NetworkWatcher | null = null;
  readonly environment: Environment;
  /** Full hex fingerprint of the host's identity. */
  readonly fingerprint: string;
  /** In force at once when changed. */
  readonly limits: HostLimits;

  readonly #config: HostConfig;
  /** Of the next core, too. */
  readonly #core: CoreOptions;
  readonly #engine: RestartingEngine;
  readonly #driver: Driver<EndpointEvent>;
  readonly #dials = new Map<Connection, Dial>();
  readonly #sessions = new Set<Session>();
  readonly #routes = new Routes();
  readonly #sockets: Sockets;
  readonly #shared: SharedBySessions;
  #closing: Promise<void> | null = null;

  /**
   * Makes the core, binds the sockets.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (a bind's host), NOT_IMPLEMENTED (no wasm SIMD here)
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
      // The station follows what comes over the channel, never a Route packet (PROTOCOL.md §6): also where the route is what takes over.
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
    this.#sockets = new Sockets({
      driver: this.#driver,
      clock: environment.clock,
      leave: (socket, reason) => this.#leave(socket, reason),
    });
  }

  /** The sockets bound now, in the order of their binds. WebSockets are not among them. */
  get sockets(): readonly BoundSocket[] {
    return this.#sockets.bound;
  }

  /** Sessions that are open now, whoever opened them. */
  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /**
   * Binds a further socket. It is used as those of the configuration: peers may come in on it, and a connect may leave by it.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (port or host), STOPPED when the host is closed, also meanwhile
   */
  async bind(bind: Bind): Promise<BoundSocket> {
    this.#assertOpen();
    const socket = await this.#sockets.bind(bind);
    // The driver has closed one that opened too late.
    this.#assertOpen();
    this.#sockets.bound.push(socket);
    return socket;
  }

  /**
   * Takes in a socket that was opened elsewhere; it is used as those of `bind` are, and closed as they are. Does nothing for one that the host has.
   * One whose peers have addresses is among `sockets` from now on; a WebSocket has one path, which is its own.
   * @param ownShare its packets have a share of the slots of their own. Default: one in common with all others that were taken in so:
   * however many they are, they take no more from the others than one socket.
   * @returns what takes its datagrams
   * @throws LocalError STOPPED when the host is closed
   */
  adopt(socket: DatagramSocket, ownShare = false): (datagram: Uint8Array, path: Path) => void {
    this.#assertOpen();
    this.#sockets.adopt(socket, !ownShare);
    return this.receive;
  }

  /** Takes the datagrams of sockets that are opened elsewhere, to be adopted. */
  get receive(): (datagram: Uint8Array, path: Path) => void {
    return this.#driver.receive;
  }

  /** A bound socket changes places with the first of {@link sockets}, from which connects leave. */
  promote(socket: BoundSocket): void {
    this.#sockets.promote(socket);
  }

  /** Whether a session has a path on the socket, or a connect is under way there. */
  uses({ index }: BoundSocket): boolean {
    for (const { paths } of this.#sessions) if (paths.some(({ socket }) => socket === index)) return true;
    return [...this.#dials.values()].some(({ path }) => path?.socket === index);
  }

  /**
   * Closes a socket, and what needs it:
   * - Connects under way on it fail with STOPPED.
   * - Sessions lose their paths on it. One that has another path moves there as from a path that fails. One without ends with STOPPED, its peer is told; where
   *   it was a channel to a base station, what runs on routes over it ends with CLOSED.
   * - Answers to handshakes that came in on it are dropped.
   *
   * Resolves when it is closed. Harmless for a socket that the host does not have.
   */
  unbind(socket: DatagramSocket): Promise<void> {
    const name = 'port' in socket ? `the socket on port ${socket.port}` : 'the WebSocket';
    return this.#sockets.unbind(socket, new LocalError('STOPPED', `${name} was closed`));
  }

  /** The same at once for a socket that has ended by itself, a WebSocket: nobody can be told over it. What needs it ends with `reason`, or rests. */
  drop(socket: DatagramSocket, reason: SvcError): void {
    this.#sockets.drop(socket, reason);
  }

  /**
   * Connects; resolves when the peer is authenticated.
   * @throws TIMEOUT; STOPPED (signal, host closed); RemoteError FINGERPRINT_MISMATCH, WRONG_PRODUCT_ID, WRONG_DEVICE_ID; OUT_OF_MEMORY;
   * INVALID_ARGUMENT. A peer without room ends the fresh session with DEVICE_INTERNAL_ERROR.
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

  /** `connect` for callers that try several ways at once; `signal` is not looked at. Throws what is wrong with the arguments or this host. */
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
   * A relayed Initiate arrived (device: POST /p2p/connect). Returns the Respond packet for the answer; the session appears in onSession when the
   * Complete arrives on `path`.
   * @throws RemoteError when it is refused
   */
  acceptRelayed(initiate: Uint8Array, path: Path): Uint8Array {
    this.#assertOpen();
    const respond = this.#engine.endpoint.accept(initiate, path, this.environment.clock.now(), this.#routeOptions(path));
    this.#driver.wake();
    return respond;
  }

  /**
   * A route for a session that stands (device: POST /p2p/connect without Initiate): the one whose peer sends to this connection id of ours takes it when a
   * packet of that comes in there.
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
   * The path through the base station at the other end of `channel`, for our end's route id (8 bytes). Same arguments, same object. Sessions on it
   * end with CLOSED when the channel ends, and when the station answers with a Reset that carries `resetToken` (16 bytes). `onUnused` is called when
   * nothing uses the route any more, unless the channel has ended.
   */
  routePath(channel: Session, routeId: Uint8Array, options: RouteOptions = {}): Path {
    const now = this.environment.clock.now();
    this.#routes.prune((path) => this.#usesRoute(path), now);
    return this.#routes.add(channel, routeId, options, now).path;
  }

  /**
   * What the station said of the other end of a route: where it is. A claim of the station, which nothing proves; undefined for a path that is no route of
   * this host, and where the station said nothing.
   */
  peerAddress(path: Path): SocketAddress | undefined {
    return this.#routes.find(path)?.peerAddress;
  }

  /** The channel to the station behind a route; undefined for a path that is no route of this host. */
  channelOf(path: Path): Session | undefined {
    return this.#routes.find(path)?.channel;
  }

  /** Sessions with a route through the station of `channel`, in use or kept behind a direct path, and connects under way on one. */
  relayedOver(channel: Session): number {
    const leadsThere = (path: Path | null): boolean => path?.kind === 'route' && this.#routes.find(path)?.channel === channel;
    let count = 0;
    for (const { paths } of this.#sessions) if (paths.some(leadsThere)) count++;
    for (const { path } of this.#dials.values()) if (leadsThere(path)) count++;
    return count;
  }

  /** Shows each datagram to `interceptor` before the endpoint (a base station's relay), as `Driver.intercept`. @returns what removes it */
  intercept(interceptor: Interceptor): () => void {
    return this.#driver.intercept(interceptor);
  }

  /**
   * Sends one datagram as it is (a base station's relay); it must not be changed afterwards.
   * @param hopLimit 1 to 255, of this datagram alone; default the system's
   * @returns false when it was dropped
   */
  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    return this.#driver.send(datagram, path, hopLimit);
  }

  /**
   * Closes every session (its peer is told that we shut down), waits at most `timeout` ms for that to leave, closes the sockets. Calling
   * again gives the same promise.
   */
  close(timeout: number = CLOSE_TIMEOUT): Promise<void> {
    this.#closing ??= this.#shutDown(timeout);
    return this.#closing;
  }

  /** Room for bytes of streams of all sessions from now on, in units of 256 bytes; what is buffered above it stays until it drains. */
  limitStreamSegments(segments: number): void {
    this.#core.streamSegments = segments;
    this.#engine.core?.limitStreamSegments(segments);
    this.#driver.wake();
  }

  /** Counters of endpoint and driver. */
  stats(): Readonly<Record<string, number>> {
    const endpoint = this.#engine.isRunning ? this.#engine.endpoint.stats : {};
    return { sessions: this.#sessions.size, receiveBuffer: this.#sockets.receiveBuffer, ...this.#driver.stats, ...endpoint };
  }

  async #shutDown(timeout: number): Promise<void> {
    for (const dial of [...this.#dials.values()]) this.#cancel(dial);
    for (const session of [...this.#sessions]) void session.close(CloseCode.SHUTDOWN);
    if (this.#engine.isRunning) this.#engine.endpoint.close(this.environment.clock.now());
    this.#engine.close();
    const late = new Deferred<void>();
    const cancel = this.environment.clock.schedule(timeout, () => late.resolve());
    await Promise.race([this.#driver.close(), late.promise]);
    cancel();
    this.#sockets.close();
  }

  #handle(event: EndpointEvent): void {
    if (event.kind === 'connection') this.#accepted(event.connection);
    else if (event.kind === 'active') this.#drain(event.connection);
    else if (event.kind === 'route-unused') this.#routes.unused(event.path);
    // A failed core is noticed by the engine itself, wherever the trap happened.
  }

  #accepted(connection: Connection): void {
    const { router, rests } = this.#config;
    const session = this.#makeSession(connection, { ...(router && { router }), ...(rests && { rests }) });
    const listener = this.onSession;
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
    // Who opened a connection keeps it alive: the other end's silence is for its idle timeout.
    session.setKeepAlive(this.#config.keepAlive ?? defaultKeepAlive);
    dial.result.resolve(session);
    // What else has arrived waits until who connected has put its listeners on.
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
    session.connection.attachment = null;
    this.#sessions.delete(session);
    const reason = error === null ? 'it was closed' : error.message;
    for (const path of this.#routes.removeOf(session)) this.#endRoute(path, reason);
  }

  #leave(socket: DatagramSocket, error: SvcError): void {
    for (const dial of [...this.#dials.values()])
      if (dial.path?.kind !== 'route' && dial.path?.socket === socket.index) this.#fail(dial, error);
    // Ten thousand WebSockets may end at once.
    for (const session of this.#sessions) if (session.connection.isOn(socket.index)) this.#leaveSocket(session, socket, error);
  }

  /** The active path last, so that failover does not pick another path on the same socket. */
  #leaveSocket(session: Session, socket: DatagramSocket, error: SvcError): void {
    const active = session.path;
    const lost = session.connection.paths.filter(({ kind, socket: index }) => kind !== 'route' && index === socket.index);
    for (const path of [...lost.filter((path) => path !== active), ...lost.filter((path) => path === active)])
      if (!this.#losePath(session, path, error)) session.end(error, CloseCode.NO_ERROR);
  }

  /** @returns false when the session has no other path, and may not rest */
  #losePath(session: Session, path: Path, reason: SvcError): boolean {
    return whileOpen(() => session.connection.pathLost(path, this.environment.clock.now(), reason), false);
  }

  #endRoute(path: Path, reason: string): void {
    const error = new RemoteError('CLOSED', `the channel to the base station ended (${reason}), and with it the route`);
    if (this.#engine.isRunning) this.#engine.endpoint.withdrawRoute(path);
    for (const session of [...this.#sessions]) if (!this.#losePath(session, path, error)) session.end(error, CloseCode.ROUTE_CLOSED);
    for (const dial of [...this.#dials.values()]) if (dial.path === path) this.#fail(dial, error);
  }

  #coreFailed(): void {
    const error = new LocalError('CORE_FAILED', 'the data plane failed, the connection is lost');
    for (const dial of [...this.#dials.values()]) {
      this.#dials.delete(dial.connection);
      dial.result.reject(error);
    }
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

  /** Nothing does while the core starts again. */
  #usesRoute(path: Path): boolean {
    return whileOpen(() => this.#engine.endpoint.usesRoute(path), false);
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new LocalError('STOPPED', 'this host is closed');
  }
}
