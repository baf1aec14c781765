/** Between a connection and its endpoint: what the one asks for, what the other has found out, and where a connection is in its life. */
import type { ConnectionIds, CoreConnection } from '../../bindings/index.ts';
import type { Path } from '../path.ts';
import type { StreamLimits } from './byte-streams.ts';

/** Where a connection is in its life; it never goes back. */
export type ConnectionState = 'handshaking' | 'open' | 'closing' | 'closed';
/** How the other end's key is trusted: it was known beforehand, a password exchange ran over this connection, or not at all. */
export type Verified = 'pinned' | 'password' | 'none';

/** What a connection asks of its endpoint, which gives each connection an owner of its own. */
export interface ConnectionOwner {
  /** The application called: there may be packets, and the next timeout may have changed. */
  touched(): void;
  /** There are events that no packet and no timeout announced. */
  eventful(): void;
  /** The core has nothing more to do for it: ids and memory can be given back. */
  drained(): void;
  /** The connection uses one more path, or one less; not called for the first. */
  pathAdded(path: Path): void;
  pathRemoved(path: Path): void;
  /** Connection ids came or went: the peer is to get as many as there is room for. */
  idsChanged(ids: ConnectionIds, core: CoreConnection): void;
}

/** What the handshake has shown. */
export interface Established {
  readonly core: CoreConnection;
  readonly path: Path;
  readonly remoteKey: Uint8Array;
  readonly remoteFingerprint: string;
  readonly verified: Verified;
  readonly handshakeHash: Uint8Array;
  readonly info: Readonly<Record<string, unknown>>;
  /** ms without a packet after which the first of both ends forgets the connection; 0: never. */
  readonly idleTimeout: number;
  readonly streams: StreamLimits;
  readonly acceptStreams: boolean;
}
