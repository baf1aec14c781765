/**
 * The services that a host provides to the products: clock, crypto, network, a core and a log.
 *
 * `platform/node` implements it over Node, `testing` over a virtual network. Everything above (driver, sessions,
 * device, client, base station) uses only these interfaces, so it runs unchanged in both. An environment is cheap and
 * holds no global state: a base station, two devices and a client live in one process, each with its own.
 *
 * This file has the types, the silent log, and a function that replaces the log.
 */
import type { Core, CoreOptions } from '../bindings/index.ts';
import { type Kind, withMethods } from '../protocol/arguments.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import type { SvcError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { HostInterface } from '../protocol/roaming/index.ts';
import type { MdnsNetwork } from './mdns.ts';

export type { HostInterface };

/** Everything a product needs from its platform. */
export interface Environment {
  readonly clock: Clock;
  readonly crypto: CryptoProvider;
  readonly network: Network;
  readonly log: Log;
  /** Multicast DNS, where the host has it: a browser has none. */
  readonly mdns?: MdnsNetwork;
  /** HTTPS, where the host has it: without it a base station is authenticated only by its fingerprint. */
  readonly getHttps?: HttpsGet;
  /**
   * Keeps the process alive until the returned function is called, which may be called again. Absent where there is no
   * process to end (a browser, the simulator).
   */
  readonly keepProcess?: () => () => void;
  /**
   * Creates a core for one host: a core that failed is replaced without affecting another product in the same process.
   */
  createCore(options: CoreOptions): Promise<Core>;
}

/** For options: an `Environment`. */
export const anEnvironment: Kind = [withMethods('createCore')[0], 'an Environment, as nodeEnvironment() returns'];

/** For options: a `Log`. */
export const aLog: Kind = [withMethods('error', 'warn', 'info', 'debug', 'trace')[0], 'a Log'];

/** Cancels a scheduled call. Harmless after it has run. */
export type Cancel = () => void;

/** Time and timers. */
export interface Clock {
  /** Monotonic milliseconds with fraction, from an arbitrary start: the `now` of every method of the engine. */
  now(): number;
  /** Unix time in milliseconds: for tokens, certificates and records, never for timers. */
  wallTime(): number;
  /**
   * Calls `run` once, `delay` ms from now: later on a busy host, and up to 1 ms early where the host counts whole
   * milliseconds, so code that needs the exact time checks `now`. A delay that is not positive counts as 0; Infinity
   * never runs. A pending call does not keep the process alive; open sockets do.
   */
  schedule(delay: number, run: () => void): Cancel;
  /**
   * Calls `run` after the current batch of IO events, so that datagrams that have already arrived are delivered first.
   * In Node a `setImmediate`; in the simulator the same instant of virtual time, after all its deliveries.
   */
  defer(run: () => void): void;
  /**
   * Calls `run` after the current code and all promises it settled have run, before any further IO: by then the
   * application has responded to an event. In the simulator the same as {@link defer}.
   */
  soon(run: () => void): void;
}

/** Options of a UDP socket to open. */
export interface BindOptions {
  /** 0 to 65535; with 0 the system chooses a port, the same number for IPv4 and IPv6. */
  port: number;
  /** Numeric address to listen on; IPv4 and IPv6 wildcard when left out. */
  host?: string;
  /** Marks the device's local socket: only its paths can be {@link Path.local}. Default false. */
  local?: boolean;
  /**
   * Sends and receives datagrams in batches where the host can: up to 160 arrive before any code that they cause runs.
   * Default false: as the host delivers them, in Node up to 32.
   */
  bulk?: boolean;
  /**
   * Receives one datagram. The callee may change the bytes until it returns; then the next datagram takes their place.
   * Copy bytes that are needed longer. Must not throw.
   */
  receive: (datagram: Uint8Array, path: Path) => void;
  /**
   * Reports that the system had no way to send a datagram to this address, or to its network. Not called for each
   * datagram. Must not throw.
   */
  unreachable?: (address: string) => void;
}

/** The peer of a connected socket. */
export interface ConnectOptions {
  /** Numeric. */
  address: string;
  port: number;
  /**
   * Receives one datagram of the peer; others are ignored. The callee owns the bytes and may change and keep them. Must
   * not throw.
   */
  receive: (datagram: Uint8Array) => void;
  /**
   * Reports that the peer cannot be reached or does not listen (ICMP, RFC 1122 §4.1.3.3). At most once; the socket is
   * then closed.
   */
  failed: (error: Error) => void;
}

