/** The session layer: what an application holds on either end. */
export { type Bind, type ConnectOptions, type ConnectTarget, Host, type HostConfig, type PreparedConnect } from './host.ts';
export type { IncomingStream } from './incoming-stream.ts';
export { type KeepAlive, type Observation, Session, type SessionEvents, type SessionRequest } from './session.ts';
export {
  type AttachVerdict,
  type StationAddress,
  StationChannel,
  type StationChannelConfig,
  type StationChannelEvents,
} from './station-channel.ts';
export { Redirect, StationConnector, type StationConnectorConfig } from './station-connector.ts';
export { SessionStream, type StreamStats } from './stream.ts';
