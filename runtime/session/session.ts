/**
 * One authenticated connection as an application holds it: CoAP requests both ways, byte streams, datagrams. Created by
 * `Host`; the same class on a client, a device and a base station.
 *
 * A session is open when it is handed out and ends once: this end closed it, the peer did, or the peer is gone. Then
 * everything on it fails, and `closed` says why. Bytes from the network end at most this session.
 */
import type { CorePathStats, KeepAlive } from '../../bindings/index.ts';
import { type CoapReply, type CoapResponse, type IncomingRequest, type Router, Status, textReply } from '../../protocol/coap/index.ts';
import type { AddPathOptions, Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import type { SocketAddress, StunServer } from '../../protocol/control/index.ts';
import { CloseCode, closeError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Deferred } from '../deferred.ts';
import { Emitter, guarded } from '../emitter.ts';
import { DatagramFlows } from './datagram-flows.ts';
import type { IdleSweeper } from './idle-sweeper.ts';
import type { IncomingStream } from './incoming-stream.ts';
import { type Observation, type SessionRequest, SessionRequests, type SharedByRequests } from './requests.ts';
import { isNews, type News, type SessionEvents } from './session-events.ts';
import type { SessionStream } from './stream.ts';
import { type OpenStreamOptions, SessionStreams } from './streams.ts';
import { whileOpen } from './while-open.ts';

/** State shared by the sessions of a host. */
export interface SharedBySessions extends SharedByRequests {
  readonly idleSweeper: IdleSweeper;
  /** Nothing comes back on the path of the session. */
  readonly suspected: (session: Session) => void;
  /** A session ended: forget it. */
  readonly ended: (session: Session, error: SvcError | null) => void;
}

/** Shared: most sessions are not with a base station. */
const NO_STUN: readonly StunServer[] = [];

/** One authenticated connection. Created by `Host`. */
export class Session {
  /** Serves requests of the peer; the context is this session. Without it every request is answered 4.04. */
  router: Router<Session> | null;
  /** Called for every stream that the peer opens; while it is null they are refused. */
  onStream: ((stream: IncomingStream) => void) | null = null;
  /** Called for every datagram; while it is null they are dropped. */
  onDatagram: ((data: Uint8Array) => void) | null = null;
  /** Full hex fingerprint of our identity in this session. */
  readonly localFingerprint: string;
  /** For the host. */
  readonly connection: Connection;

  readonly #shared: SharedBySessions;
  // Created at first use and freed when idle: a host may have many idle sessions.
  #events: Emitter<SessionEvents> | null = null;
  #streams: SessionStreams | null = null;
  #requests: SessionRequests | null = null;
  #flows: DatagramFlows | null = null;
  #closed: Deferred<SvcError | null> | null = null;
  /** Number of the peer's next request while there are no requests. */
  #nextExchange = 1;
  #observedAddress: SocketAddress | null = null;
  #stunServers: readonly StunServer[] = NO_STUN;
  #isOpen = true;
  /** Why the session is not open. */
  #error: SvcError | null = null;

  /** @param localFingerprint full hex, of our identity in this session */
  constructor(connection: Connection, localFingerprint: string, router: Router<Session> | null, shared: SharedBySessions) {
    this.connection = connection;
    this.localFingerprint = localFingerprint;
    this.router = router;
    this.#shared = shared;
    // Frees the handshake's memory even when nothing follows.
    shared.idleSweeper.watch(this);
  }

  /** True when this end opened the session. */
  get initiator(): boolean {
    return this.connection.initiator;
  }

  /** Full hex fingerprint of the peer's key. */
  get remoteFingerprint(): string {
    return this.connection.peer.fingerprint;
  }

  get verified(): 'pinned' | 'password' | 'none' {
    return this.connection.peer.verified;
  }

  /** The path now in use; it may change, so do not keep it. */
  get path(): Path {
    return this.connection.path;
  }

  /** The last validated active path: a station sends the routes of this channel there (PROTOCOL.md §6.13). */
  get validatedPath(): Path {
    return this.connection.validatedPath;
  }

  /**
   * Our address as the peer, a base station, last reported it; null before that. A well-formed but unverified claim:
   * validate a path before anything depends on it. It may be out of date after a path change.
   */
  get observedAddress(): SocketAddress | null {
    return this.#observedAddress;
  }

  /**
   * The addresses at which the peer, a base station, last said that it answers STUN; empty before that. An unverified
   * claim, as {@link observedAddress}: an entry without address is at that of the channel.
   */
  get stunServers(): readonly StunServer[] {
    return this.#stunServers;
  }

  /** The active path is local, and the peer has proved to be on it (PROTOCOL.md §6.12). Evaluated at each read. */
  get isLocal(): boolean {
    const { kind, local } = this.path;
    return kind === 'udp' && local && this.connection.paths.isPeerThere;
  }

  get type(): 'RELAY' | 'DIRECT' {
    return this.path.kind === 'route' ? 'RELAY' : 'DIRECT';
  }

  /** The responder's description of itself in message 2 (of a device: ProductId, DeviceId). */
  get info(): Readonly<Record<string, unknown>> {
    return this.connection.peer.info;
  }

  /** Noise handshake hash: the same at both ends, unique to this session. */
  get handshakeHash(): Uint8Array {
    return this.connection.peer.handshakeHash;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves (never rejects) when the session has ended: null when this end closed it, else why. */
  get closed(): Promise<SvcError | null> {
    if (!this.#isOpen) return Promise.resolve(this.#error);
    this.#closed ??= new Deferred();
    return this.#closed.promise;
  }

  /**
   * Sends one request; resolves with any response, 4.xx and 5.xx included.
   * @throws NOT_CONNECTED when the session is over; INVALID_ARGUMENT; TIMEOUT; STOPPED by `signal` or `close`; the
   *   error that ended the session (CLOSED, TIMEOUT, DEVICE_INTERNAL_ERROR, …); BAD_RESPONSE
   */
  async request(request: SessionRequest): Promise<CoapResponse> {
    this.#assertOpen();
    return this.#makeRequests().request(request);
  }

  /**
   * Observes (RFC 7641). `onResponse` gets the first response and each notification. `onEnd` is called once when no
   * more will come, unless cancelled: null after a response that ends the observation (an error status, or a resource
   * that cannot be observed), else why.
   */
  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: SvcError | null) => void): Observation {
    this.#assertOpen();
    return this.#makeRequests().observe(request, onResponse, onEnd);
  }

  /**
   * Notifies a peer that observes one of our resources; also sends every further answer to a request.
   * @param exchange of the request whose handler answered with `observe: true`
   * @param reply again with `observe: true`, or without to end the observation
   * @returns false when the peer no longer observes
   */
  notify(exchange: number, reply: CoapReply): boolean {
    return this.#isOpen && this.#requests?.respond(exchange, reply) === true;
  }

  /**
   * Opens a byte stream; resolves when the peer accepted it. Waits while the peer grants no more streams. Only the end
   * that opened the session can (PROTOCOL.md §5.3).
   * @param port 0 … 2^32 - 1
   * @throws INVALID_STATE at the end that accepted the session; NOT_CONNECTED when the session is over; STOPPED:
   *   refused, no listener, limit reached, `signal`, or the session ended; INVALID_ARGUMENT
   */
  async openStream(port: number, { signal, ...options }: OpenStreamOptions = {}): Promise<SessionStream> {
    if (signal?.aborted === true) throw new LocalError('STOPPED', 'opening the stream was stopped');
    const stream = this.startStream(port, options);
    const cancel = (): void => stream.abort();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      await stream.opened;
      return stream;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * Opens a byte stream and returns it without waiting for the peer: early data leaves with the opening and saves a
   * round trip. Until the peer has accepted, at most 16 KiB leave (PROTOCOL.md §5.3); further writes wait. `opened` of
   * the stream reports acceptance; after a refusal every call fails with its error, and the peer discards early data.
   * @throws as openStream, for errors that are known at once
   */
  startStream(port: number, options: Omit<OpenStreamOptions, 'signal'> = {}): SessionStream {
    this.#assertOpen();
    if (!this.initiator) throw new LocalError('INVALID_STATE', 'only the end that opened the session opens streams');
    return this.#makeStreams().start(port, options);
  }

  /** Sends a datagram, unreliable and unordered. @returns false when not taken: too long, queue full, session over */
  sendDatagram(data: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    const taken = whileOpen(() => this.connection.messages.sendDatagram(data), false);
    this.#shared.wake();
    return taken;
  }

  /** Datagrams of byte streams (PROTOCOL.md §12). To use them, set `onDatagram` to pass arrivals on to them. */
  get flows(): DatagramFlows {
    const { connection } = this;
    this.#flows ??= new DatagramFlows({ connection, send: (data) => this.sendDatagram(data), now: () => this.#shared.clock.now() });
    if (this.#isOpen) this.#shared.idleSweeper.watch(this);
    return this.#flows;
  }

  /**
   * Requests our next sending key early (before an hour of use, or 2^28 packets); it takes effect 3 PTO after the first
   * acknowledgement of the current one.
   * @returns false when the peer has not acknowledged anything under the current key yet, or the session is over
   */
  updateKey(): boolean {
    return this.#isOpen && whileOpen(() => this.connection.updateKey(), false);
  }

  /**
   * Adds a path, which is validated (event `probed`) and kept until `removePath`; see `ConnectionPaths.add`.
   * @returns false when there is no room for it, or the session is over
   */
  addPath(path: Path, options: AddPathOptions = {}): boolean {
    return this.#onPaths(() => this.connection.paths.add(path, this.#shared.clock.now(), options));
  }

  /** Makes a path active once it is validated: event `path`. Only for the session's opener. @returns as addPath */
  migrate(path: Path): boolean {
    return this.#onPaths(() => this.connection.paths.migrate(path, this.#shared.clock.now()));
  }

  /** Supplies connection ids in advance: a new path can be used a round trip earlier. 1 KiB at each end. */
  supplyIds(): void {
    this.#onPaths(() => this.connection.paths.supplyIds());
  }

  /** Keeps an inactive path, challenged every `interval` ms; see `ConnectionPaths.keep`. @returns as addPath */
  keepPath(path: Path, interval: number): boolean {
    return this.#onPaths(() => this.connection.paths.keep(path, interval, this.#shared.clock.now()));
  }

  /** From now on the session rests, instead of ending, when it loses its last path or no longer hears the peer. */
  allowRest(): void {
    whileOpen(() => this.connection.allowRest(), undefined);
  }

  /** Why the session rests; null while it has a path. */
  get restReason(): SvcError | null {
    return this.connection.restReason;
  }

  /**
   * Resumes a resting session on this path once the peer has been heard there (event `resumed`; `probed` if it has
   * not).
   * @returns false when the session does not rest
   */
  resume(path: Path): boolean {
    return this.#onPaths(() => this.connection.paths.resume(path, this.#shared.clock.now()));
  }

  /** For the host: the channel behind its route has migrated. Event `path`. */
  noteChannelMigrated(): void {
    if (this.#isOpen && this.path.kind === 'route') this.#events?.emit('path', { path: this.path, reason: 'migrated' });
  }

  /** Called when this host's network has changed. Event `network`. */
  noteNetworkChanged(): void {
    if (this.#isOpen) this.#events?.emit('network', undefined);
  }

  /** Challenges a path: event `probed`. @returns as addPath */
  probe(path: Path): boolean {
    return this.#onPaths(() => this.connection.paths.probe(path, this.#shared.clock.now()));
  }

  /** Forgets a path. Does nothing for the active one, or one that the session does not have. */
  removePath(path: Path): void {
    if (path !== this.path && this.paths.includes(path)) this.#onPaths(() => this.connection.paths.remove(path));
  }

  /** The active path and all others that are known, in no order. */
  get paths(): readonly Path[] {
    return this.connection.paths.all;
  }

  /** Figures of one path; null for a path that it does not have, and when the session is over. */
  pathStats(path: Path): CorePathStats | null {
    return this.#isOpen ? whileOpen(() => this.connection.paths.stats(path), null) : null;
  }

  /** Smoothed round trip on the active path, ms; null before the first measurement. */
  get rtt(): number | null {
    const { rtt = 0, minimumRtt = 0 } = this.pathStats(this.path) ?? {};
    return minimumRtt > 0 ? rtt : null;
  }

  /** Adds a listener. One that throws is logged and affects no other. @returns a function that stops listening */
  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    this.#events ??= new Emitter(this.#shared.log);
    return this.#events.on(event, listener);
  }

  /** Sends a PING: the peer learns our address after a NAT has changed it. */
  ping(): void {
    if (!this.#isOpen) return;
    whileOpen(() => this.connection.ping(), undefined);
    this.#shared.wake();
  }

  /** For the host: a session routed over this one hears nothing. Pings the peer and emits `suspected`. */
  suspect(): void {
    this.ping();
    this.#events?.emit('suspected', undefined);
  }

  /** Sets other keep-alive numbers; null = none. */
  setKeepAlive(keepAlive: KeepAlive | null): void {
    if (!this.#isOpen) return;
    whileOpen(() => this.connection.setKeepAlive(keepAlive, this.#shared.clock.now()), undefined);
    this.#shared.wake();
  }

  /** Notes our address as the peer reported it. */
  noteObservedAddress(address: SocketAddress): void {
    this.#observedAddress = address;
  }

  /** Notes where the peer answers STUN. */
  noteStun(servers: readonly StunServer[]): void {
    this.#stunServers = servers;
  }

  /** Notes a successful password exchange or pairing in `verified`. */
  setVerified(verified: 'pinned' | 'password'): void {
    this.connection.peer.markVerified(verified);
  }

  /**
   * Closes: everything open on it fails with STOPPED, and the peer is notified. Resolves when the packet has been
   * passed to the socket; calling again is harmless.
   * @param code CloseCode
   * @param reason for the peer's log, at most some hundred bytes
   */
  close(code: number = CloseCode.NO_ERROR, reason = ''): Promise<void> {
    if (this.#isOpen) {
      this.#closeConnection(code, reason);
      this.#end(null);
    }
    return new Promise((resolve) => this.#shared.clock.defer(resolve));
  }

  /** Figures of the connection, and the streams and requests open now. */
  stats(): Readonly<Record<string, number>> {
    const connection = this.#isOpen ? whileOpen(() => this.connection.stats(), null) : null;
    const datagramsUnclaimed = this.#flows?.unclaimed ?? 0;
    return { ...connection, openStreams: this.#streams?.count ?? 0, openRequests: this.#requests?.count ?? 0, datagramsUnclaimed };
  }

  /** For the host: the connection has events. */
  drain(): void {
    for (let event = this.connection.nextEvent(); event !== null; event = this.connection.nextEvent()) {
      if (this.#isOpen) this.#handle(event);
    }
    if (this.#isOpen) this.#requests?.service();
  }

  /** For the host: ends the session for a reason of this end (not the application), and sends `code` to the peer. */
  end(error: SvcError, code: number, reason = ''): void {
    if (!this.#isOpen) return;
    this.#closeConnection(code, reason);
    this.#end(error);
  }

  /** For the host: the connection is gone, and no packet can be sent. */
  abandon(error: SvcError): void {
    if (this.#isOpen) this.#end(error);
  }

  #handle(event: ConnectionEvent): void {
    if (event.kind === 'message') this.#makeRequests().receive(event.data);
    else if (event.kind === 'datagram') this.#datagram(event.data);
    else if (event.kind === 'closed') this.#end(event.error ?? closeError(event.code, event.reason));
    else if (event.kind === 'failed') this.#end(event.error);
    else if (event.kind === 'path' || event.kind === 'probed') this.#pathEvent(event);
    else if (event.kind === 'cramped') this.#events?.emit('cramped', event.cramped);
    else if (isNews(event)) this.#newsEvent(event);
    // Every drain ends with a service of the requests, which sends what waited for room.
    else if (event.kind !== 'opened' && event.kind !== 'messages-writable') this.#makeStreams().handle(event);
  }

  /** For the requests: returns the reply to one of the peer's, null when the session ended meanwhile. */
  async serve(request: IncomingRequest): Promise<CoapReply | null> {
    const reply = await this.router?.handle(request, this);
    return this.#isOpen ? (reply ?? textReply(Status.NOT_FOUND, 'Not found')) : null;
  }

  /** For the requests: the peer no longer observes. */
  cancelled(exchange: number): void {
    this.#events?.emit('cancelled', exchange);
  }

  /** For the requests: the peer broke the format. Ends the session, so that callers need not wait for a timeout. */
  malformed(cause: RemoteError): void {
    const error = new RemoteError('CLOSED', `the peer sent a malformed message: ${cause.message}`, { cause });
    this.end(error, CloseCode.BAD_MESSAGE, cause.message);
  }

  /** For the host: frees what nothing under way needs. @returns false when something was needed */
  sweep(): boolean {
    if (this.#requests?.isIdle === true) {
      this.#nextExchange = this.#requests.nextExchange;
      this.#requests.stop();
      this.#requests = null;
    }
    if (this.#streams?.count === 0) this.#streams = null;
    this.connection.sweep();
    const areFlowsIdle = this.#flows?.sweep() ?? true;
    return this.#requests === null && this.#streams === null && areFlowsIdle;
  }

  #datagram(data: Uint8Array): void {
    const listener = this.onDatagram;
    if (listener !== null) guarded(this.#shared.log, 'datagram listener', () => listener(data));
  }

  /** The connection's memory for its events is freed later, as after requests. */
  #pathEvent(event: Extract<ConnectionEvent, { kind: 'path' | 'probed' }>): void {
    this.#shared.idleSweeper.watch(this);
    if (event.kind === 'path') this.#events?.emit('path', { path: event.path, reason: event.reason });
    else this.#events?.emit('probed', { path: event.path, answered: event.answered, forgotten: event.forgotten });
  }

  /** If the session rests because the station restarted, its channel is over, too, but has not noticed yet. */
  #newsEvent(event: News): void {
    if (event.kind === 'suspected' || event.kind === 'resting') this.#shared.suspected(this);
    if (event.kind === 'resting') this.#events?.emit('resting', event.reason);
    else this.#events?.emit(event.kind, undefined);
  }

  /** @param change returns false when there is no room for it */
  #onPaths(change: () => unknown): boolean {
    const done = this.#isOpen && whileOpen(change, false) !== false;
    this.#shared.wake();
    return done;
  }

  #closeConnection(code: number, reason: string): void {
    whileOpen(() => this.connection.close(code, reason, this.#shared.clock.now()), undefined);
    this.#shared.wake();
  }

  #end(error: SvcError | null): void {
    this.#flows?.end();
    this.#isOpen = false;
    this.#error = error;
    const why = error?.message ?? 'it was closed here';
    this.#requests?.fail(error ?? new LocalError('STOPPED', 'the session was closed'));
    this.#streams?.fail(new RemoteError('STOPPED', `the session ended: ${why}`));
    this.#shared.idleSweeper.forget(this);
    this.#shared.ended(this, error);
    this.#closed?.resolve(error);
    this.#events?.emit('closed', error);
  }

  #makeStreams(): SessionStreams {
    if (this.#streams === null) {
      const { log, wake } = this.#shared;
      this.#streams = new SessionStreams({ connection: this.connection, log, wake, listener: () => this.onStream });
      this.#shared.idleSweeper.watch(this);
    }
    return this.#streams;
  }

  #makeRequests(): SessionRequests {
    if (this.#requests === null) {
      this.#requests = new SessionRequests(this, this.#shared, this.#nextExchange);
      this.#shared.idleSweeper.watch(this);
    }
    return this.#requests;
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw new LocalError('NOT_CONNECTED', 'the session has ended');
  }
}
