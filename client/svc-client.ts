/**
 * The client SDK's root: creates private keys and connections, and owns what its connections share: one UDP socket, one
 * core, and the channels to base stations. These are opened when the first connection needs them and closed with the
 * client. The sockets for discovery are open while there is a listener, or a connection searches for its device. Shared
 * sockets without a connection keep no process alive (`process-hold.ts`).
 */

import { anEnvironment, type Environment, withLog } from '../platform/environment.ts';
import { checkOptions, flag, type Kind, texts, whole } from '../protocol/arguments.ts';
import type { PrivateKey } from '../protocol/crypto-provider.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { decodePrivateKey, encodePrivateKey, fingerprint } from '../protocol/identity/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import { BlockedNetworks } from '../protocol/station-dial/index.ts';
import { MdnsBrowser } from '../runtime/discovery/index.ts';
import { Host } from '../runtime/host/index.ts';
import type { LocalEndOptions } from '../runtime/rendezvous/index.ts';
import { Roaming } from '../runtime/roaming/index.ts';
import { type ConfiguredStation, StationConnector } from '../runtime/station/index.ts';
import { Connection, type ConnectionContext } from './connection.ts';
import { DirectPaths } from './direct-paths.ts';
import { ClientLog, type LogCallback } from './log.ts';
import { MdnsListeners, type MdnsResultReceiver, MdnsScanner } from './mdns.ts';
import type { ConnectionOptions } from './options.ts';
import type { ClientPlatform } from './platform.ts';
import { ProcessHold, withoutSocketHold } from './process-hold.ts';

/** Options of a client. */
export interface ClientOptions {
  /**
   * Connections that may be open or connecting at a time, 1 to 16,384; default 1,024. Their memory is reserved once,
   * with the first connection, and costs nothing until it is used.
   */
  readonly maxConnections?: number;
  /** Names of interfaces whose addresses are not sent to devices in the search for a direct path. */
  readonly noCandidatesOn?: readonly string[];
  /** Asks routers by PCP and NAT-PMP to map a port once a connection found no direct path. Default true. */
  readonly mapsPort?: boolean;
}

export const DEFAULT_CONNECTIONS = 1_024;
export const MAX_CONNECTIONS = 16_384;
/**
 * Slots of the core above that: channels to base stations, and closed connections that wait for the peer's last
 * packets.
 */
const SPARE_SLOTS = 64;
const SPARE_SHARE = 1 / 4;

const KINDS: Record<keyof ClientOptions, Kind> = { maxConnections: whole(1, MAX_CONNECTIONS), noCandidatesOn: texts, mapsPort: flag };

/** Checks what `create` of an entry point is given. @throws LocalError INVALID_ARGUMENT */
export function checkClientOptions(options: ClientOptions & { readonly environment?: Environment }): void {
  checkOptions('a client', options, { ...KINDS, environment: anEnvironment });
}

/** The client SDK; the entry points of Node and browser add `create`. */
export class SvcClient {
  readonly #platform: ClientPlatform;
  readonly #maxConnections: number;
  readonly #localEnd: LocalEndOptions;
  readonly #log: ClientLog;
  readonly #connections = new Set<Connection>();
  /** Shared by all connections. */
  readonly #context: ConnectionContext;
  /** Connections that are open or connecting. */
  readonly #taken = new Set<Connection>();
  readonly #connectors = new Map<string, StationConnector>();
  readonly #blocked = new BlockedNetworks();
  readonly #hold: ProcessHold;
  readonly #browser: MdnsBrowser;
  readonly #mdnsListeners: MdnsListeners;
  #lastKey: { readonly pem: string; readonly key: PrivateKey } | null = null;
  #host: Promise<Host> | null = null;
  /** Set once the host is open. */
  #directPaths: DirectPaths | null = null;
  #roaming: Roaming | null = null;
  #stopped = false;

  /** Use `create` of the entry point. @throws LocalError INVALID_ARGUMENT */
  constructor(
    platform: ClientPlatform,
    { maxConnections = DEFAULT_CONNECTIONS, noCandidatesOn = [], mapsPort = true }: ClientOptions = {},
  ) {
    checkOptions('a client', { maxConnections, noCandidatesOn, mapsPort }, KINDS);
    this.#maxConnections = maxConnections;
    this.#localEnd = { excluded: noCandidatesOn, mapsPort };
    this.#log = new ClientLog(platform.environment.log);
    this.#platform = { ...platform, environment: withoutSocketHold(withLog(platform.environment, this.#log.log)) };
    this.#hold = new ProcessHold(platform.environment);
    this.#browser = new MdnsBrowser(this.#platform.environment);
    this.#mdnsListeners = new MdnsListeners(this.#browser);
    this.#context = this.#contextOfConnections();
  }

  /** Version of this SDK. */
  version(): string {
    return VERSION;
  }

  /**
   * Sets the least severe level logged: error, warn, info (default), debug or trace.
   * @throws LocalError INVALID_ARGUMENT
   */
  setLogLevel(level: string): void {
    this.#log.setLevel(level);
  }

  /**
   * Calls `callback` with each message of the level or a more severe one; null removes it.
   * @throws LocalError INVALID_ARGUMENT
   */
  setLogCallback(callback: LogCallback | null): void {
    this.#log.setCallback(callback);
  }

  /** Returns a fresh private key as PKCS#8 PEM. Store it: it is this client's identity towards devices. */
  createPrivateKey(): string {
    const { crypto } = this.#platform.environment;
    const key = crypto.generateKey();
    const raw = key.export();
    try {
      return encodePrivateKey(raw);
    } finally {
      raw.fill(0);
      key.wipe();
    }
  }

