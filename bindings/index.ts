/** Public surface of the bindings: the only code that touches the linear memory of the core. */
export type { Aead } from './aead.ts';
export { CongestionState, EventKind, PathReason, Status, TransportError } from './codes.generated.ts';
export { CoreConnection } from './connection.ts';
export type { CoreMessages } from './connection-messages.ts';
export { type ConnectionIds, type CorePaths, UNKNOWN_PATH, UNKNOWN_PORT } from './connection-paths.ts';
export type { CoreStreams } from './connection-streams.ts';
export { Core, type CoreStats } from './core.ts';
export { LocalError, RemoteError, SvcError } from './error.ts';
export type { Hash } from './hash.ts';
export {
  type CongestionControl,
  type CoreConnectionOptions,
  type CoreOptions,
  type DataParameters,
  type KeepAlive,
  MESSAGE_LIMIT,
  type PathOptions,
  type WasmSource,
} from './options.ts';
export type { CoreConnectionStats, CorePathStats, CoreStreamStats, CoreStreamTotals } from './stats.ts';
