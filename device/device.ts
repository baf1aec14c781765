/**
 * A device: reachable by clients through its base station and straight on the network, with CoAP resources, byte streams and TCP tunnels.
 *
 * Life: create it, say who it is (ids, private key, base station), add resources and listeners, `start`, in the end `close`. It opens two
 * UDP sockets: one towards the base station and for relayed connections (p2p port), one for the local network (local port); only
 * connections on the second can count as local. Everything a client may do is decided by the application's authorization listener.
 *
 * The parts lie beside this file: settings, attacher, connections, CoAP resources, stream listeners, tunnels, tokens, authorization.
 */
import type { CoreOptions } from '../bindings/index.ts';
import type { CoapResponse } from '../protocol/coap/index.ts';
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { decodePrivateKey, encodePrivateKey, fingerprint } from '../protocol/identity/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import type { Environment } from '../transport/environment.ts';
import { nodeEnvironment } from '../transport/node/index.ts';
import { defaultLimits, defaultParameters } from '../transport/session/host-defaults.ts';
import { Host, type Session, type SessionRequest } from '../transport/session/index.ts';
import { Attacher } from './attacher.ts';
import { Authorization, type AuthorizationListener } from './authorization.ts';
import { type CoapHandler, CoapResources } from './coap-resources.ts';
import { type ConnectionEvent, type ConnectionListener, type ConnectionRef, Connections, type DeviceConnection } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { Announcer } from './mdns.ts';
import type { PasswordAuthenticationListener } from './password/requests.ts';
import { type PasswordIdentity, PasswordService } from './password/service.ts';
import type { PasswordSource } from './password/source.ts';
import { PushNotification } from './push.ts';
import { ServiceInvocation } from './service-invocation.ts';
import * as settings from './settings.ts';
import { type StreamHandler, type StreamListener, StreamListeners } from './streams.ts';
import { connectTcp } from './tcp.ts';
import { createToken, ServerConnectTokens } from './tokens.ts';
import { type TcpTunnelService, TcpTunnels } from './tunnels.ts';

/** Everything here can also be given later, by the setter of the same name. */
export interface DeviceOptions {
  /** Where the device runs; default Node. */
  environment?: Environment;
  productId?: string;
  deviceId?: string;
  privateKey?: string;
  serverUrl?: string;
  serverPort?: number;
  serverFingerprint?: string;
  appName?: string;
  appVersion?: string;
  localPort?: number;
  p2pPort?: number;
  /** False: only reachable straight on the network. */
  basestationAttach?: boolean;
}

/** Told with an event: what went wrong, if anything did. */
export type DeviceEventListener = (event: DeviceEvent, reason: SvcError | null) => void;

/** Order of the sockets of a device's host. */
const P2P_SOCKET = 0;
const LOCAL_SOCKET = 1;

/** Streams, above the application's limit, that a client may begin before it is refused (PROTOCOL.md §5). */
const STREAM_CREDIT = 64;

/** Client connections that a device has places for at least: a running one may raise its limit to that. They cost nothing until they are used. */
const PLACES = 1024;

/** Slots of the core above the limit of client connections: the base station's channel, and clients that are being told "busy". */
const SPARE_SLOTS = 8;

/** A device: set it up, `start` it, `close` it. Used once. */
export class Device {
  readonly #environment: Environment;
  readonly #settings = new settings.Settings();
  readonly #tokens = new ServerConnectTokens();
  readonly #deviceEvents: Listeners<[DeviceEvent, SvcError | null]>;
  readonly #connectionEvents: Listeners<[DeviceConnection, ConnectionEvent]>;
  readonly #authorization: Authorization;
  readonly #connections: Connections;
  readonly #resources: CoapResources;
  readonly #streams: StreamListeners;
  readonly #tunnels: TcpTunnels;
  readonly #announcer: Announcer;
  readonly #passwords: PasswordService;
  readonly #limits: { connections?: number; streams?: number } = {};
  #streamSegments: number | null = null;
  /** Once started: how far the limit of connections may be raised. */
  #places = Number.POSITIVE_INFINITY;
  #state: 'new' | 'starting' | 'running' | 'closed' = 'new';
  #host: Host | null = null;
  #attacher: Attacher | null = null;

