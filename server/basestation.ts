/**
 * A base station over any environment: sockets, sessions, attach, connect, relay, STUN. Storage is an argument; the
 * REST interface, files and signals belong to `start.ts`.
 *
 * A new session is neutral and may ask to join, to attach or to connect. The first accepted request makes it a device's
 * channel or a client's, and each kind has its own router. `admission.ts` decides which sessions are kept. When a
 * session ends, its device is no longer attached, its routes end, and its pending requests are dropped.
 */
import { setMaxListeners } from 'node:events';
import type { Environment, Log } from '../platform/environment.ts';
import {
  callback,
  checkOptions,
  type Kind,
  nonEmptyText,
  object,
  options as optionsOf,
  plainObject,
  whole,
} from '../protocol/arguments.ts';
import { type CoapReply, MAX_MESSAGE, type RoutedRequest, Router, Status } from '../protocol/coap/index.ts';
import { ClientPath, DevicePath, decodeRouteRelease, type StunServer } from '../protocol/control/index.ts';
import type { PrivateKey } from '../protocol/crypto-provider.ts';
import type { SvcError } from '../protocol/errors/index.ts';
import { formatHostPort } from '../protocol/records/host-port.ts';
import { defaultParameters } from '../runtime/host/defaults.ts';
import { Host } from '../runtime/host/index.ts';
import { LogTally } from '../runtime/log-tally.ts';
import type { Session } from '../runtime/session/index.ts';
import { KeySets, type KeySetsOptions } from './jwt/key-sets.ts';
import { TokenVerifier, type TokenVerifierOptions } from './jwt/verifier.ts';
import { nodeGet } from './outbound/http.ts';
import { Admission } from './station/admission.ts';
import { ClientApi } from './station/client-api.ts';
import { ClockSteps } from './station/clock-steps.ts';
import { DeviceApi, seenAddress } from './station/device-api.ts';
import type { DeviceIds, Directory } from './station/directory.ts';
import { JoinApi } from './station/join-api.ts';
import { OutboundApi, type OutboundOptions } from './station/outbound-api.ts';
import { deviceName, Presence } from './station/presence.ts';
import { BURST_SECONDS } from './station/rates.ts';
import { Relay } from './station/relay.ts';
import { Revocation } from './station/revocation.ts';
import { checkSettings, defaultSettings, type StationSettings } from './station/settings.ts';
import { StorageHealth } from './station/storage-health.ts';
import { checkStun, Stun } from './station/stun.ts';
import { WebSockets } from './station/web-sockets.ts';
import type { AttachedDevice } from './status-socket.ts';
import type { Sealer } from './storage/sealing.ts';
import type { Store } from './storage/store.ts';

/** Identity, storage and address of a base station. */
export interface BasestationOptions {
  identity: PrivateKey;
  /** 32 bytes, the same after every restart. */
  resetSecret: Uint8Array;
  store: Store;
  /** Opens the keys of push credentials and services. */
  sealer: Sealer;
  /** UDP port; 0 = any free port. */
  port: number;
  /** Numeric address; default all, IPv4 and IPv6. */
  host?: string;
  settings?: Partial<StationSettings>;
  /** Functions that send pushes and service invocations, and the receiver of their events; `onEvent` must not throw. */
  outbound?: Pick<OutboundOptions, 'post' | 'sign' | 'onEvent'>;
  /**
   * How the keys of issuers are fetched, default Node's HTTP; which private addresses they may have, default none; how
   * tokens are verified, default jose.
   */
  issuers?: Partial<Pick<KeySetsOptions, 'get' | 'allowPrivate'> & Pick<TokenVerifierOptions, 'verify'>>;
}

const KINDS: Record<keyof BasestationOptions, Kind> = {
  identity: object,
  resetSecret: [(value) => value instanceof Uint8Array && value.length === 32, '32 bytes'],
  store: object,
  sealer: object,
  port: whole(0, 0xffff),
  host: nonEmptyText,
  settings: plainObject,
  outbound: optionsOf('outbound', { post: callback, sign: callback, onEvent: callback }),
  issuers: optionsOf('issuers', { get: callback, allowPrivate: callback, verify: callback }),
};

/** The name that a base station answers to (PROTOCOL.md §2.3, mac1). */
const RESPONDER = ['station'] as const;

/**
 * Slots of the core above the limit of connections, for connections that are being refused: a quarter of the limit,
 * plus this number.
 */
export const SPARE_SLOTS = 64;
const SPARE_SHARE = 1 / 4;

/**
 * Handshakes of strangers in progress, and the number above which an address must be validated first (docs/transport.md
 * §1).
 */
export const HALF_OPEN = 10_000;
export const RETRY_ABOVE = 500;

/** Concurrent requests of one peer; each is one message. */
const MAX_REQUESTS = 64;
/** Number of largest messages that one peer may have under way. */
const MESSAGES_AHEAD = 4;
/** Stream records in the core for each connection: most have a request or two under way, few have many. */
const STREAMS_PER_SLOT = 4;

