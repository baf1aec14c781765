/**
 * A connection to one device, in the specification's form: set options, connect, use CoAP requests, streams and
 * tunnels, close it.
 *
 * A connection is used once: options can be set only before `connect`, and after `close` or a loss a new connection is
 * needed. `connect` tries the channels in parallel (`connect/race.ts`); the first that authenticates wins and the
 * others are stopped.
 */
import { signal as abortSignal, check, checkOptions, oneOf, text } from '../protocol/arguments.ts';
import type { Body } from '../protocol/body.ts';
import type { PrivateKey } from '../protocol/crypto-provider.ts';
import { type ChannelErrors, type ErrorCode, LocalError, type SvcError } from '../protocol/errors/index.ts';
import { emit, endEvents, Listenable } from '../runtime/emitter.ts';
import type { DirectSearch, PathsReport } from '../runtime/rendezvous/index.ts';
import type { Session, Stream, StreamOptions } from '../runtime/session/index.ts';
import type { StationVerification } from '../runtime/station/index.ts';
import type { Subscription } from '../runtime/subscription.ts';
import { DirectCandidates } from './connect/direct.ts';
import { type ChannelContext, type ChannelFailures, connectChannels } from './connect/race.ts';
import { canAskAgain, configuredStation } from './connect/relay.ts';
import type { ConnectionEvents } from './connection-events.ts';
import type { DirectPaths } from './direct-paths.ts';
import { type ConnectionOptions, effectiveOptions, keepAliveWish, mergeOptions, publicOptions, serverAddress } from './options.ts';
import { PasswordAuthentication } from './password.ts';
import type { ListenTunnel } from './platform.ts';
import { type Answer, ask, type ObserveOptions, observationOf, observe, type RequestOptions, withBody } from './requests.ts';
import { RouteRecovery } from './route-recovery.ts';
import { askService, type FoundService, SERVICE_ID, type TunnelKind, tunnelKinds } from './tunnels/ask-service.ts';
import { TcpTunnel } from './tunnels/tcp.ts';
import { UdpTunnel } from './tunnels/udp.ts';

/**
 * Type of a connection. RELAY: through the base station. DIRECT: to an address of the device, on the local network or
 * elsewhere.
 */
export type ConnectionType = 'RELAY' | 'DIRECT';

/** The parts of the client that its connections share. */
export interface ConnectionContext extends Omit<ChannelContext, 'candidates' | 'identity' | 'onChannels' | 'onWaiting'> {
  readonly listenTunnel: ListenTunnel | undefined;
  readonly hasUdpPorts: boolean;
  /** Imports a private key from PEM. @throws LocalError INVALID_ARGUMENT */
  importKey(pem: string): PrivateKey;
  fingerprintOf(key: PrivateKey): string;
  /** The connection takes a slot until `onClosed`. @throws LocalError OUT_OF_MEMORY when all are taken */
  onConnecting(connection: Connection): void;
  /** Finds direct paths, once a session is open. */
  directPaths(): Pick<DirectPaths, 'search' | 'report' | 'channelOf' | 'keepAlive' | 'keepAliveInterval' | 'warmInterval'>;
  onClosed(connection: Connection): void;
}

const CRAMPED = 'bytes of streams that the application has not read fill their memory: new streams are slow until some are read or aborted';

const NO_FAILURES: ChannelFailures = {};

/** A connection to one device, used once. Created by `SvcClient.createConnection`. */
export class Connection extends Listenable<ConnectionEvents> {
  readonly #context: ConnectionContext;
  readonly #live = () => this.#connected();
  #options: ConnectionOptions = {};
  #identity: PrivateKey | null = null;
  #candidates: DirectCandidates | null = null;
  #state: 'new' | 'connecting' | 'connected' | 'lost' | 'closed' = 'new';
  #session: Session | null = null;
  /** Null while no search for a direct path runs. */
  #search: DirectSearch | null = null;
  #passwords: PasswordAuthentication | null = null;
  #connecting: AbortController | null = null;
  #closeReason: SvcError | null = null;
  #stationVerified: StationVerification | null = null;
  #channels: ChannelErrors = { local: 'NONE', remote: 'NONE', direct: 'NONE' };
  #failures: ChannelFailures = NO_FAILURES;

  /** For `SvcClient.createConnection`. */
  constructor(context: ConnectionContext) {
    super(context.environment.log);
    this.#context = context;
  }

