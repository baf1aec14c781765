import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { checkCertificates, shortFingerprint } from '../protocol/identity/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import { Emitter } from '../transport/emitter.ts';
import { type Environment, withLog } from '../transport/environment.ts';
import { nodeEnvironment } from '../transport/node/index.ts';
import { AccessControl } from './access-control.ts';
import { DeviceAudit } from './audit/device.ts';
import type { AuditLog } from './audit/log.ts';
import { Authorization, type AuthorizationListener, type Grant } from './authorization.ts';
import type { CoapResource } from './coap-observers.ts';
import { type CoapHandler, type CoapResourceOptions, CoapResources } from './coap-resources.ts';
import { type ConnectionListener, type ConnectionRef, Connections, type DeviceConnection } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import { callerOf, type Denial } from './iam/caller.ts';
import type { Iam } from './iam/iam.ts';
import { DeviceLog, type DeviceLogCallback, stdOutCallback } from './log.ts';
import { applyOptions, type DeviceOptions } from './options.ts';
import type { PasswordAuthenticationListener } from './password/requests.ts';
import { PasswordService } from './password/service.ts';
import type { PasswordSource } from './password/source.ts';
import { PushNotification } from './push.ts';
import { checkRendezvous, type RendezvousMode, type RendezvousOptions } from './rendezvous-options.ts';
import { DeviceRuntime } from './runtime.ts';
import { ServiceInvocation } from './service-invocation.ts';
import * as settings from './settings.ts';
import { type StreamHandler, type StreamListener, StreamListeners } from './streams.ts';
import { createToken } from './tokens.ts';
import { createTunnels, type DeviceTunnels } from './tunnels/create.ts';
import type { TcpTunnelService } from './tunnels/tunnels.ts';
import type { UdpTunnelService, UdpTunnelServiceStats } from './tunnels/udp.ts';

/** Told with an event: what went wrong, if anything did. */
export type DeviceEventListener = (event: DeviceEvent, reason: SvcError | null) => void;

/** A device: set it up, `start` it, `close` it. Used once. */
export class Device {
  readonly #environment: Environment;
  readonly #log: DeviceLog;
  readonly #events: Emitter<{ deviceEvent: { event: DeviceEvent; reason: SvcError | null }; denied: Denial }>;
  readonly #authorization: Authorization;
  readonly #connections: Connections;
  readonly #resources: CoapResources;
  readonly #streams: StreamListeners;
  readonly #tunnels: DeviceTunnels;
  readonly #passwords: PasswordService;
  readonly #runtime: DeviceRuntime;
  #accessControl: AccessControl | null = null;
  #audit: DeviceAudit | null = null;