  /** @throws LocalError as the setters */
  constructor(options: DeviceOptions = {}) {
    this.#environment = options.environment ?? nodeEnvironment();
    const { log } = this.#environment;
    this.#deviceEvents = new Listeners(log);
    this.#connectionEvents = new Listeners(log);
    this.#authorization = new Authorization(log);
    this.#announcer = new Announcer(this.#environment);
    this.#connections = new Connections(this.#connectionEvents);
    this.#resources = new CoapResources(this.#connections, log);
    this.#streams = new StreamListeners(log);
    this.#tunnels = new TcpTunnels(this.#authorization, this.#streams, this.#resources, connectTcp, (host) =>
      this.#environment.network.resolve(host),
    );
    this.#passwords = new PasswordService(this.#environment, () => this.#passwordIdentity(), this.#resources);
    this.#apply(options);
  }

  /** Version of this SDK. */
  static version(): string {
    return VERSION;
  }

  // Who the device is. All of these only before start: LocalError INVALID_STATE.

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setProductId(id: string): void {
    this.#new().productId = settings.checkId('product id', id);
  }

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setDeviceId(id: string): void {
    this.#new().deviceId = settings.checkId('device id', id);
  }

  /** PKCS#8 PEM, as `createPrivateKey` makes it. @throws LocalError INVALID_ARGUMENT */
  setPrivateKey(pem: string): void {
    const raw = decodePrivateKey(pem);
    this.#new().identity = this.#environment.crypto.importKey(raw);
    raw.fill(0);
  }

  /** A fresh private key as PKCS#8 PEM. It is not set: keep it, and give it to `setPrivateKey` at every start. */
  createPrivateKey(): string {
    const key = this.#environment.crypto.generateKey();
    const raw = key.export();
    const pem = encodePrivateKey(raw);
    raw.fill(0);
    key.wipe();
    return pem;
  }

  /** @throws LocalError STRING_TOO_LONG over 32 bytes */
  setAppName(name: string): void {
    this.#new().appName = settings.checkAppText('application name', name);
  }

  /** @throws LocalError STRING_TOO_LONG over 32 bytes */
  setAppVersion(version: string): void {
    this.#new().appVersion = settings.checkAppText('application version', version);
  }

  /** The base station: `https://host[:port]` or `host[:port]`. Without a port: 443. @throws LocalError INVALID_ARGUMENT */
  setServerUrl(url: string): void {
    const { host, port } = settings.parseServerUrl(url);
    this.#new().serverHost = host;
    if (port !== undefined) this.#settings.serverPort = port;
  }

  /** UDP port of the base station, if the URL names none. @throws LocalError INVALID_ARGUMENT */
  setServerPort(port: number): void {
    this.#new().serverPort = settings.checkPort('server port', port);
  }

  /** Full hex fingerprint of the base station's key: the only base station the device talks to. @throws LocalError INVALID_ARGUMENT */
  setServerFingerprint(fingerprint: string): void {
    this.#new().serverFingerprint = settings.checkFingerprint(fingerprint);
  }

  /** UDP port for the local network, 0 = any free one; default 5592. @throws LocalError INVALID_ARGUMENT */
  setLocalPort(port: number): void {
    this.#new().localPort = settings.checkPort('local port', port);
  }

  /** UDP port towards the base station, 0 = any free one; default 5593. @throws LocalError INVALID_ARGUMENT */
  setP2pPort(port: number): void {
    this.#new().p2pPort = settings.checkPort('p2p port', port);
  }

  get productId(): string | null {
    return this.#settings.productId;
  }

  get deviceId(): string | null {
    return this.#settings.deviceId;
  }

  get appName(): string | null {
    return this.#settings.appName;
  }

  get appVersion(): string | null {
    return this.#settings.appVersion;
  }

  /** The port in use once started, before that the one set. */
  get localPort(): number {
    return this.#host?.sockets[LOCAL_SOCKET]?.port ?? this.#settings.localPort;
  }

  /** The port in use once started, before that the one set. */
  get p2pPort(): number {
    return this.#host?.sockets[P2P_SOCKET]?.port ?? this.#settings.p2pPort;
  }

  /** Full hex fingerprint of the device's key. @throws LocalError INVALID_STATE without a private key */
  get deviceFingerprint(): string {
    const { identity } = this.#settings;
    if (identity === null) throw new LocalError('INVALID_STATE', 'the device has no private key');
    return fingerprint(identity.publicKey, this.#environment.crypto);
  }

  // What the device offers. Any time.

  /**
   * Serves a CoAP method and path; `{name}` segments match one segment and reach the handler as parameters.
   * @throws LocalError INVALID_ARGUMENT (also for paths below /p2p, /tcp-tunnels and /iam); IN_USE
   */
  addCoapResource(method: string, path: string, handler: CoapHandler): void {
    this.#resources.add(method, path, handler);
  }

  /**
   * Serves streams to a port; 0 takes an ephemeral one, which the returned listener names.
   * @throws LocalError OPERATION_IN_PROGRESS when the port has a listener; INVALID_ARGUMENT
   */
  addStreamListener(port: number, handler: StreamHandler): StreamListener {
    return this.#streams.listen(port, handler);
  }

  /**
   * Lets clients that are authorized reach a TCP server. Its host is resolved once, now or when that failed at the next use, and stays where
   * it was found; a name that leads to link-local, metadata, multicast or unspecified addresses alone leads nowhere.
   * @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken
   */
  addTcpTunnelService(service: TcpTunnelService): void {
    this.#tunnels.add(service);
  }

  /** What clients see of a service from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setTcpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#tunnels.setMetadata(id, metadata);
  }

  /** Takes a service away; its connections are reset. @throws LocalError NOT_FOUND */
  removeTcpTunnelService(id: string): void {
    this.#tunnels.remove(id);
  }

  /** The one who decides what clients may do. Returns the function that removes it. @throws LocalError IN_USE when there is one */
  onAuthorizationRequest(listener: AuthorizationListener): () => void {
    return this.#authorization.listen(listener);
  }

  /** Asks the authorization listener on behalf of an application's own resource or stream. Never throws; no listener, no permission. */
  authorize(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    return this.#authorization.allows(connection, action, attributes);
  }

  // What the device may reach through its base station.

  createPushNotification(): PushNotification {
    return new PushNotification((request) => this.#askStation(request));
  }

  createServiceInvocation(): ServiceInvocation {
    return new ServiceInvocation((request) => this.#askStation(request));
  }

  /** The one who knows the users' passwords, asked at each login. Returns the function that removes it. @throws LocalError IN_USE */
  onPasswordAuthenticationRequest(listener: PasswordAuthenticationListener): () => void {
    return this.#passwords.listen(listener);
  }

  /** The same for a store of users. @throws LocalError IN_USE */
  setPasswordSource(source: PasswordSource): () => void {
    return this.#passwords.use(source);
  }

  // Server connect tokens.

  /** A fresh token of 12 characters. It is not added: keep it, and give it to `addServerConnectToken` at every start. */
  createServerConnectToken(): string {
    return createToken(this.#environment.crypto);
  }

  /** Clients with this token are let through by the base station. Uploaded at once when attached. @throws LocalError INVALID_ARGUMENT */
  addServerConnectToken(token: string): void {
    if (this.#tokens.add(token)) this.#attacher?.tokensChanged();
  }

  /** True when the base station has all tokens, or the device is not attached (it uploads them when it attaches). */
  areServerConnectTokensSynchronized(): boolean {
    return this.#attacher?.attached !== true || this.#tokens.synchronized;
  }

  // Discovery on the local network (PROTOCOL.md §11).

  /** Announces the device by multicast DNS once it is started. Only before start. @throws LocalError INVALID_STATE; NOT_IMPLEMENTED without multicast */
  enableMdns(): void {
    this.#new();
    this.#announcer.enable();
  }

  /** Clients can look for devices of a subtype alone. Only before start. @throws LocalError INVALID_STATE; INVALID_ARGUMENT unless 1 to 63 characters without `.` */
  mdnsAddSubtype(subtype: string): void {
    this.#new();
    this.#announcer.addSubtype(subtype);
  }

  /**
   * A text that scanning clients see; the same key, without regard to case, is overwritten. Any time; announced at once.
   * @throws LocalError INVALID_ARGUMENT (keys are printable ASCII without `=`; not `productid`, `deviceid`); STRING_TOO_LONG: `key=value` over 255 bytes
   */
  mdnsAddTxtItem(key: string, value: string): void {
    this.#announcer.addTxtItem(key, value);
  }

  // Limits. Any time unless said; lowering one ends nothing that is open.

  /**
   * Client connections at a time, default 64; further clients see DEVICE_INTERNAL_ERROR.
   * @throws LocalError INVALID_ARGUMENT; INVALID_STATE on a running device above 1,024 and above the limit it was started with
   */
  limitConnections(limit: number): void {
    settings.checkLimit('connections', limit);
    if (this.#state !== 'new' && limit > this.#places)
      throw new LocalError('INVALID_STATE', `a running device has places for ${this.#places} connections: set a higher limit before start`);
    this.#limits.connections = limit;
    this.#limitHost();
  }

  /** Streams open at a time, over all connections; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitStreams(limit: number): void {
    this.#limits.streams = settings.checkLimit('streams', limit);
    this.#limitHost();
  }

  /** Stream buffer in units of 256 bytes, over all connections; streams wait when it is used up. Only before start. @throws LocalError */
  limitStreamSegments(limit: number): void {
    this.#new();
    this.#streamSegments = settings.checkLimit('stream segments', limit);
  }

  /** CoAP requests worked on at a time, over all connections; further ones are answered 5.03. @throws LocalError INVALID_ARGUMENT */
  limitCoapServerRequests(limit: number): void {
    this.#resources.limit = settings.checkLimit('CoAP requests', limit);
  }

  /** Tunnel connections at a time to all services of a type; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitTcpTunnelConnections(type: string, limit: number): void {
    this.#tunnels.limit(type, limit);
  }

  // Events. Each returns the function that removes the listener.

  onDeviceEvent(listener: DeviceEventListener): () => void {
    return this.#deviceEvents.add(listener);
  }

  onConnectionEvent(listener: ConnectionListener): () => void {
    return this.#connectionEvents.add(listener);
  }

  /** The connection of a number. @throws LocalError INVALID_CONNECTION when it is closed */
  connection(ref: ConnectionRef): DeviceConnection {
    return this.#connections.byRef(ref);
  }

  /**
   * Attach to the base station or not. Any time before close.
   * @throws LocalError INVALID_STATE after close, or when started without a base station set
   */
  setBasestationAttach(attach: boolean): void {
    if (this.#state === 'closed') throw new LocalError('INVALID_STATE', 'the device is closed');
    this.#settings.attach = attach;
    if (this.#host === null || this.#state !== 'running') return;
    if (attach) this.#attach(this.#host);
    else void this.#attacher?.stop();
  }

  /**
   * Opens the sockets and begins to attach; does not wait for the attach to hold (event ATTACHED).
   * @throws LocalError INVALID_STATE (key, ids or base station missing, started or closed before); ADDRESS_IN_USE
   */
  async start(): Promise<void> {
    this.#new();
    const identity = settings.requireIdentity(this.#settings);
    if (this.#settings.attach) settings.requireStation(this.#settings);
    this.#state = 'starting';
    try {
      const host = await this.#openHost(identity);
      if (this.#state !== 'starting') return await host.close();
      this.#host = host;
      this.#state = 'running';
      this.#announcer.start({ ...settings.requireIdentity(this.#settings), port: this.localPort });
      if (this.#settings.attach) this.#attach(host);
    } catch (error) {
      if (this.#state === 'starting') this.#state = 'new';
      throw error instanceof LocalError && error.code === 'PORT_IN_USE'
        ? new LocalError('ADDRESS_IN_USE', error.message, { cause: error })
        : error;
    }
  }

  /** Detaches, closes all connections and the sockets. The last event is CLOSED. @throws LocalError INVALID_STATE when it does not run */
  async close(): Promise<void> {
    if (this.#state !== 'running' && this.#state !== 'starting') throw new LocalError('INVALID_STATE', 'the device does not run');
    this.#state = 'closed';
    this.#tunnels.close();
    await this.#announcer.close();
    await this.#attacher?.stop();
    await this.#host?.close();
    this.#deviceEvents.emit('CLOSED', null);
  }

  #openHost({ productId, deviceId, key }: settings.Identity): Promise<Host> {
    const { p2pPort, localPort } = this.#settings;
    const name = `device:${productId}.${deviceId}`;
    const { maxStreams } = defaultParameters;
    const streams = this.#limits.streams ?? maxStreams;
    this.#places = Math.max(PLACES, this.#limits.connections ?? defaultLimits.connections);
    return Host.open(this.#environment, {
      identity: key,
      binds: [{ port: p2pPort }, { port: localPort, local: true }],
      responder: (path) => (this.#host !== null && path.socket === this.#host.sockets[LOCAL_SOCKET]?.index ? [name, 'device'] : [name]),
      info: { ProductId: productId, DeviceId: deviceId },
      limits: this.#limits,
      places: this.#places,
      parameters: { maxStreams: Math.max(maxStreams, streams + STREAM_CREDIT) },
      acceptStreams: true,
      resetSecret: settings.derivedSecret(this.#environment.crypto, key, 'svc reset secret'),
      core: this.#coreOptions(),
      router: this.#resources.router,
      onSession: (session) => this.#opened(session),
    });
  }

  #coreOptions(): CoreOptions {
    const connections = this.#places + SPARE_SLOTS;
    return { connections, ...(this.#streamSegments !== null && { streamSegments: this.#streamSegments }) };
  }

  #passwordIdentity(): PasswordIdentity {
    const { productId, deviceId, key } = settings.requireIdentity(this.#settings);
    const secret = settings.derivedSecret(this.#environment.crypto, key, 'svc password secret');
    return { productId, deviceId, fingerprint: this.deviceFingerprint, secret };
  }

  #opened(session: Session): void {
    const connection = this.#connections.add(session);
    session.onStream = (stream) => this.#streams.arrived(stream, connection);
  }

  #attach(host: Host): void {
    this.#attacher ??= new Attacher({
      environment: this.#environment,
      host,
      station: settings.requireStation(this.#settings),
      tokens: this.#tokens,
      names: { ...settings.requireIdentity(this.#settings), appName: this.appName, appVersion: this.appVersion },
      onEvent: (event, reason) => this.#deviceEvents.emit(event, reason),
    });
    this.#attacher.start();
  }

  async #askStation(request: SessionRequest): Promise<CoapResponse> {
    if (this.#attacher === null) throw new LocalError('NOT_ATTACHED', 'the device is not attached to a base station');
    return this.#attacher.request(request);
  }

  #limitHost(): void {
    if (this.#host !== null) Object.assign(this.#host.limits, this.#limits);
  }

  #apply(options: DeviceOptions): void {
    if (options.productId !== undefined) this.setProductId(options.productId);
    if (options.deviceId !== undefined) this.setDeviceId(options.deviceId);
    if (options.privateKey !== undefined) this.setPrivateKey(options.privateKey);
    if (options.serverPort !== undefined) this.setServerPort(options.serverPort);
    if (options.serverUrl !== undefined) this.setServerUrl(options.serverUrl);
    if (options.serverFingerprint !== undefined) this.setServerFingerprint(options.serverFingerprint);
    if (options.appName !== undefined) this.setAppName(options.appName);
    if (options.appVersion !== undefined) this.setAppVersion(options.appVersion);
    if (options.localPort !== undefined) this.setLocalPort(options.localPort);
    if (options.p2pPort !== undefined) this.setP2pPort(options.p2pPort);
    if (options.basestationAttach !== undefined) this.setBasestationAttach(options.basestationAttach);
  }

  /** The settings, as long as they may be changed. */
  #new(): settings.Settings {
    if (this.#state !== 'new') throw new LocalError('INVALID_STATE', 'this can be set only before the device is started');
    return this.#settings;
  }
}
