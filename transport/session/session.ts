/**
 * One authenticated connection as an application holds it: CoAP requests both ways, byte streams, datagrams. Made by `Host`; the same class on a
 * client, a device and a base station.
 *
 * A session is open when it is handed out and ends once: because this end closed it, because the peer did, or because the peer is gone. Then
 * everything on it fails, and `closed` tells why. Whatever arrives from the network ends at most this session.
 */
import type { KeepAlive } from '../../bindings/index.ts';
import {
  type BodyRoom,
  type CoapReply,
  type CoapResponse,
  type IncomingRequest,
  type Router,
  Status,
  textReply,
} from '../../protocol/coap/index.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import type { CryptoHost } from '../../protocol/crypto-host.ts';
import { CloseCode, closeError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Clock, Log } from '../environment.ts';
import { Deferred } from './deferred.ts';
import { Emitter, guarded } from './emitter.ts';
import type { IncomingStream } from './incoming-stream.ts';
import { type Observation, type SessionRequest, SessionRequests } from './session-requests.ts';
import { type OpenStreamOptions, SessionStreams } from './session-streams.ts';
import type { SessionStream } from './stream.ts';
import { whileOpen } from './while-open.ts';

/** Events of a session with what they carry. */
export interface SessionEvents {
  /** Once; null when this end closed, else why it ended. */
  closed: SvcError | null;
  /** Exchange of a request of the peer that was answered with `observe: true` and is not observed any more. */
  cancelled: number;
}

/** What the host gives a session. */
export interface SessionOptions {
  connection: Connection;
  clock: Clock;
  crypto: CryptoHost;
  log: Log;
  localFingerprint: string;
  router: Router<Session> | null;
  maxRequests: number;
  /** For bodies that travel in blocks, shared with the host's other sessions. */
  bodyRoom: BodyRoom;
  /** MAX_READ bytes for use within one call. */
  scratch: Uint8Array;
  /** The connection may have something to send. */
  wake: () => void;
  /** The session ended: forget it. */
  onEnded: (error: SvcError | null) => void;
}

/** One authenticated connection. Made by `Host`. */
export class Session {
  /** Serves what the peer asks; context is this session. Without one every request is answered 4.04. */
  router: Router<Session> | null;
  /** Called for every stream the peer opens; while it is null they are refused. */
  onStream: ((stream: IncomingStream) => void) | null = null;
  /** Called for every datagram; while it is null they are dropped. */
  onDatagram: ((data: Uint8Array) => void) | null = null;
  /** Full hex fingerprint of our identity in this session. */
  readonly localFingerprint: string;
  /** For the host. */
  readonly connection: Connection;

  readonly #options: SessionOptions;
  readonly #events: Emitter<SessionEvents>;
  /** Made at first use: a base station has many sessions and none with streams. */
  #streams: SessionStreams | null = null;
  readonly #requests: SessionRequests;
  readonly #closed = new Deferred<SvcError | null>();
  #isOpen = true;