/** A running base station without HTTP. Created by `open`. */
export class Basestation {
  /** Accepts WebSockets that the HTTP server has upgraded. */
  readonly webSockets: WebSockets;
  readonly #host: Host;
  readonly #stun: Stun;
  readonly #relay: Relay;
  readonly #outbound: OutboundApi;
  readonly #presence: Presence;
  readonly #clients: ClientApi;
  readonly #arrivals: Router<Session>;
  readonly #admission: Admission;
  readonly #health: StorageHealth;
  readonly #tally: LogTally;
  readonly #log: Log;
  readonly #revocation: Revocation;
  readonly #clockSteps: ClockSteps;
  readonly #stopping = new AbortController();

  /**
   * @param directoryOf creates the directory of attached devices, from those attached here; by default, just these
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (host, settings of STUN)
   */
  static async open(
    environment: Environment,
    options: BasestationOptions,
    directoryOf: (here: Presence) => Directory = (here) => here,
  ): Promise<Basestation> {
    checkOptions('a base station', options, KINDS, ['identity', 'resetSecret', 'store', 'sealer', 'port']);
    checkSettings(options.settings ?? {});
    const settings = { ...defaultSettings, ...options.settings };
    checkStun(settings, options);
    const host = await Host.open(environment, hostConfig(options, settings));
    const { stunPort, stunAddress } = settings;
    const address = options.host === undefined ? {} : { host: options.host };
    // From here on sessions arrive: set their handlers before the first await.
    const stun = new Stun({ environment, mainPort: host.sockets.bound[0]!.port, ...address, stunPort, stunAddress });
    const station = new Basestation(environment, options, settings, { host, stun }, directoryOf);
    await stun.opened;
    return station;
  }

