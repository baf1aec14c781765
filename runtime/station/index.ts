/** The way to a base station: one attempt, a client's short-lived channels, and a device's lasting one. */
export { Backoff, uniform } from './backoff.ts';
export {
  type AttachVerdict,
  StationChannel,
  type StationChannelConfig,
  type StationChannelEvents,
} from './channel.ts';
export { Redirect, StationConnector, type StationConnectorConfig, type StationUse } from './connector.ts';
export type { StationVerification } from './proof.ts';
export { askAddress, releaseRoute } from './requests.ts';
export { DEFAULT_SERVER_PORT, parseServerUrl, parseWebSocketUrl, type ServerAddress } from './server-url.ts';
export type { ConfiguredStation, StationAddress } from './station-address.ts';
