/**
 * The interface between a connection and its endpoint: the callbacks of the connection, the result of the handshake,
 * and the states of a connection.
 */
import type { ConnectionIds, CoreConnection } from '../../bindings/index.ts';
import type { Path } from '../path.ts';

/** State of a connection; it never goes back. */
export type ConnectionState = 'handshaking' | 'open' | 'closing' | 'closed';
/**
 * Why the peer's key is trusted: it was known in advance, or a password exchange ran over this connection; or `none`.
 */
export type Verified = 'pinned' | 'password' | 'none';

/** Callbacks of a connection to its endpoint; each connection has its own owner. */
export interface ConnectionOwner {
  /** The application called: there may be packets, and the next timeout may have changed. */
  touched(): void;
  /** There are events that neither a packet nor a timeout announced. */
  eventful(): void;
  /** The core is done with the connection: its ids and memory can be freed. */
  drained(): void;
  /** The connection has added or removed a path; not called for the first. */
  pathAdded(path: Path): void;
  pathRemoved(path: Path): void;
  /** Connection ids were added or removed: the peer should get as many as there is room for. */
  idsChanged(ids: ConnectionIds, core: CoreConnection): void;
}

/** State and limits that the streams of all connections of an endpoint share. */
export interface StreamLimits {
  /** Byte streams that the peers hold open now. */
  open: number;
  /** The most that they may hold open; read at each new stream. */
  readonly max: () => number;
  /** Receive window of a stream once it is accepted, bytes. */
  readonly window: number;
}

/** The result of the handshake. */
export interface Established {
  readonly core: CoreConnection;
  readonly path: Path;
  readonly fingerprint: string;
  readonly verified: Verified;
  readonly handshakeHash: Uint8Array;
  readonly info: Readonly<Record<string, unknown>>;
  /** ms without a packet after which the first of the two ends forgets the connection; 0: never. */
  readonly idleTimeout: number;
  /** Parts of one datagram that the peer puts together (PROTOCOL.md §12); 0: it takes whole ones only. */
  readonly flowParts: number;
  readonly streams: StreamLimits;
  readonly acceptStreams: boolean;
  /**
   * Initiator: the peer may refuse, so the connection opens when the peer acknowledges it; it ends when that has not
   * happened at this time, ms. Default: it is open at once.
   */
  readonly confirmBy?: number;
}
