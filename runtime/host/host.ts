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
import type { DatagramSocket, Environment } from '../../platform/environment.ts';
import { BodyRoom } from '../../protocol/coap/index.ts';
import type { Connection } from '../../protocol/connection/index.ts';
import type { EndpointEvent } from '../../protocol/endpoint/index.ts';
import { asSvcError, CloseCode, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { fingerprint } from '../../protocol/identity/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { Path } from '../../protocol/path.ts';
import { Driver } from '../driver.ts';
import { guarded } from '../emitter.ts';
import { IdleSweeper } from '../session/idle-sweeper.ts';
import { RandomPool } from '../session/random-pool.ts';
import { Session, type SharedBySessions } from '../session/session.ts';
import type { ConnectTarget, HostConfig, HostLimits, NetworkWatcher } from './config.ts';
import { defaultKeepAlive, defaultLimits, defaultMaxRequests } from './defaults.ts';
import { Dials } from './dials.ts';
import { Goodbye } from './goodbye.ts';
import { type EngineParts, RestartingEngine } from './restarting-engine.ts';
import { Routes } from './routes.ts';
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
  readonly sockets: Sockets;
  readonly dials: Dials;
  readonly routes: Routes;
  /** Datagrams beside those of sessions (a base station's relay), and the receiver for sockets opened elsewhere. */
  readonly datagrams: Pick<Driver<EndpointEvent>, 'intercept' | 'receive' | 'send'>;

  readonly #config: HostConfig;
  /** Kept for the next core. */
  readonly #core: CoreOptions;
  readonly #engine: RestartingEngine;
  readonly #driver: Driver<EndpointEvent>;
  readonly #sessions = new Set<Session>();
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
    let host: Host | null = null;
    const touched = (): void => {
      if (host !== null) host.#driver.wake();
    };
    const start = (): Promise<EngineParts> => startEndpoint(environment, { ...config, core }, limits, resetSecret, touched);
    host = new Host(environment, { ...config, core }, limits, await start(), start);
    try {
      for (const bind of config.binds) await host.sockets.bind(bind);
    } catch (error) {
      await host.close();
      throw error;
    }
    return host;
  }

  private constructor(
    environment: Environment,
    config: HostConfig,
    limits: HostLimits,
    running: EngineParts,
    start: () => Promise<EngineParts>,
  ) {
    const { clock, log } = environment;
    this.environment = environment;
    this.fingerprint = fingerprint(config.identity.publicKey, environment.crypto);
    this.limits = limits;
    this.onSession = config.onSession ?? null;
    this.#config = config;
    this.#core = config.core ?? {};
    const wake = (): void => this.#driver.wake();
    const assertOpen = (): void => this.#assertOpen();
    this.#engine = new RestartingEngine(running, {
      clock,
      log,
      start,
      onFailed: () => this.#coreFailed(),
      onRestarted: wake,
      onUnrecoverable: (error) => config.onUnrecoverable?.(asSvcError(error)),
    });
    this.#shared = {
      clock,
      random: new RandomPool(environment.crypto),
      log,
      maxRequests: config.maxRequests ?? defaultMaxRequests,
      bodyRoom: new BodyRoom(BODY_ROOM),
      idleSweeper: new IdleSweeper(clock),
      // The station follows packets on the channel, never a Route packet (PROTOCOL.md §6.13): also after failover to a
      // route.
      suspected: ({ connection }) => {
        for (const path of connection.allPaths) this.routes.channelOf(path)?.suspect();
      },
      ended: (session, error) => this.#ended(session, error),
    };
    this.#driver = new Driver({
      environment,
      engine: this.#engine,
      onEvent: (event) => this.#handle(event),
      onUnreachable: (address) => this.watcher?.unreachable(address),
    });
    this.datagrams = this.#driver;
    this.#goodbye = new Goodbye(clock, () => this.#driver.flush());
    this.sockets = new Sockets({ driver: this.#driver, clock, assertOpen, leave: (socket, reason) => this.#leave(socket, reason) });
    this.routes = new Routes({
      clock,
      wake,
      endpoint: () => orElse(() => this.#engine.endpoint, null),
      openEndpoint: () => {
        this.#assertOpen();
        return this.#engine.endpoint;
      },
    });
    this.dials = new Dials({
      clock,
      wake,
      assertOpen,
      endpoint: () => this.#engine.endpoint,
      sockets: this.sockets,
      routes: this.routes,
      opened: (connection, target) => this.#opened(connection, target),
    });
  }

  /** The open sessions, opened by either end. */
  get sessions(): ReadonlySet<Session> {
    return this.#sessions;
  }

  /** Returns whether a session has a path on the socket, or a connect is under way there. */
  uses({ index }: DatagramSocket): boolean {
    return [...this.#sessions].some(({ connection }) => connection.isOn(index)) || this.dials.paths.some(({ socket }) => socket === index);
  }

  /** Counts sessions with a route over `channel`, in use or kept warm, and connects under way on one. */
  relayedOver(channel: Session): number {
    const leadsThere = (path: Path): boolean => this.routes.channelOf(path) === channel;
    const sessions = [...this.#sessions].filter(({ connection }) => connection.allPaths.some(leadsThere));
    return sessions.length + this.dials.paths.filter(leadsThere).length;
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
    return { sessions: this.#sessions.size, receiveBuffer: this.sockets.receiveBuffer, ...this.#driver.stats, ...endpoint };
  }

  async #shutDown(): Promise<void> {
    this.dials.close();
    await this.leave();
    for (const session of [...this.#sessions]) void session.close(CloseCode.SHUTDOWN);
    if (this.#engine.isRunning) this.#engine.endpoint.close(this.environment.clock.now());
    this.#engine.close();
    await this.#goodbye.within(this.#driver.close());
    this.sockets.close();
  }

  #handle(event: EndpointEvent): void {
    if (event.kind === 'connection') this.#accepted(event.connection);
    else if (event.kind === 'active') this.#drain(event.connection);
    else if (event.kind === 'route-unused') this.routes.unused(event.path);
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
    if (connection.attachment instanceof Session) connection.attachment.drain();
    else this.dials.drain(connection);
  }

  #opened(connection: Connection, target: ConnectTarget): Session {
    const session = this.#makeSession(connection, target);
    // The opener keeps a connection alive; the acceptor relies on its idle timeout.
    session.setKeepAlive(this.#config.keepAlive ?? defaultKeepAlive);
    // Other arrivals wait until the caller of `connect` has added its listeners.
    this.environment.clock.defer(() => {
      session.drain();
      this.#driver.wake();
    });
    return session;
  }

  #makeSession(connection: Connection, target: Pick<ConnectTarget, 'identity' | 'router' | 'rests'>): Session {
    const { identity = this.#config.identity, rests = false } = target;
    const own = identity === this.#config.identity ? this.fingerprint : fingerprint(identity.publicKey, this.environment.crypto);
    const session = new Session(connection, own, target.router ?? null, this.#shared);
    connection.attachment = session;
    if (rests) session.whileOpen(() => connection.allowRest(), undefined);
    this.#sessions.add(session);
    this.watcher?.opened(session);
    return session;
  }

  #ended(session: Session, error: SvcError | null): void {
    if (error === null) this.#goodbye.noteClosed(session);
    session.connection.attachment = null;
    this.#sessions.delete(session);
    for (const path of this.routes.removeOf(session)) this.#endRoute(path, error?.message ?? 'it was closed');
  }

  #leave(socket: DatagramSocket, error: SvcError): void {
    this.dials.fail((path) => path.kind !== 'route' && path.socket === socket.index, error);
    // Ten thousand WebSockets may end at once.
    for (const session of this.#sessions) if (session.connection.isOn(socket.index)) this.#leaveSocket(session, socket, error);
  }

  /** Removes the active path last, so that failover does not pick another path on the same socket. */
  #leaveSocket(session: Session, socket: DatagramSocket, error: SvcError): void {
    const { active, all } = session.paths;
    const lost = all.filter(({ kind, socket: index }) => kind !== 'route' && index === socket.index);
    for (const path of [...lost.filter((path) => path !== active), ...lost.filter((path) => path === active)])
      if (!this.#losePath(session, path, error)) session.end(error, CloseCode.NO_ERROR);
  }

  /** @returns false when the session has no other path, and may not rest */
  #losePath(session: Session, path: Path, reason: SvcError): boolean {
    // What came before the end of the path counts first: the peer may have said why.
    session.drain();
    return session.paths.lost(path, reason);
  }

  #endRoute(path: Path, reason: string): void {
    const error = new RemoteError('CLOSED', `the channel to the base station ended (${reason}), and with it the route`);
    for (const session of [...this.#sessions]) if (!this.#losePath(session, path, error)) session.end(error, CloseCode.ROUTE_CLOSED);
    this.dials.fail((other) => other === path, error);
  }

  #coreFailed(): void {
    const error = new LocalError('CORE_FAILED', 'the data plane failed, the connection is lost');
    this.dials.abandon(error);
    for (const session of [...this.#sessions]) session.abandon(error);
  }

  #assertOpen(): void {
    if (this.#goodbye.isUnderWay) throw new LocalError('STOPPED', 'this host is closed');
  }
}
