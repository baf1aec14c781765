/**
 * What a host gives to the products: clock, crypto, network, a core and a log.
 *
 * `transport/node` implements it over Node, `transport/sim` over a virtual network. Everything above (driver, sessions, device,
 * client, base station) asks these interfaces and nothing else, so it runs unchanged in both. An environment is cheap and holds no global
 * state: a base station, two devices and a client live in one process, each with its own.
 *
 * Here are types, the log that says nothing, and the exchange of a log for another.
 */
import type { Core, CoreOptions } from '../bindings/index.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import type { SvcError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { MdnsNetwork } from './mdns.ts';

/** Everything a product needs from where it runs. */
export interface Environment {
  readonly clock: Clock;
  readonly crypto: CryptoProvider;
  readonly network: Network;
  readonly log: Log;
  /** Multicast DNS, where the host has it: a browser has not. */
  readonly mdns?: MdnsNetwork;
  /** By https, where the host has it: without it a base station is proved by its fingerprint alone. */
  readonly getHttps?: HttpsGet;
  /** Keeps the process alive until the result is called, which may be called again. Absent where there is no process to end (a browser, the simulator). */
  readonly keepProcess?: () => () => void;
  /** A core of its own for each host: a core that failed is replaced without touching another product in the same process. */
  createCore(options: CoreOptions): Promise<Core>;
}

/** Takes a scheduled call back. Harmless when it has already run. */
export type Cancel = () => void;

/** Time and timers. */
export interface Clock {
  /** Monotonic milliseconds with fraction, from an arbitrary start: the `now` of every verb of the engine. */
  now(): number;
  /** Unix time in milliseconds: for tokens, certificates and records, never for timers. */
  wallTime(): number;
  /**
   * Calls `run` once, `delay` milliseconds from now: on a busy host later, and up to 1 ms early where the host counts whole milliseconds, so who
   * needs the instant looks at `now`. A delay that is not positive counts as 0, Infinity never runs. A pending call keeps no process alive; open
   * sockets do.
   */
  schedule(delay: number, run: () => void): Cancel;
  /**
   * Calls `run` after the current batch of IO events: what has arrived by now is delivered first. In Node a `setImmediate`; in the simulator
   * the same instant of virtual time, after all deliveries of that instant.
   */
  defer(run: () => void): void;
  /**
   * Calls `run` when the code that runs now is through, with all the promises it settled, before any further IO: what an application does in
   * answer to an event is known then. In the simulator the same as {@link defer}.
   */
  soon(run: () => void): void;
}

/** Which socket to open. */
export interface BindOptions {
  /** 0 to 65535; 0 lets the system choose one port, the same number for IPv4 and IPv6. */
  port: number;
  /** Numeric address to listen on; IPv4 and IPv6 wildcard when left out. */
  host?: string;
  /** The device's local socket: only paths of such a socket can be {@link Path.local}. Default false. */
  local?: boolean;
  /**
   * Datagrams come and go by the batch where the host can: up to 160 then arrive before anything else runs that they ask for. Default false: as
   * they come from the host, in Node up to 32.
   */
  bulk?: boolean;
  /**
   * One datagram. The bytes are the callee's until it returns, who may change them: then the next datagram takes their place. What is needed
   * longer has to be copied. Must not throw.
   */
  receive: (datagram: Uint8Array, path: Path) => void;
  /** The system had no way for a datagram to this address, or to its network. Not called for each. Must not throw. */
  unreachable?: (address: string) => void;
}

/** To whom a socket is to be connected. */
export interface ConnectOptions {
  /** Numeric. */
  address: string;
  port: number;
  /** One datagram of the peer; nobody else is heard. The bytes belong to the callee, who may change and keep them. Must not throw. */
  receive: (datagram: Uint8Array) => void;
  /** The network says that the peer cannot be reached or does not listen (ICMP, RFC 1122 §4.1.3.3). At most once; the socket is closed then. */
  failed: (error: Error) => void;
}

/** What to fetch by https. */
export interface HttpsRequest {
  /** `https://host[:port]/path`. */
  readonly url: string;
  /** PEM: the only roots that count; default those of the platform. */
  readonly rootCerts?: string;
  /** ms for all of it. */
  readonly timeout: number;
  /** Most bytes of a body. */
  readonly limit: number;
  readonly signal?: AbortSignal;
  /** Caches on the way must ask the host (RFC 9111 §5.2.1.4). Default false. */
  readonly fresh?: boolean;
}

