/**
 * One authenticated connection as an application holds it: CoAP requests both ways, byte streams, datagrams. Created by
 * `Host`; the same class on a client, a device and a base station.
 *
 * A session is open when it is handed out and ends once: this end closed it, the peer did, or the peer is gone. Then
 * everything on it fails, and `closed` says why. Bytes from the network end at most this session.
 */
import type { KeepAlive } from '../../bindings/index.ts';
import type { Clock, Log } from '../../platform/environment.ts';
import { type CoapReply, type CoapResponse, type IncomingRequest, type Router, Status, textReply } from '../../protocol/coap/index.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import type { SocketAddress, StunServer } from '../../protocol/control/index.ts';
import { CloseCode, closeError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { Deferred } from '../deferred.ts';
import { Emitter, guarded } from '../emitter.ts';
import { SessionDatagrams } from './datagrams.ts';
import type { IdleSweeper } from './idle-sweeper.ts';
import type { IncomingStream } from './incoming-stream.ts';
import { unlessOver } from './owner.ts';
import { SessionPaths } from './paths.ts';
import { type Observation, type RequestsOwner, type SessionRequest, SessionRequests, type SharedByRequests } from './requests.ts';
import { isNews, type News, type SessionEvents } from './session-events.ts';
import { SessionStreams, type StreamsOwner } from './streams.ts';

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

/**
 * One authenticated connection. Created by `Host`.
 *
 * Its parts `paths`, `streams` and `datagrams` are created at first use and freed when idle, as a host may have many
 * idle sessions: read them at each use, do not keep them.
 */
export class Session implements RequestsOwner, StreamsOwner {
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
  #events: Emitter<SessionEvents> | null = null;
  #paths: SessionPaths | null = null;
  #streams: SessionStreams | null = null;
  #requests: SessionRequests | null = null;
  #datagrams: SessionDatagrams | null = null;
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

  /** What the handshake has shown of the peer: its key, how that is verified, its description of itself. */
  get peer(): Connection['peer'] {
    return this.connection.peer;
  }

  /** The paths to the peer: which there are, and how to add, try and remove one. */
  get paths(): SessionPaths {
    this.#paths ??= this.#swept(new SessionPaths(this));
    return this.#paths;
  }

  /** Byte streams. The session's listener for those of the peer is {@link onStream}. */
  get streams(): SessionStreams {
    this.#streams ??= this.#swept(new SessionStreams(this));
    return this.#streams;
  }

  /**
   * Datagrams, and those of byte streams (PROTOCOL.md §12). For the latter, set `onDatagram` to pass arrivals on to
   * `datagrams.receive`.
   */
  get datagrams(): SessionDatagrams {
    this.#datagrams ??= new SessionDatagrams(this);
    return this.#swept(this.#datagrams);
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
    this.assertOpen();
    return this.#makeRequests().request(request);
  }

  /**
   * Observes (RFC 7641). `onResponse` gets the first response and each notification. `onEnd` is called once when no
   * more will come, unless cancelled: null after a response that ends the observation (an error status, or a resource
   * that cannot be observed), else why.
   */
  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: SvcError | null) => void): Observation {
    this.assertOpen();
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

  /** Why the session rests; null while it has a path. */
  get restReason(): SvcError | null {
    return this.connection.restReason;
  }

  /** For the host: the channel behind its route has migrated. Event `path`. */
  noteChannelMigrated(): void {
    const { path } = this.connection;
    if (this.#isOpen && path.kind === 'route') this.#events?.emit('path', { path, reason: 'migrated' });
  }

  /** Called when this host's network has changed. Event `network`. */
  noteNetworkChanged(): void {
    if (this.#isOpen) this.#events?.emit('network', undefined);
  }

  /** Adds a listener. One that throws is logged and affects no other. @returns a function that stops listening */
  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    this.#events ??= new Emitter(this.#shared.log);
    return this.#events.on(event, listener);
  }

  /** Sends a PING: the peer learns our address after a NAT has changed it. */
  ping(): void {
    this.whileOpen(() => this.connection.ping(), undefined);
  }

  /** For the host: a session routed over this one hears nothing. Pings the peer and emits `suspected`. */
  suspect(): void {
    this.ping();
    this.#events?.emit('suspected', undefined);
  }

  /** Sets other keep-alive numbers; null = none. */
  setKeepAlive(keepAlive: KeepAlive | null): void {
    this.whileOpen(() => this.connection.setKeepAlive(keepAlive, this.clock.now()), undefined);
  }

  /** Notes our address as the peer reported it. */
  noteObservedAddress(address: SocketAddress): void {
    this.#observedAddress = address;
  }

  /** Notes where the peer answers STUN. */
  noteStun(servers: readonly StunServer[]): void {
    this.#stunServers = servers;
  }

  /**
   * Closes: everything open on it fails with STOPPED, and the peer is notified. Resolves when the packet has been
   * passed to the socket; calling again is harmless.
   * @param code CloseCode
   * @param reason for the peer's log, at most some hundred bytes
   */
  close(code: number = CloseCode.NO_ERROR, reason = ''): Promise<void> {
    if (this.#isOpen) {
      this.connection.close(code, reason, this.clock.now());
      this.#end(null);
    }
    return new Promise((resolve) => this.#shared.clock.defer(resolve));
  }

  /** Figures of the connection, and the streams and requests open now. */
  stats(): Readonly<Record<string, number>> {
    const connection = this.whileOpen(() => this.connection.stats(), null);
    const datagramsUnclaimed = this.#datagrams?.unclaimed ?? 0;
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
    this.connection.close(code, reason, this.clock.now());
    this.#end(error);
  }

  /** For the host: the connection is gone, and no packet can be sent. */
  abandon(error: SvcError): void {
    if (this.#isOpen) this.#end(error);
  }

  #handle(event: ConnectionEvent): void {
    if (event.kind === 'message') this.#makeRequests().receive(event.data);
    else if (event.kind === 'datagram') guarded(this.log, 'datagram listener', () => this.onDatagram?.(event.data));
    else if (event.kind === 'closed') this.#end(event.error ?? closeError(event.code, event.reason));
    else if (event.kind === 'failed') this.#end(event.error);
    else if (event.kind === 'path' || event.kind === 'probed') this.#pathEvent(event);
    else if (event.kind === 'cramped') this.#events?.emit('cramped', event.cramped);
    else if (isNews(event)) this.#newsEvent(event);
    // Every drain ends with a service of the requests, which sends what waited for room.
    else if (event.kind !== 'opened' && event.kind !== 'messages-writable') this.streams.handle(event);
  }

  // For its parts.

  get clock(): Clock {
    return this.#shared.clock;
  }

  get log(): Log {
    return this.#shared.log;
  }

  assertOpen(): void {
    if (!this.#isOpen) throw new LocalError('NOT_CONNECTED', 'the session has ended');
  }

  whileOpen<T>(call: () => T, instead: T): T {
    if (!this.#isOpen) return instead;
    try {
      return call();
    } catch (error) {
      return unlessOver(error, instead);
    }
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

  /** For the host: frees what nothing under way needs. @returns false when something was needed */
  sweep(): boolean {
    if (this.#requests?.isIdle === true) {
      this.#nextExchange = this.#requests.nextExchange;
      this.#requests.stop();
      this.#requests = null;
    }
    if (this.#streams?.count === 0) this.#streams = null;
    this.#paths = null;
    this.connection.sweep();
    const areDatagramsIdle = this.#datagrams?.sweep() ?? true;
    return this.#requests === null && this.#streams === null && areDatagramsIdle;
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

  #end(error: SvcError | null): void {
    this.#datagrams?.end();
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

  #makeRequests(): SessionRequests {
    this.#requests ??= this.#swept(new SessionRequests(this, this.#shared, this.#nextExchange));
    return this.#requests;
  }

  /** Frees the part when it is idle. */
  #swept<Part>(part: Part): Part {
    if (this.#isOpen) this.#shared.idleSweeper.watch(this);
    return part;
  }
}