  /**
   * Merges options over earlier ones.
   * @param options an object, or JSON text of one
   * @throws LocalError INVALID_ARGUMENT for an unknown key, a wrong type or bad JSON; INVALID_STATE once connect has
   *   begun
   */
  updateOptions(options: ConnectionOptions | string): void {
    this.#requireNew('the options can be changed only before connect');
    const merged = mergeOptions(this.#options, options);
    const pem = merged.PrivateKey;
    if (pem !== undefined && pem !== this.#options.PrivateKey) this.#identity = this.#context.importKey(pem);
    this.#options = merged;
  }

  /** Returns the options with their defaults, without the private key. */
  getOptions(): ConnectionOptions {
    return publicOptions(this.#options);
  }

  /**
   * Connects; resolves when the device is authenticated.
   * @throws INVALID_ARGUMENT; INVALID_STATE (an option is missing or has no effect, or connected before); NO_CHANNELS
   *   (see NoChannelsError); FINGERPRINT_MISMATCH; TIMEOUT; DEVICE_INTERNAL_ERROR (the device is at its limit of
   *   connections); STOPPED (closed meanwhile, or `signal` fired)
   */
  async connect(options: { signal?: AbortSignal } = {}): Promise<void> {
    checkOptions('a connect', options, { signal: abortSignal });
    const { signal } = options;
    this.#requireNew('the connection was used before: create a new one');
    if (this.#identity === null) throw new LocalError('INVALID_STATE', 'the connection option PrivateKey is missing');
    this.#context.onConnecting(this);
    const connecting = new AbortController();
    const context: ChannelContext = {
      ...this.#context,
      identity: this.#identity,
      candidates: this.#candidates,
      onChannels: (results, failures) => {
        this.#channels = results;
        this.#failures = failures;
      },
      onWaiting: () => this.#state === 'connecting' && emit(this, 'waiting', {}),
    };
    this.#state = 'connecting';
    this.#connecting = connecting;
    try {
      const stop = signal === undefined ? connecting.signal : AbortSignal.any([connecting.signal, signal]);
      this.#opened(await connectChannels(context, effectiveOptions(this.#options), stop));
    } catch (error) {
      if (this.#state === 'connecting') this.#state = 'lost';
      this.#context.environment.log.debug('connect failed', { error: String(error) });
      this.#end();
      throw error;
    } finally {
      this.#connecting = null;
    }
  }

  /** Closes the connection; everything open on it ends. Stops a running connect. Safe to call again. */
  async close(): Promise<void> {
    const session = this.#session;
    const wasConnected = this.#state === 'connected';
    this.#state = 'closed';
    this.#connecting?.abort();
    await session?.close();
    if (wasConnected) emit(this, 'close', {});
    this.#end();
  }

  /**
   * Result of the channel over the local network in `connect`: OK when it led to the device; its error when it failed,
   * NOT_FOUND when the device did not answer there; NONE when it was not tried (off, or not possible);
   * OPERATION_IN_PROGRESS while it is tried, and when another channel, or the end of the connect, was faster.
   */
  getLocalChannelErrorCode(): ErrorCode {
    return this.#channels.local;
  }

  /** Result of the channel through the base station, as getLocalChannelErrorCode. */
  getRemoteChannelErrorCode(): ErrorCode {
    return this.#channels.remote;
  }

  /** Result of the direct candidates, as getLocalChannelErrorCode. */
  getDirectCandidatesChannelErrorCode(): ErrorCode {
    return this.#channels.direct;
  }

  /** The errors of the channels that failed in `connect`, however it ended; empty once connected. */
  get channelFailures(): ChannelFailures {
    return this.#failures;
  }

  /** @throws LocalError NOT_CONNECTED before connect or after a loss, STOPPED after close */
  getType(): ConnectionType {
    return this.#connected().paths.type;
  }

  /**
   * Reports the current paths: the one in use, those tried, and why the connection is not direct.
   * @throws LocalError as getType
   */
  paths(): PathsReport {
    const session = this.#connected();
    return this.#search?.report() ?? this.#context.directPaths().report(session);
  }

  /** Full hex fingerprint of the device's key. @throws LocalError as getType */
  getDeviceFingerprint(): string {
    return this.#connected().peer.fingerprint;
  }

  /** Full hex fingerprint of our own key. @throws LocalError INVALID_STATE without a private key */
  getClientFingerprint(): string {
    if (this.#identity === null) throw new LocalError('INVALID_STATE', 'the connection option PrivateKey is missing');
    return this.#context.fingerprintOf(this.#identity);
  }

  /**
   * How the device was verified: `pinned` by its fingerprint, by `password`, or `none`.
   * @throws LocalError as getType
   */
  get verified(): 'pinned' | 'password' | 'none' {
    return this.#connected().peer.verified;
  }

  /**
   * How the base station was verified when the connection was made through it: by its pin, or by TLS. Null before that,
   * and for a connection made directly. It implies nothing about the device: see {@link verified}.
   */
  get stationVerified(): 'pinned' | 'tls' | null {
    return this.#stationVerified;
  }

  /** Information sent by the device: product and device id. @throws LocalError as getType */
  get deviceInfo(): Readonly<Record<string, unknown>> {
    return this.#connected().peer.info;
  }

  /** Whether the connection is open. */
  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  /** The reason why the connection ended; null while it is open, or if this end closed it. */
  get closeReason(): SvcError | null {
    return this.#closeReason;
  }

  /** The reason why no path works now; null while one does, and when not connected. */
  get restReason(): SvcError | null {
    return this.#state === 'connected' ? (this.#session?.restReason ?? null) : null;
  }

  /** Statistics of the connection: round-trip time, bytes, packets. @throws LocalError as getType */
  stats(): Readonly<Record<string, number>> {
    return this.#connected().stats();
  }

  /**
   * Turns the direct channel on. Candidates may follow before and after connect.
   * @throws LocalError INVALID_STATE once connect has begun
   */
  enableDirectCandidates(): void {
    this.#requireNew('direct candidates can be enabled only before connect');
    this.#candidates ??= new DirectCandidates();
  }

  /**
   * Adds an address where the device may be: `host` a name or numeric address, `port` 1 to 65535.
   * @throws LocalError INVALID_ARGUMENT; INVALID_STATE when direct candidates are not enabled or have ended
   */
  addDirectCandidate(host: string, port: number): void {
    this.#requireCandidates().add(host, port);
  }

  /**
   * Ends the list of candidates: from now on the direct channel can fail.
   * @throws LocalError INVALID_STATE when they are not enabled
   */
  endOfDirectCandidates(): void {
    this.#requireCandidates().end();
  }

  /**
   * Sends a CoAP request; resolves with any answer, 4.xx and 5.xx included.
   * @param method GET, POST, PUT or DELETE
   * @param path starts with `/`
   * @throws INVALID_ARGUMENT, and nothing is sent; NOT_CONNECTED; TIMEOUT; STOPPED when `signal` fires, or the
   *   connection was closed or lost; BAD_RESPONSE when the answer is malformed
   */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    return ask(this.#live, method, path, options);
  }

  /** Sends a GET, as `request`. */
  get(path: string, options?: RequestOptions): Promise<Answer> {
    return this.request('GET', path, options);
  }

  /** Sends a PUT, as `request`. */
  put(path: string, body?: Body, options?: Omit<RequestOptions, 'body'>): Promise<Answer> {
    return this.request('PUT', path, withBody(body, options));
  }

  /** Sends a POST, as `request`. */
  post(path: string, body?: Body, options?: Omit<RequestOptions, 'body'>): Promise<Answer> {
    return this.request('POST', path, withBody(body, options));
  }

  /** Sends a DELETE, as `request`. */
  delete(path: string, options?: RequestOptions): Promise<Answer> {
    return this.request('DELETE', path, options);
  }

  /**
   * Observes a resource (RFC 7641): `for await (const answer of connection.observe('/temperature'))`. A reader gets the
   * newest state, and misses those between if it is slow. It ends with `signal`, when the loop is left, and when the
   * device ends it: with its last answer. The loop throws STOPPED when the connection was closed or lost, TIMEOUT
   * without a first answer, and BAD_RESPONSE.
   * @throws LocalError INVALID_ARGUMENT; NOT_CONNECTED; STOPPED when the connection is closed
   */
  observe(path: string, options: ObserveOptions = {}): Subscription<Answer> {
    const request = observationOf(path, options);
    return observe(this.#connected(), request);
  }

  /**
   * Logs in: proves to the device that this end knows the user's password, and makes the device prove the same. Fails
   * when an attacker is in the middle. Afterwards {@link verified} is `password`.
   * @param username at most 255 bytes; empty for the password of open pairing
   * @param password 1 to 1,024 bytes. In both, composed and decomposed letters are the same, and so are all spaces (RFC
   *   8265 §4.2)
   * @throws UNAUTHORIZED (wrong user name or password, not distinguished); NOT_FOUND (the device has no password
   *   authentication); TOO_MANY_REQUESTS; OPERATION_IN_PROGRESS; INVALID_ARGUMENT; NOT_CONNECTED; STOPPED (closed or
   *   lost meanwhile); TIMEOUT; BAD_RESPONSE
   */
  async passwordAuthenticate(username: string, password: string): Promise<void> {
    check('the user name', username, text);
    check('the password', password, text);
    const session = this.#connected();
    this.#passwords ??= new PasswordAuthentication(session, this.#context.environment.crypto);
    await this.#passwords.run(username, password);
    this.#search?.trustChanged();
  }

  /**
   * Opens a stream to a port of the device, which can be used at once: the first bytes travel with the opening and save
   * a round trip. `opened` of the stream says whether the device has accepted it; if it refuses, every call fails.
   * @param port 0 to 2^32 − 1, the port of a stream listener of the device
   * @throws LocalError INVALID_ARGUMENT; NOT_CONNECTED; STOPPED when the signal has fired, or the connection is closed
   */
  openStream(port: number, options: StreamOptions = {}): Stream {
    return this.#connected().streams.open(port, options);
  }

  createTcpTunnel(): TcpTunnel {
    return new TcpTunnel(this.#live, this.#context.listenTunnel);
  }

  createUdpTunnel(): UdpTunnel {
    return new UdpTunnel(this.#live, this.#context.hasUdpPorts ? this.#context.environment : undefined);
  }

  /**
   * Requests the use of a service: for objects that outlive a connection, such as `PortForwarding`.
   * @throws as TcpTunnel.open
   */
  async findService(kind: TunnelKind, id: string): Promise<FoundService> {
    check('the kind of tunnel', kind, oneOf(tunnelKinds));
    check('the service id', id, SERVICE_ID);
    return askService(this.#connected(), kind, id);
  }

  #opened(session: Session): void {
    this.#session = session;
    // No longer needed, and errors are large.
    this.#failures = NO_FAILURES;
    if (this.#state !== 'connecting') {
      session.close();
      throw new LocalError('STOPPED', 'the connection was closed while it connected');
    }
    this.#state = 'connected';
    if (session.paths.type === 'RELAY') this.#stationVerified = this.#options.ServerFingerprint === undefined ? 'tls' : 'pinned';
    session.closed.then((reason) => {
      this.#search?.stop();
      this.#lost(reason);
    });
    this.#context.directPaths().keepAlive(session, keepAliveWish(effectiveOptions(this.#options)));
    this.#lookForDirect(session);
    session.on('path', ({ path }) => {
      if (this.#search === null) this.#lookForDirect(session);
      else this.#search.migrated(path);
      if (this.#state === 'connected') emit(this, 'path', this.#pathInUse(session));
    });
    this.#announceRests(session);
    session.on('cramped', (cramped) => {
      if (cramped) this.#context.environment.log.warn(CRAMPED);
      emit(this, cramped ? 'cramped' : 'relieved', {});
    });
    if (canAskAgain(effectiveOptions(this.#options), this.#context.environment)) this.#keepRoute(session);
    this.#context.environment.log.debug('connected', { type: session.paths.type });
    emit(this, 'open', {});
  }

  #keepRoute(session: Session): void {
    const { environment, directPaths, connector, host } = this.#context;
    const options = effectiveOptions(this.#options);
    const station = configuredStation(options, environment);
    new RouteRecovery({ session, options, environment, directPaths: directPaths(), host, connector: () => connector(station) });
  }

  /** Starts the search for a direct path, once the connection is relayed. */
  #lookForDirect(session: Session): void {
    const { Rendezvous, HardNat, ServerUrl } = effectiveOptions(this.#options);
    if (!Rendezvous || session.paths.type !== 'RELAY') return;
    const stationName = ServerUrl === undefined ? null : serverAddress(ServerUrl).host;
    this.#search = this.#context.directPaths().search(session, { hardNat: HardNat, stationName });
  }

  /** Emits `rest` and `resume` once per rest: each further route that fails makes the session rest again. */
  #announceRests(session: Session): void {
    let rests = false;
    const becomes = (now: boolean, announce: () => void): void => {
      if (this.#state !== 'connected' || rests === now) return;
      rests = now;
      announce();
    };
    session.on('resting', (reason) => becomes(true, () => emit(this, 'rest', { reason })));
    session.on('resumed', () => becomes(false, () => emit(this, 'resume', {})));
  }

  #pathInUse(session: Session): ConnectionEvents['path'] {
    const why = this.paths().whyNotDirect;
    return { kind: session.paths.type === 'RELAY' ? 'relay' : 'direct', ...(why !== null && { why }) };
  }

  #lost(reason: SvcError | null): void {
    if (this.#state !== 'connected') return;
    this.#closeReason = reason;
    this.#state = 'lost';
    this.#context.environment.log.debug('connection lost', { error: reason === null ? undefined : String(reason) });
    emit(this, 'close', reason === null ? {} : { reason });
    this.#end();
  }

  #end(): void {
    endEvents(this);
    this.#context.onClosed(this);
  }

  #connected(): Session {
    if (this.#state === 'closed') throw new LocalError('STOPPED', 'the connection is closed');
    if (this.#state === 'connected' && this.#session !== null) return this.#session;
    const reason = this.#closeReason === null ? 'the connection is not connected' : `the connection ended: ${this.#closeReason.message}`;
    throw new LocalError('NOT_CONNECTED', reason);
  }

  #requireNew(message: string): void {
    if (this.#state !== 'new') throw new LocalError(this.#state === 'closed' ? 'STOPPED' : 'INVALID_STATE', message);
  }

  #requireCandidates(): DirectCandidates {
    if (this.#candidates === null) throw new LocalError('INVALID_STATE', 'direct candidates are not enabled on this connection');
    return this.#candidates;
  }
}
