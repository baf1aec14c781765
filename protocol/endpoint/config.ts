/** The configuration of an endpoint. */
import type { CongestionControl, Core, DataParameters, KeepAlive } from '../../bindings/index.ts';
import type { CryptoProvider, PrivateKey } from '../crypto-provider.ts';
import type { Path } from '../path.ts';

/** Limits, read at each use: an owner may change them while the endpoint runs. */
export interface EndpointLimits {
  /** Incomplete handshakes begun by peers. */
  halfOpen: number;
  /** Number of half-open handshakes above which a Retry comes first. */
  retryAbove: number;
  /** Connections accepted at one time; one more is closed with BUSY. Do not raise it above `capacity`. */
  connections: number;
  /** Part of `connections` that only peers with certain keys may take. Default none. */
  kept?: KeptConnections;
  /**
   * Byte streams that peers hold open, over all connections; one more is refused with STREAM_LIMIT. Default and
   * maximum: what the core has room for.
   */
  streams?: number;
}

/** Connections kept for certain keys, and how other keys share the rest. */
export interface KeptConnections {
  readonly connections: number;
  /**
   * Returns the holder of a key, given by its full fingerprint; null for a key without kept connections. Called for
   * each new connection.
   */
  readonly holderOf: (fingerprint: string) => string | null;
  /**
   * Connections that other keys may hold directly from one IPv4 address or IPv6 /64. Those relayed by a base station do
   * not count.
   */
  readonly perNetwork: number;
}

/** The parts and options of an endpoint. */
export interface EndpointConfig {
  readonly core: Core;
  readonly crypto: CryptoProvider;
  /** Key of this endpoint: always as responder, as initiator unless `connect` is given another. */
  readonly identity: PrivateKey;
  /**
   * Responder names accepted on a path, e.g. ['station'] or ['device:p.d', 'device']. Without it nothing is accepted.
   */
  readonly responder?: (path: Path) => readonly string[];
  /**
   * The responder's own description in message 2, e.g. {ProductId, DeviceId}. Not secret: any peer that knows the name
   * can read it.
   */
  readonly info?: Readonly<Record<string, unknown>>;
  readonly parameters: DataParameters;
  /** Client and device, never the station. */
  readonly keepAlive?: KeepAlive;
  /** Accepted connections may open byte streams to us (a device). Dialed ones never may. Default false. */
  readonly acceptStreams?: boolean;
  /** Receive window of a byte stream after its acceptance, bytes; it grows by itself. Default 64 KiB. */
  readonly streamWindow?: number;
  /** Congestion control for our sending. Default: the core's. */
  readonly congestion?: CongestionControl;
  readonly limits: EndpointLimits;
  /** Accepted connections to allocate ids for. Default: the limit at the start. */
  readonly capacity?: number;
  /** 32 random bytes stored beside the identity key, never shared with another node. */
  readonly resetSecret: Uint8Array;
  /** Called when the application has called a connection: there may be packets, and an earlier timeout. */
  readonly touched?: () => void;
}

/** The responder to reach, the key to prove, and the properties to expect. */
export interface PrepareOptions {
  /** Responder name: `station`, `device:<productId>.<deviceId>` or `device`. */
  readonly name: string;
  /** Key to prove instead of the endpoint's, e.g. a temporary one towards a station. */
  readonly identity?: PrivateKey;
  /** Full fingerprint that the peer must prove. */
  readonly pin?: string;
  /** Text fields that the `info` of message 2 must have, e.g. {ProductId, DeviceId}. */
  readonly expect?: Readonly<Record<string, string>>;
  /**
   * Supplies connection ids ahead in both directions, so that the path can change without a round trip on the old one
   * (PROTOCOL.md §2). Costs each end 1 KiB. Default false.
   */
  readonly migration?: boolean;
  /** Time at which the attempt ends, ms on the clock of `now`. */
  readonly deadline: number;
}

/** As {@link PrepareOptions}, with the path. */
export interface ConnectOptions extends PrepareOptions {
  readonly path: Path;
  /** ms until the Initiate is first repeated: 250 on a LAN, else 500, the default. Doubles each time. */
  readonly firstTimeout?: 250 | 500;
  /** Route only: token with which the station may end the route. 16 bytes. */
  readonly routeResetToken?: Uint8Array;
}

/** Properties of a route besides its path. */
export interface RouteOptions {
  /** Token with which the station may end the route of the path. 16 bytes. */
  readonly routeResetToken?: Uint8Array;
}
