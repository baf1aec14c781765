/**
 * The running part of a device: its state from new to closed, its host with two sockets, the channel to the base
 * station, the announcer.
 *
 *   new ── start ──▶ starting ──▶ running ── close ──▶ closed          a start that fails leads back to new
 *
 * `Device` is the public surface. Settings that may change only before start go through `setup`.
 */
import type { CoreOptions } from '../bindings/index.ts';
import type { Environment } from '../platform/environment.ts';
import { check, flag } from '../protocol/arguments.ts';
import type { CoapResponse } from '../protocol/coap/index.ts';
import type { KeptConnections } from '../protocol/endpoint/index.ts';
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { fingerprint } from '../protocol/identity/index.ts';
import { defaultLimits, defaultParameters } from '../runtime/host/defaults.ts';
import { Host } from '../runtime/host/index.ts';
import { Roaming, type RoamingEvent } from '../runtime/roaming/index.ts';
import type { Session, SessionRequest } from '../runtime/session/index.ts';
import { Attacher } from './attacher.ts';
import type { CoapResources } from './coap-resources.ts';
import type { Connections, ReportPaths } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import { Announcer } from './mdns.ts';
import type { PasswordIdentity } from './password/service.ts';
import { DeviceRendezvous } from './rendezvous.ts';
import * as settings from './settings.ts';
import type { StreamListeners } from './streams.ts';
import { ServerConnectTokens } from './tokens.ts';

/** Order of the sockets of a device's host. */
const P2P_SOCKET = 0;
const LOCAL_SOCKET = 1;

/** Streams, above the application's limit, that a client may begin before it is refused (docs/transport.md §2). */
export const STREAM_CREDIT = 64;

/**
 * Least capacity for client connections: a running device may raise its limit up to this. Unused capacity costs
 * nothing.
 */
const MIN_CAPACITY = 1024;

/** One in four connections is reserved for paired keys. */
const KEPT = 4;
/** One in two of the other connections may be held from one address by keys that are not paired. */
const PER_NETWORK = 2;

/**
 * Slots of the core above the limit of client connections: the base station's channel, and clients that get a "busy"
 * answer.
 */
const SPARE_SLOTS = 8;

/** The parts and callbacks of a device runtime. */
export interface DeviceRuntimeOptions {
  readonly environment: Environment;
  readonly resources: CoapResources;
  readonly streams: StreamListeners;
  readonly connections: Connections;
  readonly onEvent: (event: DeviceEvent, reason: SvcError | null) => void;
  /** Called before the host closes: ends what runs over its connections. */
  readonly onClose: () => void;
}

export class DeviceRuntime {
  readonly settings = new settings.Settings();
  readonly tokens = new ServerConnectTokens();
  readonly announcer: Announcer;
  readonly #options: DeviceRuntimeOptions;
  readonly #limits: { connections?: number; streams?: number } = {};
  #streamSegments: number | null = null;
  /** Returns the user of a paired key, else null; itself null without access control. */
  #userOf: ((fingerprint: string) => string | null) | null = null;
  /** The highest limit of connections, set at the start. */
  #capacity = Number.POSITIVE_INFINITY;
  #state: 'new' | 'starting' | 'running' | 'closed' = 'new';
  #host: Host | null = null;
  #attacher: Attacher | null = null;
  #rendezvous: DeviceRendezvous | null = null;
  #roaming: Roaming | null = null;
  /** Shared by all connections. */
  readonly #reportPaths: ReportPaths = (session, times) => this.#rendezvous!.report(session, times);

  constructor(options: DeviceRuntimeOptions) {
    this.#options = options;
    this.announcer = new Announcer(options.environment);
  }

