/** The common exports of both entry points of the client SDK. */

export type { Environment, HostInterface, Log, LogLevel } from '../platform/environment.ts';
export type { Payload } from '../protocol/arguments.ts';
export type { Body, CborObject } from '../protocol/body.ts';
export { ContentFormat } from '../protocol/coap/index.ts';
export type { NatMapping, NatReport, SocketAddress } from '../protocol/control/index.ts';
export {
  type ErrorCode,
  errorMeaning as errorGetMessage,
  LocalError,
  NoChannelsError,
  RemoteError,
  SvcError,
} from '../protocol/errors/index.ts';
export type { KeepAliveProfile } from '../protocol/keep-alive/index.ts';
export {
  type DeviceDetails,
  type DeviceSettings,
  decodeDeviceDetails,
  decodePairing,
  decodeUser,
  encodePairingLink,
  encodePairingString,
  encodeUser,
  type IamUser,
  type PairingMode,
  type PairingString,
  type PushAnswer,
  type SettingName,
  type UserFingerprint,
  type UserPush,
  type UserRecord,
} from '../protocol/records/index.ts';
export type { NotDirect, NotDirectCode, PairReport, PathClass, StunAnswer } from '../protocol/rendezvous/index.ts';
export type { KeepAliveReport } from '../runtime/keep-alive/index.ts';
export type { PathReport, PathsReport, StationReport } from '../runtime/rendezvous/index.ts';
export { type DatagramLoss, Stream, type StreamOptions, type StreamStats } from '../runtime/session/index.ts';
export { Subscription } from '../runtime/subscription.ts';
export type { ChannelFailures } from './connect/race.ts';
export { Connection, type ConnectionType } from './connection.ts';
export type { ConnectionEvents, PathKind } from './connection-events.ts';
export * from './iam/index.ts';
export type { LogCallback, LogMessage } from './log.ts';
export { MdnsAction, type MdnsAddress, type MdnsResult, type MdnsResultReceiver, MdnsScanner } from './mdns.ts';
export type { ConnectionOptions } from './options.ts';
export { Answer, type ObserveOptions, type RequestOptions } from './requests.ts';
export { TcpTunnel } from './tunnels/tcp.ts';
export { UdpTunnel } from './tunnels/udp.ts';
export type { UdpTunnelOptions, UdpTunnelStats } from './tunnels/udp-listener.ts';
