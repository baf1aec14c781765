/**
 * The setters of a device: identity, base station, ports, discovery, limits and log. `Device` inherits them. Values are
 * checked by `settings.ts`; a setter that takes effect only at start throws LocalError INVALID_STATE once start has
 * begun.
 */
import { checkCertificates, shortFingerprint } from '../protocol/identity/index.ts';
import { type DeviceLogCallback, stdOutCallback } from './log.ts';
import type { DeviceOptions } from './options.ts';
import type { DeviceParts } from './parts.ts';
import { checkRendezvous, type RendezvousMode, type RendezvousOptions } from './rendezvous-options.ts';
import * as settings from './settings.ts';

/** Units of the stream buffer that the core needs. */
const MIN_SEGMENTS = 128;

export abstract class DeviceSetup {
  readonly #parts: DeviceParts;

  /** @param parts of this device */
  constructor(parts: DeviceParts) {
    this.#parts = parts;
  }

  // Identity, base station and ports. Only before start, else LocalError INVALID_STATE.

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setProductId(id: string): void {
    this.#parts.runtime.setup().productId = settings.checkId('product id', id);
  }

  /** @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
  setDeviceId(id: string): void {
    this.#parts.runtime.setup().deviceId = settings.checkId('device id', id);
  }

  /** Sets the private key: PKCS#8 PEM, as returned by `createPrivateKey`. @throws LocalError INVALID_ARGUMENT */
  setPrivateKey(pem: string): void {
    this.#parts.runtime.setup().identity = settings.importPrivateKey(this.#parts.environment.crypto, pem);
  }

