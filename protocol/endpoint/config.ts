/** What an endpoint is given. */
import type { CongestionControl, Core, DataParameters, KeepAlive } from '../../bindings/index.ts';
import type { CryptoProvider, PrivateKey } from '../crypto-provider.ts';
import type { Path } from '../path.ts';

/** Read at each use: an owner may change the numbers while the endpoint runs. */
export interface EndpointLimits {
  /** Handshakes begun by others that are not complete. */
  halfOpen: number;
  /** Half-open handshakes above which a Retry is asked for first. */
  retryAbove: number;
  /** Connections accepted at a time; one more is closed with BUSY. Raise it no further than `capacity`. */
  connections: number;
  /** Part of `connections` that only peers with certain keys may take. Default none. */
  kept?: KeptConnections;
  /** Byte streams that peers hold open, over all connections; one more is refused with STREAM_LIMIT. Default, and at most: what the core has room for. */
  streams?: number;
}

/** Connections for certain keys, and how the others share the rest. */
export interface KeptConnections {
  readonly connections: number;
  /** Whose a key is, by its full fingerprint; null for a key that none is kept for. Asked at each new connection. */
  readonly holderOf: (fingerprint: string) => string | null;
  /** Connections that other keys may hold straight from one IPv4 address or IPv6 /64. What a base station relays does not count. */
  readonly perNetwork: number;
}

/** Everything an endpoint is made with. */
export interface EndpointConfig {
  readonly core: Core;
  readonly crypto: CryptoProvider;
  /** Key of this endpoint: as responder always, as initiator unless `connect` is given another. */
  readonly identity: PrivateKey;
  /** Responder names accepted on a path, e.g. ['station'] or ['device:p.d', 'device']. Without it nothing is accepted. */
  readonly responder?: (path: Path) => readonly string[];
  /** What the responder says of itself in message 2, e.g. {ProductId, DeviceId}. Nothing secret: whoever knows the name can read it. */
  readonly info?: Readonly<Record<string, unknown>>;
  readonly parameters: DataParameters;
  /** Client and device, never the station. */
  readonly keepAlive?: KeepAlive;
  /** Accepted connections may open byte streams to us (a device). Dialed ones never may. Default false. */
  readonly acceptStreams?: boolean;
  /** Receive window a byte stream starts with after its acceptance, bytes; it grows by itself. Default 64 KiB. */
  readonly streamWindow?: number;
  /** Congestion control of our sending. Default: the core's. */
  readonly congestion?: CongestionControl;
  readonly limits: EndpointLimits;
  /** Accepted connections that ids are made for. Default: the limit at the start. */
  readonly capacity?: number;
  /** 32 random bytes kept beside the identity key, never shared with another node. */
  readonly resetSecret: Uint8Array;
}

/** Whom to reach, and what to prove and to expect. */
export interface PrepareOptions {
  /** Responder name: `station`, `device:<productId>.<deviceId>` or `device`. */
  readonly name: string;
  /** Key to prove instead of the endpoint's, e.g. a throw-away one towards a station. */
  readonly identity?: PrivateKey;
  /** Full fingerprint the other end must prove. */
  readonly pin?: string;
  /** Text fields that message 2 must have in its `info`, e.g. {ProductId, DeviceId}. */
  readonly expect?: Readonly<Record<string, string>>;
  /**
   * Connection ids are supplied ahead in both directions, so that the path can be changed without a round trip on the old one (PROTOCOL.md §2).
   * Costs each end 1 KiB. Default false.
   */
  readonly migration?: boolean;
  /** When to give up: a time on the clock of `now`, ms. */
  readonly deadline: number;
}

/** The same, and the way there. */
export interface ConnectOptions extends PrepareOptions {
  readonly path: Path;
  /** ms until the Initiate is first repeated: 250 on a LAN, else 500, the default. Doubles each time. */
  readonly firstTimeout?: 250 | 500;
  /** Route only: token with which the station may end the route. 16 bytes. */
  readonly routeResetToken?: Uint8Array;
}

/** What comes with a route besides its path. */
export interface RouteOptions {
  /** Token with which the station may end the route that the path is. 16 bytes. */
  readonly routeResetToken?: Uint8Array;
}
