/** `svc-connect/device`: the device SDK. */
export { type CoapMethod, ContentFormat } from '../protocol/coap/index.ts';
export { type ErrorCode, errorMeaning as errorGetMessage, LocalError, RemoteError, SvcError } from '../protocol/errors/index.ts';
export type { Environment, Log } from '../transport/environment.ts';
export { type NodeEnvironmentOptions, nodeEnvironment } from '../transport/node/index.ts';
export type { SessionStream } from '../transport/session/index.ts';
export type { AuthorizationListener, AuthorizationRequest } from './authorization.ts';
export type { CoapResource } from './coap-observers.ts';
export type { CoapHandler, CoapResourceOptions, DeviceCoapRequest, DeviceCoapResponse } from './coap-resources.ts';
export type { ConnectionEvent, ConnectionListener, ConnectionRef, DeviceConnection } from './connections.ts';
export { Device, type DeviceEventListener, type DeviceOptions } from './device.ts';
export type { DeviceEvent } from './events.ts';
export * from './iam/index.ts';
export { type DeviceLogCallback, type DeviceLogLevel, type DeviceLogMessage, LogSeverity, logSeverityAsString } from './log.ts';
export type { PasswordAuthenticationListener, PasswordAuthenticationRequest } from './password/requests.ts';
export type { PushNotification } from './push.ts';
export type { ServiceInvocation } from './service-invocation.ts';
export type { DeviceStream, StreamHandler, StreamListener } from './streams.ts';
export type { TcpTunnelService } from './tunnels.ts';