  /**
   * Returns a fresh private key as PKCS#8 PEM, without setting it. Store it, and pass it to `setPrivateKey` at every
   * start.
   */
  createPrivateKey(): string {
    return settings.createPrivateKey(this.#parts.environment.crypto);
  }

  /** @throws LocalError INVALID_ARGUMENT; STRING_TOO_LONG over 32 bytes */
  setAppName(name: string): void {
    this.#parts.runtime.setup().appName = settings.checkAppText('application name', name);
  }

  /** @throws LocalError INVALID_ARGUMENT; STRING_TOO_LONG over 32 bytes */
  setAppVersion(version: string): void {
    this.#parts.runtime.setup().appVersion = settings.checkAppText('application version', version);
  }

  /**
   * Sets the base station: `https://host[:port]` or `host[:port]`. Default port 4433.
   * @throws LocalError INVALID_ARGUMENT
   */
  setServerUrl(url: string): void {
    const { host, port } = settings.parseServerUrl(url);
    this.#parts.runtime.setup().serverHost = host;
    if (port !== undefined) this.#parts.runtime.settings.serverPort = port;
  }

  /**
   * Sets the port of the base station, used if the URL names none: for UDP, and without a fingerprint for https.
   * @throws LocalError INVALID_ARGUMENT
   */
  setServerPort(port: number): void {
    this.#parts.runtime.setup().serverPort = settings.checkPort('server port', port);
  }

  /**
   * Pins the base station's key: its full hex fingerprint. Without it, TLS authenticates the base station.
   * @throws LocalError INVALID_ARGUMENT
   */
  setServerFingerprint(fingerprint: string): void {
    this.#parts.runtime.setup().serverFingerprint = settings.checkFingerprint(fingerprint);
  }

  /**
   * Sets the roots that authenticate a base station without a pin, instead of the platform's; PEM.
   * @throws LocalError INVALID_ARGUMENT
   */
  setRootCerts(pem: string): void {
    this.#parts.runtime.setup().rootCerts = checkCertificates(pem);
  }

  /**
   * Sets the WebSocket URL used where UDP is silent; null, the default: `/svc/v1` of the base station.
   * @param verify its certificate must be valid
   * @throws LocalError INVALID_ARGUMENT
   */
  setServerWebSocketUrl(url: string | null, verify = false): void {
    Object.assign(this.#parts.runtime.setup(), settings.checkWebSocket(url, verify));
  }

  /**
   * Sets the clients with which the device searches for direct paths, and the addresses that it offers; default
   * `anyone`.
   * @throws LocalError INVALID_ARGUMENT
   */
  setRendezvous(rendezvous: RendezvousMode | RendezvousOptions): void {
    this.#parts.runtime.setup().rendezvous = checkRendezvous(rendezvous);
  }

  /**
   * Sets the profile of the keep-alive of the channel to the base station; default `balanced` (docs/paths.md).
   * @throws LocalError INVALID_ARGUMENT
   */
  setKeepAliveProfile(profile: NonNullable<DeviceOptions['keepAliveProfile']>): void {
    this.#parts.runtime.setup().keepAliveProfile = settings.checkProfile(profile);
  }

  /** Sets the UDP port for the local network, 0 = any free port; default 5592. @throws LocalError INVALID_ARGUMENT */
  setLocalPort(port: number): void {
    this.#parts.runtime.setup().localPort = settings.checkPort('local port', port);
  }

  /**
   * Sets the UDP port towards the base station, 0 = any free port; default 5593.
   * @throws LocalError INVALID_ARGUMENT
   */
  setP2pPort(port: number): void {
    this.#parts.runtime.setup().p2pPort = settings.checkPort('p2p port', port);
  }

  get productId(): string | null {
    return this.#parts.runtime.settings.productId;
  }

  get deviceId(): string | null {
    return this.#parts.runtime.settings.deviceId;
  }

  get appName(): string | null {
    return this.#parts.runtime.settings.appName;
  }

  get appVersion(): string | null {
    return this.#parts.runtime.settings.appVersion;
  }

  /** The port in use once started; before that, the one set. */
  get localPort(): number {
    return this.#parts.runtime.localPort;
  }

  /** The port in use once started; before that, the one set. */
  get p2pPort(): number {
    return this.#parts.runtime.p2pPort;
  }

  /** Full hex fingerprint of the device's key. @throws LocalError INVALID_STATE without a private key */
  get deviceFingerprint(): string {
    return this.#parts.runtime.fingerprint;
  }

  /**
   * The first 16 bytes of the fingerprint: for display only, never to distinguish devices.
   * @throws as deviceFingerprint
   */
  get deviceFingerprintHex(): string {
    return shortFingerprint(this.#parts.runtime.fingerprint);
  }

  // Discovery on the local network (PROTOCOL.md §11).

  /**
   * Announces the device by multicast DNS once started. Only before start.
   * @throws LocalError INVALID_STATE; NOT_IMPLEMENTED without multicast
   */
  enableMdns(): void {
    this.#parts.runtime.setup();
    this.#parts.runtime.announcer.enable();
  }

  /**
   * Adds a subtype that clients can search for. Only before start.
   * @throws LocalError INVALID_STATE; INVALID_ARGUMENT unless 1 to 63 characters without `.`
   */
  mdnsAddSubtype(subtype: string): void {
    this.#parts.runtime.setup();
    this.#parts.runtime.announcer.addSubtype(subtype);
  }

  /**
   * Sets a TXT item that scanning clients see; a key that differs only in case is replaced. May be called at any
   * time; announced at once.
   * @throws LocalError INVALID_ARGUMENT (keys are printable ASCII without `=`; not `productid`, `deviceid`);
   *   STRING_TOO_LONG: `key=value` over 255 bytes
   */
  mdnsAddTxtItem(key: string, value: string): void {
    this.#parts.runtime.announcer.addTxtItem(key, value);
  }

  // Limits. They can be set at any time unless stated otherwise; lowering one ends nothing that is open.

  /**
   * Limits concurrent client connections, default 64; further clients get DEVICE_INTERNAL_ERROR.
   * @throws LocalError INVALID_ARGUMENT; INVALID_STATE on a running device above 1,024 and above the limit it was
   *   started with
   */
  limitConnections(limit: number): void {
    this.#parts.runtime.limitConnections(settings.checkLimit('connections', limit));
  }

  /** Limits concurrent streams, over all connections; further ones are refused. @throws LocalError INVALID_ARGUMENT */
  limitStreams(limit: number): void {
    this.#parts.runtime.limitStreams(settings.checkLimit('streams', limit));
  }

  /**
   * Limits the stream buffer, in units of 256 bytes, at least 128, over all connections; streams wait when it is used
   * up.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitStreamSegments(limit: number): void {
    this.#parts.runtime.limitStreamSegments(settings.checkLimit('stream segments', limit, MIN_SEGMENTS));
  }

  /**
   * Limits concurrent CoAP requests, over all connections; further ones are answered 5.03.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitCoapServerRequests(limit: number): void {
    this.#parts.resources.limit = settings.checkLimit('CoAP requests', limit);
  }

  /**
   * Limits concurrent observations of CoAP resources, over all connections, default 1,024; further ones are answered
   * once.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitCoapObservations(limit: number): void {
    this.#parts.resources.observers.limit = settings.checkLimit('CoAP observations', limit);
  }

  /**
   * Limits concurrent connections to all tunnel services, TCP and UDP, default 768; further ones are refused. Each
   * takes a file descriptor.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitTunnelConnections(limit: number): void {
    this.#parts.tunnels.concurrency.capacity = settings.checkLimit('tunnel connections', limit);
  }

  /**
   * Limits those of one client, by its key; default: it gets another one while as many are free as it holds.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitTunnelConnectionsPerClient(limit: number): void {
    this.#parts.tunnels.concurrency.perClient = settings.checkLimit('tunnel connections', limit);
  }

  /**
   * Limits concurrent tunnel connections to all services of a type; further ones are refused.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitTcpTunnelConnections(type: string, limit: number): void {
    this.#parts.tunnels.tcp.limit(type, limit);
  }

  /**
   * Limits concurrent flows to all UDP services of a type; further ones are refused.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitUdpTunnelFlows(type: string, limit: number): void {
    this.#parts.tunnels.udp.services.limit(type, limit);
  }

  /**
   * Limits concurrent flows of one client's connection, default 256; further ones are refused.
   * @throws LocalError INVALID_ARGUMENT
   */
  limitUdpTunnelFlowsPerConnection(limit: number): void {
    this.#parts.tunnels.udp.limitPerClient(limit);
  }

  // Log messages. These can be called at any time.
  /**
   * Sets the least severe level logged by this device: `error`, `warn`, `info` or `trace`.
   * @throws LocalError INVALID_ARGUMENT
   */
  setLogLevel(level: string): void {
    this.#parts.log.setLevel(level);
  }

  /**
   * Sets a callback for each message, besides the environment's log; null removes it.
   * @throws LocalError INVALID_ARGUMENT
   */
  setLogCallback(callback: DeviceLogCallback | null): void {
    this.#parts.log.setCallback(callback);
  }

  /** Writes messages as lines to standard output; replaces the callback. */
  setLogStdOutCallback(): void {
    this.#parts.log.setCallback(stdOutCallback());
  }
}