  /**
   * Creates a connection to one device.
   * @param options as for `Connection.updateOptions`; default none yet
   * @throws LocalError STOPPED after stop; INVALID_ARGUMENT as `updateOptions`
   */
  createConnection(options: ConnectionOptions | string = {}): Connection {
    if (this.#stopped) throw stopped();
    const connection = new Connection(this.#context);
    connection.updateOptions(options);
    this.#connections.add(connection);
    return connection;
  }

  /**
   * Reports the devices on the local network to the listener: known ones as ADD, then each change, until it is removed.
   * Each listener has its own stream of results.
   * @param subtype null or '' for all devices. A listener may be added for several subtypes.
   * @throws LocalError NOT_IMPLEMENTED where there is no multicast DNS (a browser); INVALID_ARGUMENT for an invalid
   *   subtype; STOPPED after stop
   */
  addMdnsResultListener(listener: MdnsResultReceiver, subtype: string | null = null): void {
    this.#mdnsListeners.add(listener, subtype);
  }

  /** Removes a listener. Does nothing for one that was not added. */
  removeMdnsResultListener(listener: MdnsResultReceiver): void {
    this.#mdnsListeners.remove(listener);
  }

  /**
   * Creates a scanner for the devices on the local network, not started yet.
   * @param subtype as for `addMdnsResultListener`
   * @throws as `addMdnsResultListener`
   */
  createMdnsScanner(subtype: string | null = null): MdnsScanner {
    this.#browser.check(subtype);
    return new MdnsScanner(this.#browser, subtype);
  }

  /**
   * Closes every connection, the channels to base stations and the sockets, and ends discovery. Safe to call again.
   * When a program ends without it, base stations notice only by timeout.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    const stopping = {};
    this.#hold.add(stopping);
    try {
      await this.#stop();
    } finally {
      this.#hold.remove(stopping);
    }
  }

  async #stop(): Promise<void> {
    await Promise.all([this.#browser.close(), ...[...this.#connections].map((connection) => connection.close())]);
    const host = await this.#host?.catch(() => null);
    await host?.leave();
    for (const connector of this.#connectors.values()) void connector.close();
    this.#roaming?.close();
    const unmapped = this.#directPaths?.close();
    // Closing the host also ends the pending work of the connectors.
    await Promise.all([host?.close(), unmapped]);
  }

  #contextOfConnections(): ConnectionContext {
    const { environment, listenTunnel, hasUdpPorts = false } = this.#platform;
    return {
      environment,
      listenTunnel,
      hasUdpPorts,
      browser: this.#browser,
      host: () => this.#openHost(),
      connector: (station) => this.#connector(station),
      directPaths: () => this.#directPaths!,
      importKey: (pem) => this.#importKey(pem),
      fingerprintOf: (key) => fingerprint(key.publicKey, environment.crypto),
      onConnecting: (each) => this.#take(each),
      onClosed: (ended) => {
        this.#taken.delete(ended);
        this.#connections.delete(ended);
        this.#hold.remove(ended);
      },
    };
  }

  #take(connection: Connection): void {
    if (this.#taken.size >= this.#maxConnections) {
      const limit = this.#maxConnections;
      throw new LocalError(
        'OUT_OF_MEMORY',
        `this client is at its limit of ${limit} connections: close some, or create it with a larger maxConnections`,
      );
    }
    this.#taken.add(connection);
    this.#hold.add(connection);
  }

  #openHost(): Promise<Host> {
    if (this.#stopped) return Promise.reject(stopped());
    if (this.#host === null) {
      const { environment } = this.#platform;
      const slots = this.#maxConnections + Math.ceil(this.#maxConnections * SPARE_SHARE) + SPARE_SLOTS;
      const opening = Host.open(environment, {
        identity: environment.crypto.generateKey(),
        binds: [{ port: 0 }],
        limits: { connections: slots },
        core: { connections: slots },
      });
      opening.then(
        (host) => {
          this.#directPaths = new DirectPaths(environment, host, this.#localEnd);
          this.#roaming = new Roaming({
            host,
            takesFreshSocket: true,
            onEvent: (event) => this.#directPaths?.networkEvent(event),
          });
        },
        () => {
          if (this.#host === opening) this.#host = null;
        },
      );
      this.#host = opening;
    }
    return this.#host;
  }

  async #connector(station: ConfiguredStation): Promise<StationConnector> {
    const host = await this.#openHost();
    const { host: name, port, fingerprint, rootCerts, webSocket } = station;
    const key = JSON.stringify([name, port, fingerprint, rootCerts, webSocket?.url, webSocket?.verifyCertificate]);
    const known = this.#connectors.get(key);
    if (known !== undefined) return known;
    const connector = new StationConnector({ host, station, blocked: this.#blocked });
    this.#connectors.set(key, connector);
    return connector;
  }

  /** Imports a key, once for connections in a row that have the same. */
  #importKey(pem: string): PrivateKey {
    if (this.#lastKey?.pem === pem) return this.#lastKey.key;
    const raw = decodePrivateKey(pem);
    try {
      const key = this.#platform.environment.crypto.importKey(raw);
      this.#lastKey = { pem, key };
      return key;
    } finally {
      raw.fill(0);
    }
  }
}

function stopped(): LocalError {
  return new LocalError('STOPPED', 'the client is stopped');
}