export interface HttpsAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/**
 * One GET whose server has proved the host of its URL by TLS 1.2 or later. Redirects are not followed.
 * @throws RemoteError DNS; CONNECTION_REFUSED; TIMEOUT; CERTIFICATE_VALIDATION_FAILED, with the host and what is wrong; BAD_RESPONSE for a status other than
 * 200, a body over the limit, and what is no HTTP over TLS; LocalError STOPPED when the signal fires, INVALID_ARGUMENT for roots or a proxy that cannot be used
 */
export type HttpsGet = (request: HttpsRequest) => Promise<HttpsAnswer>;

/** A UDP socket with one peer. */
export interface ConnectedSocket {
  /** Sends. The bytes may not be changed afterwards. @returns false when it was dropped: closed, or too much is waiting to leave. Never throws. */
  send(datagram: Uint8Array): boolean;
  /** As {@link DatagramSocket.unref}. */
  unref?(): void;
  /** Frees the port. May be called again. */
  close(): void;
}

/** Which WebSocket to open. */
export interface WebSocketOptions {
  /** `wss://` or `ws://`, host, port and path. */
  readonly url: string;
  /** The only subprotocol that is offered, and has to be chosen. */
  readonly protocol: string;
  /** A certificate of `wss` must be valid for the host. Default false: the handshake inside proves the peer (PROTOCOL.md §2). */
  readonly verifyCertificate?: boolean;
  /** PEM: the only roots that count where the certificate must be valid; default those of the platform. */
  readonly rootCerts?: string;
  /** ms for all of it: resolver, proxy, TLS and upgrade. */
  readonly timeout: number;
  readonly signal?: AbortSignal;
  /** One binary message. The bytes belong to the callee. Must not throw. */
  readonly receive: (message: Uint8Array) => void;
  /** It has ended, once, whoever ended it. Not called when opening fails, nor after `close`. */
  readonly closed: (error: SvcError) => void;
}

/** An open WebSocket: whole binary messages in order, over TCP. */
export interface MessagePipe {
  /** Number of its socket within the environment, as {@link DatagramSocket.index}. */
  readonly index: number;
  /** Numeric address and port of the TCP peer, which may be a proxy; empty and 0 where the host does not tell (a browser). */
  readonly address: string;
  readonly port: number;
  /** `host:port` of the HTTP proxy that it goes through, without credentials; null for none. */
  readonly proxy: string | null;
  /**
   * Sends one binary message, whose bytes may not be changed before `sent` is called: once per message, in order, never before `send` has returned, when the
   * message has left this process, or never will. Never throws.
   */
  send(message: Uint8Array, sent: () => void): void;
  /** As {@link DatagramSocket.unref}. */
  unref?(): void;
  /** Closes with a status code (RFC 6455 §7.4; default 1000), without waiting for the peer. May be called again. */
  close(code?: number): void;
}

/** UDP and name resolution. */
export interface Network {
  /** Largest packet, bytes of UDP payload, that hosts on this network send and take unless they are told otherwise. Default 1,452. */
  readonly maxPacketSize?: number;
  /**
   * Opens a UDP socket. @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (port out of range, `host` not numeric or not an
   * address of this host), each with one line that says what to do.
   */
  bind(options: BindOptions): Promise<BoundSocket>;
  /** Opens a UDP socket on a port of the system's choice for one peer. @throws LocalError UNKNOWN when the system gives none, or has no way there */
  connect(options: ConnectOptions): Promise<ConnectedSocket>;
  /**
   * The numeric addresses of a host name, in the resolver's order of preference and without duplicates; a numeric address gives itself.
   * @throws RemoteError DNS when the name has none or the resolver does not answer.
   */
  resolve(host: string): Promise<string[]>;
  /**
   * Opens a WebSocket, through an HTTP proxy where the environment says so. Absent where the host has none.
   * @throws RemoteError DNS; CONNECTION_REFUSED; TIMEOUT; CERTIFICATE_VALIDATION_FAILED; BAD_RESPONSE for a server or a proxy that answers anything but the
   * upgrade, with its status; LocalError STOPPED when the signal fires, INVALID_ARGUMENT for a URL, roots or a proxy that cannot be used
   */
  openWebSocket?(options: WebSocketOptions): Promise<MessagePipe>;
  /** The number of a socket that is opened elsewhere, as {@link DatagramSocket.index}. Absent where the host lets no one else open any. */
  nextIndex?(): number;
  /** The interfaces that are up, those with a default route first, virtual ones last. Absent where the host does not tell (a browser). */
  interfaces?(): readonly HostInterface[];
  /** The address that datagrams to a numeric address leave from now; null where there is no way. Absent where the host does not tell. Never rejects. */
  sourceAddress?(destination: string): Promise<string | null>;
  /** Addresses of the routers of default routes, IPv4 and IPv6 (link-local with zone). Absent where the host does not tell. */
  gateways?(): readonly string[];
}