  private constructor(
    environment: Environment,
    options: BasestationOptions,
    settings: StationSettings,
    { host, stun }: { readonly host: Host; readonly stun: Stun },
    directoryOf: (here: Presence) => Directory,
  ) {
    const { store, resetSecret, sealer, outbound } = options;
    const { clock, crypto } = environment;
    const send: Host['datagrams']['send'] = (datagram, path) => host.datagrams.send(datagram, path);
    this.#log = environment.log;
    this.#tally = new LogTally(clock, environment.log);
    const tally = this.#tally;
    this.#admission = new Admission({ clock, tally, store, settings, onProved: (session) => this.webSockets.proved(session) });
    this.#health = new StorageHealth({ clock, log: environment.log, store });
    this.#host = host;
    this.webSockets = new WebSockets({ clock, tally, host, settings, isProved: (session) => this.#admission.isProved(session) });
    this.#stun = stun;
    this.#presence = new Presence();
    this.#revocation = new Revocation({ clock, log: environment.log, store, presence: this.#presence });
    this.#relay = new Relay({ clock, crypto, resetSecret, limits: settings.routes, routeIdleTimeout: settings.routeIdleTimeout, send });
    const shared = { environment, store, settings, presence: this.#presence };
    const onAdmitted = (session: Session, device: DeviceIds, credential: string): boolean => {
      if (!this.#admission.client(session, device, credential)) return false;
      if (session.router === this.#arrivals) session.router = this.#clients.router;
      return true;
    };
    this.#clients = new ClientApi({
      environment,
      store,
      settings,
      directory: directoryOf(this.#presence),
      relay: this.#relay,
      tally,
      stun: stun.servers,
      tokens: this.#tokenVerifier(environment, settings, options.issuers),
      onAdmitted,
    });
    const devices = new DeviceApi({
      ...shared,
      tally,
      stun,
      health: this.#health,
      onAttached: (device) => {
        this.#admission.proved(device.session);
        this.#revocation.attached(device);
        this.#clients.attached(device);
      },
    });
    this.#clockSteps = new ClockSteps({ clock: environment.clock, invitations: store.invitations, tally });
    const joins = new JoinApi({ environment, store, tally, health: this.#health, steps: this.#clockSteps });
    const release = ({ payload, context }: RoutedRequest<Session>): CoapReply => {
      this.#relay.release(context, decodeRouteRelease(payload));
      return { status: Status.DELETED };
    };
    this.#clients.router.on('DELETE', ClientPath.ROUTE, release).on('GET', ClientPath.ADDRESS, seenAddress);
    devices.router.on('DELETE', DevicePath.ROUTE, release).on('GET', DevicePath.ADDRESS, seenAddress);
    this.#outbound = new OutboundApi({ ...shared, sealer, ...outbound });
    this.#outbound.addTo(devices.router);
    this.#arrivals = new Router<Session>({ onError: (error) => tally.log.error('request failed', { error: String(error) }) })
      .on('POST', DevicePath.ATTACH, (request) => devices.attach(request))
      .on('POST', DevicePath.JOIN, (request) => joins.join(request))
      .on('POST', ClientPath.CONNECT, (request) => this.#clients.connect(request))
      .on('GET', ClientPath.ADDRESS, seenAddress);
    host.datagrams.intercept(this.#relay.intercept);
    host.onSession = (session) => this.#arrived(session);
  }

  /** Full hex fingerprint: what devices and clients pin. */
  get fingerprint(): string {
    return this.#host.fingerprint;
  }

  /** The UDP port. */
  get port(): number {
    return this.#host.sockets.bound[0]!.port;
  }

  /** The STUN ports, as announced to devices and clients. */
  get stunServers(): readonly StunServer[] {
    return this.#stun.servers;
  }

  /** Number of attached devices. */
  get attached(): number {
    return this.#presence.size;
  }

  /** The attached devices, with the time of their attach and the addresses of their channels. */
  get devices(): AttachedDevice[] {
    return [...this.#presence.all].map(({ productId, deviceId, since, session: { paths } }) => {
      const { address: host, port } = paths.validated;
      return { productId, deviceId, since: new Date(since).toISOString(), address: formatHostPort({ host, port }) };
    });
  }

  /** True while writes to the storage fail; everything that needs none continues. */
  get storageFailed(): boolean {
    return this.#health.failed;
  }

  stats(): Readonly<Record<string, number>> {
    return {
      attached: this.#presence.size,
      outbound: this.#outbound.size,
      unproved: this.#admission.unproved,
      stun: this.#stun.answered,
      ...this.webSockets.stats(),
      ...this.#clients.stats(),
      ...this.#relay.stats(),
      ...this.#host.stats(),
    };
  }

  /** Sends SHUTDOWN to every device and client and closes the sockets. Idempotent. */
  close(): Promise<void> {
    this.webSockets.stop();
    this.#relay.stop();
    this.#health.stop();
    this.#tally.flush();
    this.#revocation.stop();
    this.#clockSteps.stop();
    this.#outbound.stop();
    this.#stopping.abort();
    this.#stun.close();
    return this.#host.close();
  }

  #tokenVerifier({ clock, network }: Environment, settings: StationSettings, issuers: BasestationOptions['issuers']): TokenVerifier {
    const { get = nodeGet, allowPrivate = () => false, verify } = issuers ?? {};
    const { signal } = this.#stopping;
    // Each request listens to this signal; KeySets bounds their number.
    setMaxListeners(0, signal);
    const keySets = new KeySets({ clock, network, tally: this.#tally, get, allowPrivate, signal });
    const rate = settings.tokenChecksPerAddress;
    return new TokenVerifier({ clock, tally: this.#tally, keySets, rate, burst: BURST_SECONDS * rate, ...(verify && { verify }) });
  }

  #arrived(session: Session): void {
    if (!this.#admission.arrived(session)) return;
    session.router = this.#arrivals;
    session.on('cancelled', (exchange) => this.#clients.connects.cancelled(session, exchange));
    session.on('closed', (error) => this.#ended(session, error));
  }

  #ended(session: Session, error: SvcError | null): void {
    const device = this.#presence.ofSession(session);
    if (device !== null && !this.#stopping.signal.aborted)
      this.#log.info('device detached', { device: deviceName(device), reason: error?.message ?? 'the base station closed its channel' });
    this.#admission.ended(session);
    this.#presence.remove(session);
    this.#clients.connects.ended(session);
    this.#relay.closeChannel(session);
  }
}

/** Returns an idle timeout, ms, that devices with this keep-alive never reach. */
function idleTimeoutFor(keepAlive: StationSettings['keepAlive']): number {
  const { idleTimeout } = defaultParameters;
  if (keepAlive === null) return idleTimeout;
  return Math.max(idleTimeout, 2 * keepAlive.interval + keepAlive.retryInterval * keepAlive.maxRetries);
}

function hostConfig({ identity, resetSecret, port, host }: BasestationOptions, { connections, keepAlive }: StationSettings) {
  const slots = connections + Math.ceil(connections * SPARE_SHARE) + SPARE_SLOTS;
  return {
    identity,
    resetSecret,
    binds: [{ port, ...(host === undefined ? {} : { host }) }],
    responder: () => RESPONDER,
    limits: { connections: slots - SPARE_SLOTS / 2, halfOpen: HALF_OPEN, retryAbove: RETRY_ABOVE },
    core: { connections: slots, streams: STREAMS_PER_SLOT * slots, memory: memoryFor(connections), connectionWindow: 0 },
    parameters: {
      idleTimeout: idleTimeoutFor(keepAlive),
      // Requests are small and there are no byte streams, so this is the most that one peer can hold.
      initialMaxData: MESSAGES_AHEAD * MAX_MESSAGE,
      maxStreams: 0,
      maxMessages: MAX_REQUESTS,
      maxDatagram: 0,
    },
    maxRequests: MAX_REQUESTS,
  };
}

/** Returns the bytes of the core's memory: 16 MiB for bursts, and 16 KiB for each connection. */
function memoryFor(connections: number): number {
  return (16 + Math.ceil(connections / 64)) << 20;
}