  /** @throws LocalError as the setters */
  constructor(options: DeviceOptions = {}) {
    const environment = options.environment ?? nodeEnvironment();
    this.#log = new DeviceLog(environment.log, environment.clock);
    const { log } = this.#log;
    this.#environment = withLog(environment, log);
    this.#events = new Emitter(log);
    const { log: told } = this.#log.tally;
    this.#authorization = new Authorization({ clock: this.#environment.clock, log: told }, ({ connection, action, attributes }) =>
      this.#events.emit('denied', { caller: callerOf(connection), action, attributes }),
    );
    this.#connections = new Connections(log, this.#environment.clock);
    this.#resources = new CoapResources(this.#connections, told, this.#environment.clock, this.#authorization);
    this.#streams = new StreamListeners(told);
    const parts = { authorization: this.#authorization, streams: this.#streams, resources: this.#resources };
    this.#tunnels = createTunnels(this.#environment, parts);
    this.#runtime = new DeviceRuntime({
      environment: this.#environment,
      resources: this.#resources,
      streams: this.#streams,
      connections: this.#connections,
      onEvent: (event, reason) => this.#events.emit('deviceEvent', { event, reason }),
      onClose: () => {
        this.#log.tally.flush();
        this.#tunnels.tcp.close();
        this.#tunnels.udp.close();
        this.#accessControl?.close();
      },
    });
    this.#passwords = new PasswordService(this.#environment, () => this.#runtime.passwordIdentity, this.#resources);
    applyOptions(this, options);
  }

  /** Version of this SDK. */
  static version(): string {
    return VERSION;
  }

  // Who the device is. All of these only before start: LocalError INVALID_STATE.

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setProductId(id: string): void {
    this.#runtime.setup().productId = settings.checkId('product id', id);
  }

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setDeviceId(id: string): void {
    this.#runtime.setup().deviceId = settings.checkId('device id', id);
  }

  /** PKCS#8 PEM, as `createPrivateKey` makes it. @throws LocalError INVALID_ARGUMENT */
  setPrivateKey(pem: string): void {
    this.#runtime.setup().identity = settings.importPrivateKey(this.#environment.crypto, pem);
  }

  /** A fresh private key as PKCS#8 PEM. It is not set: keep it, and give it to `setPrivateKey` at every start. */
  createPrivateKey(): string {
    return settings.createPrivateKey(this.#environment.crypto);
  }

  /** @throws LocalError STRING_TOO_LONG over 32 bytes */
  setAppName(name: string): void {
    this.#runtime.setup().appName = settings.checkAppText('application name', name);
  }

  /** @throws LocalError STRING_TOO_LONG over 32 bytes */
  setAppVersion(version: string): void {
    this.#runtime.setup().appVersion = settings.checkAppText('application version', version);
  }

  /** The base station: `https://host[:port]` or `host[:port]`. Without a port: 4433. @throws LocalError INVALID_ARGUMENT */
  setServerUrl(url: string): void {
    const { host, port } = settings.parseServerUrl(url);
    this.#runtime.setup().serverHost = host;
    if (port !== undefined) this.#runtime.settings.serverPort = port;
  }

  /** Port of the base station, if the URL names none: of UDP, and without a fingerprint that of https. @throws LocalError INVALID_ARGUMENT */
  setServerPort(port: number): void {
    this.#runtime.setup().serverPort = settings.checkPort('server port', port);
  }

  /** Pin: full hex fingerprint of the base station's key. Without it the base station is proved by TLS. @throws LocalError INVALID_ARGUMENT */
  setServerFingerprint(fingerprint: string): void {
    this.#runtime.setup().serverFingerprint = settings.checkFingerprint(fingerprint);
  }

  /** PEM: roots that prove a base station without pin, in place of those of the platform. @throws LocalError INVALID_ARGUMENT */
  setRootCerts(pem: string): void {
    this.#runtime.setup().rootCerts = checkCertificates(pem);
  }

  /** Where UDP is silent; null, the default: `/svc/v1` of the base station. @param verify its certificate must be valid @throws LocalError INVALID_ARGUMENT */
  setServerWebSocketUrl(url: string | null, verify = false): void {
    Object.assign(this.#runtime.setup(), settings.checkWebSocket(url, verify));
  }

  /** With whom the device looks for direct paths, and what it names for that; default `anyone`. @throws LocalError INVALID_ARGUMENT */
  setRendezvous(rendezvous: RendezvousMode | RendezvousOptions): void {
    this.#runtime.setup().rendezvous = checkRendezvous(rendezvous);
  }

  /** How often the channel to the base station is kept alive; default `balanced` (docs/paths.md). @throws LocalError INVALID_ARGUMENT */
  setKeepAliveProfile(profile: NonNullable<DeviceOptions['keepAliveProfile']>): void {
    this.#runtime.setup().keepAliveProfile = settings.checkProfile(profile);
  }

  /** UDP port for the local network, 0 = any free one; default 5592. @throws LocalError INVALID_ARGUMENT */
  setLocalPort(port: number): void {
    this.#runtime.setup().localPort = settings.checkPort('local port', port);
  }

  /** UDP port towards the base station, 0 = any free one; default 5593. @throws LocalError INVALID_ARGUMENT */
  setP2pPort(port: number): void {
    this.#runtime.setup().p2pPort = settings.checkPort('p2p port', port);
  }

  get productId(): string | null {
    return this.#runtime.settings.productId;
  }

  get deviceId(): string | null {
    return this.#runtime.settings.deviceId;
  }

  get appName(): string | null {
    return this.#runtime.settings.appName;
  }

  get appVersion(): string | null {
    return this.#runtime.settings.appVersion;
  }

  /** The port in use once started, before that the one set. */
  get localPort(): number {
    return this.#runtime.localPort;
  }

  /** The port in use once started, before that the one set. */
  get p2pPort(): number {
    return this.#runtime.p2pPort;
  }

  /** Full hex fingerprint of the device's key. @throws LocalError INVALID_STATE without a private key */
  get deviceFingerprint(): string {
    return this.#runtime.fingerprint;
  }

  /** @deprecated The first 16 bytes of it: for people's eyes, never to tell devices apart. @throws as deviceFingerprint */
  get deviceFingerprintHex(): string {
    return shortFingerprint(this.#runtime.fingerprint);
  }

  // What the device offers. Any time.

  /**
   * Serves a CoAP method and path; `{name}` segments match one segment and reach the handler as parameters. A GET that is observable: call
   * `notify` of the returned resource when it changed, and its observers get a new answer of the handler. `remove` takes it away; requests that are being
   * worked on are answered all the same.
   * @throws LocalError INVALID_ARGUMENT (also: /.well-known/core, paths below /p2p, /tcp-tunnels, /udp-tunnels and /iam, observable without GET); IN_USE
   */
  addCoapResource(method: string, path: string, handler: CoapHandler, options: CoapResourceOptions = {}): CoapResource {
    return this.#resources.add(method, path, handler, options);
  }

  /** Serves streams to a port; 0: to an ephemeral one, which the listener names. @throws LocalError OPERATION_IN_PROGRESS (it has one), INVALID_ARGUMENT */
  addStreamListener(port: number, handler: StreamHandler): StreamListener {
    return this.#streams.listen(port, handler);
  }

  /**
   * Lets clients that are authorized reach a TCP server. Its host is resolved once, now or when that failed at the next use, and stays where
   * it was found; a name that leads to link-local, metadata, multicast or unspecified addresses alone leads nowhere.
   * @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken
   */
  addTcpTunnelService(service: TcpTunnelService): void {
    this.#tunnels.tcp.add(service);
  }

  /** What clients see of a service from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setTcpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#tunnels.tcp.setMetadata(id, metadata);
  }

  /** Takes a service away; its connections are reset. @throws LocalError NOT_FOUND */
  removeTcpTunnelService(id: string): void {
    this.#tunnels.tcp.remove(id);
  }

  /** As {@link addTcpTunnelService}, of a UDP server. @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken by a UDP service */
  addUdpTunnelService(service: UdpTunnelService): void {
    this.#tunnels.udp.add(service);
  }

  /** What clients see of a UDP service from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setUdpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#tunnels.udp.setMetadata(id, metadata);
  }

  /** Takes a UDP service away; its flows are reset. @throws LocalError NOT_FOUND */
  removeUdpTunnelService(id: string): void {
    this.#tunnels.udp.remove(id);
  }

  /** Flows of a UDP service, and what became of their datagrams. @throws LocalError NOT_FOUND */
  udpTunnelServiceStats(id: string): UdpTunnelServiceStats {
    return this.#tunnels.udp.stats(id);
  }

  // Who may do what.

  /**
   * Puts the device under access control: `iam` answers every authorization request and knows the users' passwords, the endpoints below /iam
   * are served, users' server connect tokens are on the list, and a deleted user's connections are closed. Once, before start.
   * @throws LocalError INVALID_STATE; IN_USE when there is access control, an authorization listener or one for passwords
   */
  setIam(iam: Iam): void {
    this.#runtime.setup();
    if (this.#accessControl !== null) throw new LocalError('IN_USE', 'the device has access control: only one is possible');
    this.#accessControl = new AccessControl(iam, {
      clock: this.#environment.clock,
      authorization: this.#authorization,
      passwords: this.#passwords,
      resources: this.#resources,
      connections: this.#connections,
      runtime: this.#runtime,
      denied: (denial) => this.#events.emit('denied', denial),
    });
    this.#audit?.follow(iam);
  }

  /**
   * Binds a user to a connection whom the application has identified itself (by an OAuth token, for example), until it closes; null ends that. The
   * user of the client's key, and the one of a password, go before.
   * @throws LocalError INVALID_STATE without access control; NOT_FOUND without such a user; INVALID_CONNECTION when the connection is closed
   */
  authorizeConnection(connection: DeviceConnection, username: string | null): void {
    if (this.#accessControl === null) throw new LocalError('INVALID_STATE', 'the device has no access control');
    this.#accessControl.authorizeConnection(connection, username);
  }

  /**
   * Has starts, stops, refusals, and with access control every change of it, written into `log`; a change is on the disk before it is acknowledged
   * (docs/audit.md). Once, before start. The log stays the application's to close, after the device.
   * @throws LocalError INVALID_STATE; IN_USE when there is one
   */
  setAuditLog(log: AuditLog): void {
    this.#runtime.setup();
    if (this.#audit !== null) throw new LocalError('IN_USE', 'the device has an audit log: only one is possible');
    const audit = new DeviceAudit(log);
    this.#audit = audit;
    this.onDenied((denial) => audit.denied(denial));
    this.onDeviceEvent((event) => audit.deviceEvent(event));
    this.#passwords.onFailed = (failure) => audit.passwordFailed(failure);
    if (this.#accessControl !== null) audit.follow(this.#accessControl.iam);
  }

  /** Told of everything that a client was refused. Returns the function that removes the listener. */
  onDenied(listener: (denial: Denial) => void): () => void {
    return this.#events.on('denied', listener);
  }

  /** The one who decides what clients may do. Returns the function that removes it. @throws LocalError IN_USE when there is one */
  onAuthorizationRequest(listener: AuthorizationListener): () => void {
    return this.#authorization.listen(listener);
  }

  /** Asks the authorization listener on behalf of an application's own resource or stream. Never throws; no listener, no permission. */
  authorize(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    return this.#authorization.allows(connection, action, attributes);
  }

  /** The same for what goes on, such as a stream: `onRevoked` is called once, when it is no longer allowed or the connection ends. Null when it is denied. */
  grant(
    connection: DeviceConnection,
    action: string,
    attributes: Readonly<Record<string, string>>,
    onRevoked: () => void,
  ): Promise<Grant | null> {
    return this.#authorization.grant(connection, action, attributes, onRevoked);
  }

  /** Asks the authorization listener again for every grant, tunnels among them. With `setIam` that happens by itself. */
  reconsiderGrants(): void {
    this.#authorization.reconsider();
  }

  // What the device may reach through its base station.

  createPushNotification(): PushNotification {
    return new PushNotification((request) => this.#runtime.ask(request));
  }

  createServiceInvocation(): ServiceInvocation {
    return new ServiceInvocation((request) => this.#runtime.ask(request));
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
    if (this.#runtime.tokens.add(token)) this.#runtime.tokensChanged();
  }

  /** The base station lets nobody through by it any more, as soon as it knows. A token of a user's stays. @throws LocalError NOT_FOUND */
  removeServerConnectToken(token: string): void {
    if (this.#runtime.tokens.remove(token)) this.#runtime.tokensChanged();
  }

  /** True when the base station has all tokens, or the device is not attached (it uploads them when it attaches). */
  areServerConnectTokensSynchronized(): boolean {
    return !this.#runtime.attached || this.#runtime.tokens.synchronized;
  }

  // Discovery on the local network (PROTOCOL.md §11).

  /** Announces the device by multicast DNS once it is started. Only before start. @throws LocalError INVALID_STATE; NOT_IMPLEMENTED without multicast */
  enableMdns(): void {
    this.#runtime.setup();
    this.#runtime.announcer.enable();
  }

  /** Clients can look for a subtype alone. Only before start. @throws LocalError INVALID_STATE; INVALID_ARGUMENT unless 1 to 63 characters without `.` */
  mdnsAddSubtype(subtype: string): void {
    this.#runtime.setup();
    this.#runtime.announcer.addSubtype(subtype);
  }

  /**
   * A text that scanning clients see; the same key, without regard to case, is overwritten. Any time; announced at once.
   * @throws LocalError INVALID_ARGUMENT (keys are printable ASCII without `=`; not `productid`, `deviceid`); STRING_TOO_LONG: `key=value` over 255 bytes
   */
  mdnsAddTxtItem(key: string, value: string): void {
    this.#runtime.announcer.addTxtItem(key, value);
  }

  // Limits. Any time unless said; lowering one ends nothing that is open.

  /**
   * Client connections at a time, default 64; further clients see DEVICE_INTERNAL_ERROR.
   * @throws LocalError INVALID_ARGUMENT; INVALID_STATE on a running device above 1,024 and above the limit it was started with
   */
  limitConnections(limit: number): void {
    this.#runtime.limitConnections(settings.checkLimit('connections', limit));
  }

  /** Streams open at a time, over all connections; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitStreams(limit: number): void {
    this.#runtime.limitStreams(settings.checkLimit('streams', limit));
  }

  /** Stream buffer in units of 256 bytes, at least 128, over all connections; streams wait when it is used up. @throws LocalError INVALID_ARGUMENT */
  limitStreamSegments(limit: number): void {
    this.#runtime.limitStreamSegments(settings.checkLimit('stream segments', limit));
  }

  /** CoAP requests worked on at a time, over all connections; further ones are answered 5.03. @throws LocalError INVALID_ARGUMENT */
  limitCoapServerRequests(limit: number): void {
    this.#resources.limit = settings.checkLimit('CoAP requests', limit);
  }

  /** Observations of CoAP resources at a time, over all connections, default 1,024; further ones are answered once. @throws LocalError INVALID_ARGUMENT */
  limitCoapObservations(limit: number): void {
    this.#resources.observers.limit = settings.checkLimit('CoAP observations', limit);
  }

  /** Tunnel connections at a time to all services of a type; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitTcpTunnelConnections(type: string, limit: number): void {
    this.#tunnels.tcp.limit(type, limit);
  }

  /** Flows at a time to all UDP services of a type; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitUdpTunnelFlows(type: string, limit: number): void {
    this.#tunnels.udp.limit(type, limit);
  }

  /** Flows at a time of one client's connection, default 256; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitUdpTunnelFlowsPerConnection(limit: number): void {
    this.#tunnels.udp.limitPerClient(limit);
  }

  // Messages for people. Any time.
  /** Least severe level that is told: `error`, `warn`, `info` or `trace`; of this device alone. @throws LocalError INVALID_ARGUMENT */
  setLogLevel(level: string): void {
    this.#log.setLevel(level);
  }

  /** Told of each message, beside the environment's log; null takes it away. */
  setLogCallback(callback: DeviceLogCallback | null): void {
    this.#log.setCallback(callback);
  }

  /** Messages as lines on standard output, in place of another callback. */
  setLogStdOutCallback(): void {
    this.#log.setCallback(stdOutCallback());
  }

  // Events. Each returns the function that removes the listener.
  onDeviceEvent(listener: DeviceEventListener): () => void {
    return this.#events.on('deviceEvent', ({ event, reason }) => listener(event, reason));
  }

  onConnectionEvent(listener: ConnectionListener): () => void {
    return this.#connections.onEvent(listener);
  }
  /** The connection of a number. @throws LocalError INVALID_CONNECTION when it is closed */
  connection(ref: ConnectionRef): DeviceConnection {
    return this.#connections.byRef(ref);
  }

  /** Attach to the base station or not. Any time before close. @throws LocalError INVALID_STATE after close, or when started without a base station set */
  setBasestationAttach(attach: boolean): void {
    this.#runtime.setBasestationAttach(attach);
  }

  /**
   * Opens the sockets and begins to attach; does not wait for the attach to hold (event ATTACHED). @throws LocalError INVALID_STATE (key, ids or base station
   * missing, root certificates beside a fingerprint, started or closed before); ADDRESS_IN_USE
   */
  async start(): Promise<void> {
    await this.#runtime.start();
    await this.#audit?.started(this.#runtime.settings);
  }

  /** Detaches, closes all connections and the sockets. The last event is CLOSED. @throws LocalError INVALID_STATE when it does not run */
  async close(): Promise<void> {
    await this.#runtime.close();
    await this.#passwords.close();
    await this.#audit?.stopped();
  }
}