/** An interface of this host with its addresses. */
export interface HostInterface {
  readonly name: string;
  /** `address/bits` each, neither loopback nor link-local. */
  readonly addresses: readonly string[];
  /** `default`: a default route leads over it; `other`; `virtual`: a container bridge or a VPN. */
  readonly kind: 'default' | 'other' | 'virtual';
}

/**
 * An open socket for datagrams, whatever kind of path they take: UDP, a WebSocket (`transport/websocket/`), or later a WebRTC data channel.
 * All that a driver needs; where the datagrams that arrive go was said when it was opened (as {@link BindOptions.receive}).
 */
export interface DatagramSocket {
  /** Number of this socket within its environment: {@link Path.socket} of its paths. Never used twice. */
  readonly index: number;
  /** Bytes of datagrams that may wait to be read, as the system granted them; absent or 0 where it does not tell. */
  readonly receiveBuffer?: number;
  /**
   * Packets that it takes now without growing a queue; at 0 it says so until a good part of what it holds has left. Read before packets are
   * made and whenever one was released. Absent where the number of packets with it is bound enough (UDP).
   */
  readonly room?: number;
  /**
   * Sends `length` bytes of `buffer` from `offset` to the peer of `path`, whose kind may also be `route`: it then goes to the channel's address.
   * The bytes stay untouched by the caller until `released(offset)`, called exactly once per send, in the order of the sends, never
   * before `send` has returned, and also when sending failed or the socket was closed: a datagram is promised nothing more. Never throws.
   */
  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void;
  /**
   * Sends one datagram with a hop limit of its own (IPv4 TTL, IPv6 hop limit; 1 to 255); all others leave with the system's. The bytes may not be changed
   * afterwards. Dropped when the socket is closed or too many wait. Never throws. Absent where paths have no hops (a WebSocket).
   */
  sendWithHopLimit?(datagram: Uint8Array, path: Path, hopLimit: number): void;
  /** From now on it keeps no process alive: it receives while something else does. Absent where there is no process to end. */
  unref?(): void;
  /** Stops receiving: nothing is delivered once it has returned. What was sent before is released as always. May be called again. */
  close(): void;
}

/** A socket bound to a port, whose peers have addresses: what {@link Network.bind} opens. */
export interface BoundSocket extends DatagramSocket {
  /** The bound port, never 0. */
  readonly port: number;
  /**
   * The path to a peer, interned: as long as the path is referenced, the same address and port give the same object.
   * @throws LocalError INVALID_ARGUMENT when `address` is not numeric or `port` is outside 1 to 65535.
   */
  path(address: string, port: number): Path;
}

/** Importance of a message, the greatest first. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** One line each. `fields` are printed as `name=value`; keys, passwords and tokens never appear in either. */
export type Log = { readonly [level in LogLevel]: (message: string, fields?: Record<string, unknown>) => void };

/** Log that discards everything: the default of every product. */
export const silentLog: Log = { error: discard, warn: discard, info: discard, debug: discard, trace: discard };

function discard(): void {}

/** The same environment with another log. */
export function withLog(environment: Environment, log: Log): Environment {
  const { clock, crypto, network, mdns, getHttps, keepProcess } = environment;
  const optional = {
    ...(mdns !== undefined && { mdns }),
    ...(getHttps !== undefined && { getHttps }),
    ...(keepProcess !== undefined && { keepProcess }),
  };
  return { clock, crypto, network, log, ...optional, createCore: (options) => environment.createCore(options) };
}