/** An HTTPS request: one GET. */
export interface HttpsRequest {
  /** `https://host[:port]/path`. */
  readonly url: string;
  /** PEM: the only trusted roots; default those of the platform. */
  readonly rootCerts?: string;
  /** ms for the whole request. */
  readonly timeout: number;
  /** Largest body, bytes. */
  readonly limit: number;
  readonly signal?: AbortSignal;
  /** Caches on the way must revalidate with the host (RFC 9111 §5.2.1.4). Default false. */
  readonly fresh?: boolean;
}

export interface HttpsAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/**
 * One GET whose server has proved the host of its URL by TLS 1.2 or later. Redirects are not followed.
 * @throws RemoteError DNS; CONNECTION_REFUSED; TIMEOUT; CERTIFICATE_VALIDATION_FAILED, with the host and what is wrong;
 *   BAD_RESPONSE for a status other than 200, a body over the limit, and anything but HTTP over TLS; LocalError STOPPED
 *   when the signal fires, INVALID_ARGUMENT for unusable roots or proxy
 */
export type HttpsGet = (request: HttpsRequest) => Promise<HttpsAnswer>;

/** A UDP socket with one peer. */
export interface ConnectedSocket {
  /**
   * Sends. The caller must not change the bytes afterwards.
   * @returns false when it was dropped: closed, or too much is waiting to leave. Never throws.
   */
  send(datagram: Uint8Array): boolean;
  /** As {@link DatagramSocket.unref}. */
  unref?(): void;
  /** Frees the port. May be called again. */
  close(): void;
}

/** Options of a WebSocket to open. */
export interface WebSocketOptions {
  /** `wss://` or `ws://`, with host, port and path. */
  readonly url: string;
  /** The only subprotocol offered; the server must choose it. */
  readonly protocol: string;
  /**
   * A certificate of `wss` must be valid for the host. Default false: the handshake inside proves the peer (PROTOCOL.md
   * §2.6).
   */
  readonly verifyCertificate?: boolean;
  /** PEM: the only trusted roots where the certificate must be valid; default those of the platform. */
  readonly rootCerts?: string;
  /** ms for everything: resolver, proxy, TLS and upgrade. */
  readonly timeout: number;
  readonly signal?: AbortSignal;
  /** Receives one binary message. The callee owns the bytes. Must not throw. */
  readonly receive: (message: Uint8Array) => void;
  /** Called once when the WebSocket has ended, at either end. Not called when opening fails, nor after `close`. */
  readonly closed: (error: SvcError) => void;
}

/** An open WebSocket: whole binary messages in order, over TCP. */
export interface MessagePipe {
  /** Number of its socket within the environment, as {@link DatagramSocket.index}. */
  readonly index: number;
  /**
   * Numeric address and port of the TCP peer, which may be a proxy; empty and 0 where the host does not report them (a
   * browser).
   */
  readonly address: string;
  readonly port: number;
  /** `host:port` of the HTTP proxy in use, without credentials; null for none. */
  readonly proxy: string | null;
  /**
   * Sends one binary message. The caller must not change its bytes before `sent` is called: once per message, in order,
   * never before `send` has returned, when the message has left this process or never will. Never throws.
   */
  send(message: Uint8Array, sent: () => void): void;
  /** As {@link DatagramSocket.unref}. */
  unref?(): void;
  /** Closes with a status code (RFC 6455 §7.4; default 1000), without waiting for the peer. May be called again. */
  close(code?: number): void;
}

/** UDP and name resolution. */
export interface Network {
  /** Largest packet, bytes of UDP payload, that hosts on this network send and accept by default. Default 1,452. */
  readonly maxPacketSize?: number;
  /**
   * Opens a UDP socket.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (port out of range, `host` not numeric or not an
   *   address of this host), each with one line that says what to do.
   */
  bind(options: BindOptions): Promise<BoundSocket>;
  /**
   * Opens a UDP socket for one peer, on a port that the system chooses.
   * @throws LocalError UNKNOWN when the system has no socket, or no route to the peer
   */
  connect(options: ConnectOptions): Promise<ConnectedSocket>;
  /**
   * Returns the numeric addresses of a host name, in the resolver's order of preference and without duplicates; a
   * numeric address resolves to itself.
   * @throws RemoteError DNS when the name has none or the resolver does not answer.
   */
  resolve(host: string): Promise<string[]>;
  /**
   * Opens a WebSocket, through an HTTP proxy where the environment says so. Absent where the host has none.
   * @throws RemoteError DNS; CONNECTION_REFUSED; TIMEOUT; CERTIFICATE_VALIDATION_FAILED; BAD_RESPONSE when a server or
   *   proxy answers anything but the upgrade, with its status; LocalError STOPPED when the signal fires,
   *   INVALID_ARGUMENT for an unusable URL, roots or proxy
   */
  openWebSocket?(options: WebSocketOptions): Promise<MessagePipe>;
  /**
   * Returns the number of a socket that is opened elsewhere, as {@link DatagramSocket.index}. Absent where only the
   * host opens sockets.
   */
  nextIndex?(): number;
  /**
   * Returns the interfaces that are up: first those with a default route, virtual ones last. Absent where the host does
   * not report them (a browser).
   */
  interfaces?(): readonly HostInterface[];
  /**
   * Returns the source address of datagrams to a numeric address now; null where there is no route. Absent where the
   * host does not report it. Never rejects.
   */
  sourceAddress?(destination: string): Promise<string | null>;
  /**
   * Returns addresses of the routers of default routes, IPv4 and IPv6 (link-local with zone). Absent where the host
   * does not report them.
   */
  gateways?(): readonly string[];
}