  constructor(options: SessionOptions) {
    const { connection, log } = options;
    this.#options = options;
    this.connection = connection;
    this.router = options.router;
    this.localFingerprint = options.localFingerprint;
    this.#events = new Emitter(log);
    this.#requests = new SessionRequests({
      ...options,
      serve: (request) => this.#serve(request),
      onCancelled: (exchange) => this.#events.emit('cancelled', exchange),
    });
  }

  /** We opened it. */
  get initiator(): boolean {
    return this.connection.initiator;
  }

  /** Full hex fingerprint of the peer's key. */
  get remoteFingerprint(): string {
    return this.connection.remoteFingerprint;
  }

  get verified(): 'pinned' | 'password' | 'none' {
    return this.connection.verified;
  }

  /** The path now in use; it may change, so do not keep it. */
  get path(): Path {
    return this.connection.path;
  }

  /** The path now in use is local (PROTOCOL.md §6). Evaluated at each read: do not keep it. */
  get isLocal(): boolean {
    const { kind, local } = this.path;
    return kind === 'udp' && local;
  }

  get type(): 'RELAY' | 'DIRECT' {
    return this.path.kind === 'route' ? 'RELAY' : 'DIRECT';
  }

  /** What the responder said of itself in message 2 (a device: ProductId, DeviceId). */
  get info(): Readonly<Record<string, unknown>> {
    return this.connection.info;
  }

  /** Noise handshake hash: the same at both ends, and in no other session. */
  get handshakeHash(): Uint8Array {
    return this.connection.handshakeHash;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves (never rejects) when the session has ended: null when this end closed it, else why. */
  get closed(): Promise<SvcError | null> {
    return this.#closed.promise;
  }

  /**
   * Sends one request; resolves with any response, 4.xx and 5.xx included.
   * @throws NOT_CONNECTED when the session is over; INVALID_ARGUMENT; TIMEOUT; STOPPED by `signal` or `close`; what the session ended with
   * (CLOSED, TIMEOUT, DEVICE_INTERNAL_ERROR, …); BAD_RESPONSE
   */
  async request(request: SessionRequest): Promise<CoapResponse> {
    this.#assertOpen();
    return this.#requests.request(request);
  }

  /**
   * Observes (RFC 7641). `onResponse` gets the first response and each notification; `onEnd` is called once when no more will come, unless cancelled:
   * null after a response that ends the observation (an error status, or a resource that cannot be observed), else why.
   */
  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: SvcError | null) => void): Observation {
    this.#assertOpen();
    return this.#requests.observe(request, onResponse, onEnd);
  }

  /**
   * Tells a peer that observes a resource of ours what it is now; also the way to answer a request a second time and later.
   * @param exchange of the request whose handler answered with `observe: true`
   * @param reply again with `observe: true`, or without to end the observation
   * @returns false when nobody observes any more
   */
  notify(exchange: number, reply: CoapReply): boolean {
    return this.#isOpen && this.#requests.respond(exchange, reply);
  }

  /**
   * Opens a byte stream; resolves when the peer accepted it. Waits while the peer grants no more streams. Only the end that opened the session can
   * (PROTOCOL.md §5).
   * @param port 0 … 2^32 - 1
   * @throws INVALID_STATE at the other end; NOT_CONNECTED when the session is over; STOPPED: refused, nobody listens, limit reached, `signal`, or
   * the session ended; INVALID_ARGUMENT
   */
  async openStream(port: number, options: OpenStreamOptions = {}): Promise<SessionStream> {
    this.#assertOpen();
    if (!this.initiator) throw new LocalError('INVALID_STATE', 'only the end that opened the session opens streams');
    return this.#makeStreams().open(port, options);
  }

  /** Sends a datagram, unreliable and unordered. @returns false when it was not taken (too long, queue full, or the session is over) */
  sendDatagram(data: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    const taken = whileOpen(() => this.connection.sendDatagram(data), false);
    this.#options.wake();
    return taken;
  }

  /**
   * Asks for our next sending key before its time (an hour of use, or 2^28 packets); it comes 3 PTO after the first acknowledgement of the current one.
   * @returns false when the peer has not acknowledged anything under the current key yet, or the session is over
   */
  updateKey(): boolean {
    return this.#isOpen && whileOpen(() => this.connection.updateKey(), false);
  }

  /** Listens. @returns what stops listening. A listener that throws is logged and disturbs nobody. */
  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    return this.#events.on(event, listener);
  }

  /** Other keep-alive numbers (an attach answer sets them); null = none. */
  setKeepAlive(keepAlive: KeepAlive | null): void {
    if (!this.#isOpen) return;
    whileOpen(() => this.connection.setKeepAlive(keepAlive, this.#options.clock.now()), undefined);
    this.#options.wake();
  }

  /** A password exchange or pairing succeeded: `verified` says so from now on. */
  setVerified(verified: 'pinned' | 'password'): void {
    this.connection.markVerified(verified);
  }

  /**
   * Closes: what is open on it fails with STOPPED, the peer is told. Resolves when that has been handed to the socket; calling again is harmless.
   * @param code CloseCode; @param reason for the peer's log, at most some hundred bytes
   */
  close(code: number = CloseCode.NO_ERROR, reason = ''): Promise<void> {
    if (this.#isOpen) {
      this.#closeConnection(code, reason);
      this.#end(null);
    }
    return new Promise((resolve) => this.#options.clock.defer(resolve));
  }

  /** Figures of the connection, and the streams and requests open now. */
  stats(): Readonly<Record<string, number>> {
    const connection = this.#isOpen ? whileOpen(() => this.connection.stats(), null) : null;
    return { ...connection, openStreams: this.#streams?.count ?? 0, openRequests: this.#requests.count };
  }

  /** For the host: the connection has events. */
  drain(): void {
    const next = (): ConnectionEvent | null => whileOpen(() => this.connection.nextEvent(), null);
    for (let event = next(); event !== null; event = next()) {
      if (this.#isOpen) this.#handle(event);
    }
    if (this.#isOpen) this.#requests.service();
  }

  /** For the host: ends for a reason of this end that is not the application's wish; the peer is told `code`. */
  end(error: SvcError, code: number): void {
    if (!this.#isOpen) return;
    this.#closeConnection(code, '');
    this.#end(error);
  }

  /** For the host: the connection is gone without a word. */
  abandon(error: SvcError): void {
    if (this.#isOpen) this.#end(error);
  }

  #handle(event: ConnectionEvent): void {
    if (event.kind === 'message') this.#requests.receive(event.data);
    else if (event.kind === 'datagram') this.#datagram(event.data);
    else if (event.kind === 'closed') this.#end(event.error ?? closeError(event.code, event.reason));
    else if (event.kind === 'failed') this.#end(event.error);
    // Every drain ends with a service of the requests, which sends what waited for room.
    else if (event.kind !== 'opened' && event.kind !== 'messages-writable') this.#makeStreams().handle(event);
  }

  /** The reply to a request of the peer, null when the session ended meanwhile. */
  async #serve(request: IncomingRequest): Promise<CoapReply | null> {
    const reply = await this.router?.handle(request, this);
    return this.#isOpen ? (reply ?? textReply(Status.NOT_FOUND, 'Not found')) : null;
  }

  #datagram(data: Uint8Array): void {
    const listener = this.onDatagram;
    if (listener !== null) guarded(this.#options.log, 'datagram listener', () => listener(data));
  }

  #closeConnection(code: number, reason: string): void {
    whileOpen(() => this.connection.close(code, reason, this.#options.clock.now()), undefined);
    this.#options.wake();
  }

  #end(error: SvcError | null): void {
    this.#isOpen = false;
    const why = error?.message ?? 'it was closed here';
    this.#requests.fail(error ?? new LocalError('STOPPED', 'the session was closed'));
    this.#streams?.fail(new RemoteError('STOPPED', `the session ended: ${why}`));
    this.#options.onEnded(error);
    this.#closed.resolve(error);
    this.#events.emit('closed', error);
  }

  #makeStreams(): SessionStreams {
    const { connection, log, wake, scratch } = this.#options;
    this.#streams ??= new SessionStreams({ connection, log, wake, scratch, listener: () => this.onStream });
    return this.#streams;
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw new LocalError('NOT_CONNECTED', 'the session is over');
  }
}
