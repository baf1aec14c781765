/** The session layer: what an application holds on either end. */
export type { KeepAlive } from '../../bindings/index.ts';
export { type DatagramCounts, type DatagramFlow, noDatagrams } from './datagram-flows.ts';
export { Host } from './host.ts';
export type { Bind, ConnectOptions, ConnectTarget, HostConfig, HostLimits, PreparedConnect } from './host-config.ts';
export type { IncomingStream } from './incoming-stream.ts';
export { Session, type SessionEvents } from './session.ts';
export type { Observation, SessionRequest } from './session-requests.ts';
export {
  type AttachContext,
  type AttachVerdict,
  StationChannel,
  type StationChannelConfig,
  type StationChannelEvents,
} from './station-channel.ts';
export { Redirect, StationConnector, type StationConnectorConfig, type StationUse } from './station-connector.ts';
export type { StationAddress } from './station-dial.ts';
export { SessionStream, type StreamStats } from './stream.ts';