/**
 * An open socket for datagrams, whatever kind of path they take: UDP, a WebSocket (`runtime/websocket/`), or later a
 * WebRTC data channel. It provides everything that a driver needs; the receiver of arriving datagrams was set when it
 * was opened (as {@link BindOptions.receive}).
 */
export interface DatagramSocket {
  /** Number of this socket within its environment: {@link Path.socket} of its paths. Never reused. */
  readonly index: number;
  /** Receive buffer, bytes, as the system granted it; absent or 0 where it does not report it. */
  readonly receiveBuffer?: number;
  /**
   * Packets that the socket takes now without growing a queue; once 0, it stays 0 until a good part of the queue has
   * left. Read before packets are made and whenever one was released. Absent where a limit on queued packets is enough
   * (UDP).
   */
  readonly room?: number;
  /**
   * Sends `length` bytes of `buffer` from `offset` to the peer of `path`. A path of kind `route` leads to the channel's
   * address. The caller leaves the bytes untouched until `released(offset)`, which is called exactly once per send, in
   * the order of the sends, never before `send` has returned, and also when sending failed or the socket was closed:
   * delivery is not promised. Never throws.
   */
  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void;
  /**
   * Sends one datagram with its own hop limit (IPv4 TTL, IPv6 hop limit; 1 to 255); all others leave with the system's.
   * The caller must not change the bytes afterwards. Dropped when the socket is closed or too many datagrams wait.
   * Never throws. Absent where paths have no hops (a WebSocket).
   */
  sendWithHopLimit?(datagram: Uint8Array, path: Path, hopLimit: number): void;
  /**
   * Lets the process end while the socket is open; it receives while something else keeps the process alive. Absent
   * where there is no process to end.
   */
  unref?(): void;
  /**
   * Stops receiving: nothing is delivered after it returns. Earlier sends are released as always. May be called again.
   */
  close(): void;
}

/** A socket bound to a port, whose peers have addresses: the result of {@link Network.bind}. */
export interface BoundSocket extends DatagramSocket {
  /** The bound port, never 0. */
  readonly port: number;
  /**
   * Returns the path to a peer, interned: as long as the path is referenced, the same address and port return the same
   * object.
   * @throws LocalError INVALID_ARGUMENT when `address` is not numeric or `port` is outside 1 to 65535.
   */
  path(address: string, port: number): Path;
}

/** Severities of a message, the most severe first. */
export const logLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Writes one line each. `fields` are printed as `name=value`; keys, passwords and tokens never appear in either. */
export type Log = { readonly [level in LogLevel]: (message: string, fields?: Record<string, unknown>) => void };

/** A log that discards everything: the default of every product. */
export const silentLog: Log = { error: discard, warn: discard, info: discard, debug: discard, trace: discard };

function discard(): void {}

/** Returns a log that passes each message on with its level. */
export function logOf(write: (level: LogLevel, ...message: Parameters<Log[LogLevel]>) => void): Log {
  const entries = logLevels.map((level) => [level, (...message: Parameters<Log[LogLevel]>) => write(level, ...message)]);
  return Object.fromEntries(entries) as Log;
}

/** Returns the same environment with another log. */
export function withLog(environment: Environment, log: Log): Environment {
  const { clock, crypto, network, mdns, getHttps, keepProcess } = environment;
  const optional = {
    ...(mdns !== undefined && { mdns }),
    ...(getHttps !== undefined && { getHttps }),
    ...(keepProcess !== undefined && { keepProcess }),
  };
  return { clock, crypto, network, log, ...optional, createCore: (options) => environment.createCore(options) };
}