  /** Returns the settings while they may be changed. @throws LocalError INVALID_STATE once start has begun */
  setup(): settings.Settings {
    if (this.#state !== 'new') throw new LocalError('INVALID_STATE', 'this can be set only before the device is started');
    return this.settings;
  }

  /** The port in use once started; before that, the one set. */
  get localPort(): number {
    return this.#host?.sockets.bound[LOCAL_SOCKET]?.port ?? this.settings.localPort;
  }

  /** The port in use once started; before that, the one set. */
  get p2pPort(): number {
    return this.#host?.sockets.bound[P2P_SOCKET]?.port ?? this.settings.p2pPort;
  }

  /** Full hex fingerprint of the device's key. @throws LocalError INVALID_STATE without a private key */
  get fingerprint(): string {
    const { identity } = this.settings;
    if (identity === null) throw new LocalError('INVALID_STATE', 'the device has no private key');
    return fingerprint(identity.publicKey, this.#options.environment.crypto);
  }

  /**
   * The identity that password logins are bound to.
   * @throws LocalError INVALID_STATE when the key or an id is missing
   */
  get passwordIdentity(): PasswordIdentity {
    const { productId, deviceId, key } = settings.requireIdentity(this.settings);
    const secret = settings.derivedSecret(this.#options.environment.crypto, key, 'svc password secret');
    return { productId, deviceId, fingerprint: this.fingerprint, secret };
  }

  /** @throws LocalError INVALID_STATE on a running device above 1,024 and above the limit it was started with */
  limitConnections(limit: number): void {
    if (this.#state !== 'new' && limit > this.#capacity)
      throw new LocalError('INVALID_STATE', `a running device has room for ${this.#capacity} connections: set a higher limit before start`);
    this.#limits.connections = limit;
    this.#limitHost();
  }

  /**
   * Reserves a quarter of the connections, rounded down, for paired keys; other keys get half of the rest, rounded up,
   * per address.
   * @param userOf returns the user of a key; null for an unpaired key
   */
  keepConnectionsFor(userOf: (fingerprint: string) => string | null): void {
    this.#userOf = userOf;
    this.#limitHost();
  }

  limitStreams(limit: number): void {
    this.#limits.streams = limit;
    this.#limitHost();
  }

  limitStreamSegments(limit: number): void {
    this.#streamSegments = limit;
    this.#limitHost();
  }

  get attached(): boolean {
    return this.#attacher?.attached === true;
  }

  /** Uploads the changed token list, if attached. */
  tokensChanged(): void {
    this.#attacher?.tokens.changed();
  }

  /** @throws LocalError INVALID_STATE after close, or when started without a base station set */
  setBasestationAttach(attach: boolean): void {
    check('basestationAttach', attach, flag);
    if (this.#state === 'closed') throw new LocalError('INVALID_STATE', 'the device is closed');
    this.settings.attach = attach;
    if (this.#host === null || this.#state !== 'running') return;
    if (attach) this.#attach(this.#host);
    else void this.#attacher?.stop();
  }

  /** Sends a request to the base station. @throws NOT_ATTACHED; as the channel does */
  async ask(request: SessionRequest): Promise<CoapResponse> {
    if (this.#attacher === null) throw new LocalError('NOT_ATTACHED', 'the device is not attached to a base station');
    return this.#attacher.request(request);
  }

  /**
   * Opens the sockets and begins to attach, without waiting until attached (event ATTACHED).
   * @throws LocalError INVALID_STATE (key, ids or base station missing, started or closed before); ADDRESS_IN_USE
   */
  async start(): Promise<void> {
    this.setup();
    const identity = settings.requireIdentity(this.settings);
    if (this.settings.attach) settings.requireStation(this.settings, this.#options.environment);
    this.#state = 'starting';
    try {
      const host = await this.#openHost(identity);
      if (this.#state !== 'starting') {
        await host.close();
        throw new LocalError('STOPPED', 'the device was closed while it started');
      }
      this.#host = host;
      this.#rendezvous = this.#startRendezvous(host);
      // Keeps the configured port: it may be forwarded, mapped or opened in firewalls.
      this.#roaming = new Roaming({
        host,
        takesFreshSocket: false,
        onEvent: (event) => this.#networkEvent(event),
        isWaiting: () => this.settings.attach,
      });
      // Applies limits set while the host was opening.
      this.#limitHost();
      this.#state = 'running';
      this.announcer.start({ ...settings.requireIdentity(this.settings), port: this.localPort });
      if (this.settings.attach) this.#attach(host);
    } catch (error) {
      if (this.#state === 'starting') this.#state = 'new';
      throw error instanceof LocalError && error.code === 'PORT_IN_USE'
        ? new LocalError('ADDRESS_IN_USE', error.message, { cause: error })
        : error;
    }
  }

  /**
   * Detaches, closes all connections and the sockets. The last event is CLOSED.
   * @throws LocalError INVALID_STATE unless it is running
   */
  async close(): Promise<void> {
    if (this.#state !== 'running' && this.#state !== 'starting') throw new LocalError('INVALID_STATE', 'the device is not running');
    this.#state = 'closed';
    this.#options.onClose();
    this.#roaming?.close();
    const unmapped = this.#rendezvous?.close();
    await Promise.all([this.announcer.close(), this.#host?.leave()]);
    await this.#attacher?.stop();
    await Promise.all([this.#host?.close(), unmapped]);
    this.#options.onEvent('CLOSED', null);
  }

  #networkEvent(event: RoamingEvent): void {
    this.#rendezvous?.networkEvent(event);
    this.#attacher?.channel.hurry();
  }

  #openHost({ productId, deviceId, key }: settings.Identity): Promise<Host> {
    const { p2pPort, localPort } = this.settings;
    const name = `device:${productId}.${deviceId}`;
    const { maxStreams } = defaultParameters;
    const streams = this.#limits.streams ?? maxStreams;
    this.#capacity = Math.max(MIN_CAPACITY, this.#limits.connections ?? defaultLimits.connections);
    return Host.open(this.#options.environment, {
      identity: key,
      binds: [{ port: p2pPort }, { port: localPort, local: true }],
      responder: (path) =>
        this.#host !== null && path.socket === this.#host.sockets.bound[LOCAL_SOCKET]?.index ? [name, 'device'] : [name],
      info: { ProductId: productId, DeviceId: deviceId },
      limits: this.#limits,
      capacity: this.#capacity,
      parameters: { maxStreams: Math.max(maxStreams, streams + STREAM_CREDIT) },
      acceptStreams: true,
      rests: true,
      resetSecret: settings.derivedSecret(this.#options.environment.crypto, key, 'svc reset secret'),
      core: this.#coreOptions(),
      router: this.#options.resources.router,
      onSession: (session) => this.#opened(session),
      onUnrecoverable: (error) => this.#options.onEvent('PLATFORM_FAILURE', error),
    });
  }

  #coreOptions(): CoreOptions {
    const connections = this.#capacity + SPARE_SLOTS;
    return { connections, ...(this.#streamSegments !== null && { streamSegments: this.#streamSegments }) };
  }

  #startRendezvous(host: Host): DeviceRendezvous {
    const { resources, connections } = this.#options;
    return new DeviceRendezvous({
      host,
      settings: this.settings.rendezvous,
      keepAliveProfile: this.settings.keepAliveProfile,
      resources,
      isKnown: (session) => (this.#userOf?.(session.peer.fingerprint) ?? null) !== null || connections.of(session).isPasswordAuthenticated,
      stationName: this.settings.serverHost,
      channel: () => this.#attacher?.channel.session ?? null,
    });
  }

  #opened(session: Session): void {
    const connection = this.#options.connections.add(session, this.#reportPaths);
    session.onStream = (stream) => this.#options.streams.arrived(stream, connection);
    session.onDatagram = (datagram) => session.datagrams.receive(datagram);
  }

  #attach(host: Host): void {
    const { appName, appVersion } = this.settings;
    this.#attacher ??= new Attacher({
      environment: this.#options.environment,
      host,
      station: settings.requireStation(this.settings, this.#options.environment),
      tokens: this.tokens,
      names: { ...settings.requireIdentity(this.settings), appName, appVersion },
      onChannel: (channel, keepAlive) => this.#rendezvous?.keepAlive(channel, keepAlive),
      onEvent: (event, reason) => {
        if (event === 'ATTACHED') this.#rendezvous?.attached();
        this.#options.onEvent(event, reason);
      },
    });
    this.#attacher.start();
  }

  #limitHost(): void {
    if (this.#host === null) return;
    Object.assign(this.#host.limits, this.#limits);
    const { limits } = this.#host;
    if (this.#userOf !== null) limits.kept = keptOf(limits.connections, this.#userOf);
    if (this.#streamSegments !== null) this.#host.limitStreamSegments(this.#streamSegments);
  }
}

function keptOf(connections: number, holderOf: KeptConnections['holderOf']): KeptConnections {
  const kept = Math.floor(connections / KEPT);
  return { connections: kept, holderOf, perNetwork: Math.ceil((connections - kept) / PER_NETWORK) };
}
