/**
 * The simulator, published as `svc-connect/testing`: a network in virtual time for tests of programs built on this
 * project, and the session layer for talking over it. A `SimulatedHost` is the environment that a client, a device or a
 * base station takes.
 */
export type { CoreOptions } from '../bindings/index.ts';
export type {
  BoundSocket,
  Clock,
  DatagramSocket,
  Environment,
  HostInterface,
  Log,
  LogLevel,
  MessagePipe,
  Network,
  WebSocketOptions,
} from '../platform/environment.ts';
export type { SocketAddress } from '../protocol/control/index.ts';
export { type ConnectOptions, Host, type HostConfig } from '../runtime/host/index.ts';
export type { IncomingStream, Session, SessionRequest, Stream } from '../runtime/session/index.ts';
export type { CrossTrafficOptions } from './cross-traffic.ts';
export type { SimulatedDocument } from './documents.ts';
export type { Outage } from './faults.ts';
export { type HostSettings, SimulatedHost } from './host.ts';
export type { Link, LinkOptions, LinkStats, LinkVerdict } from './link.ts';
export { NatBox, type NatOptions, type NatStats, type NatVerdict } from './nat-box.ts';
export type { HostOptions, MoveOptions, PacketFate, SimulatedPacket, SimulationOptions } from './options.ts';
export type { SimulatedPipe } from './pipes.ts';
export { Random } from './random.ts';
export { Simulation } from './simulation.ts';
export type { WebSocketHandlers, WebSocketListener, WebSocketListenOptions, WebSocketRequest } from './web-socket.ts';
