/** A connection and its events (PROTOCOL.md §5). */
export { ACCEPT_TIMEOUT, type ByteStreams } from './byte-streams.ts';
export { Connection } from './connection.ts';
export type { ConnectionEvent, PathChange, PathProbe } from './events.ts';
export type { Messages } from './messages.ts';
export type { ConnectionOwner, ConnectionState, Established, StreamLimits, Verified } from './owner.ts';
export type { AddPathOptions, ConnectionPaths } from './paths.ts';
export type { Peer } from './peer.ts';
export { LONGEST_REST } from './rest.ts';
