/** The simulator, published as `svc-connect/testing`: a network in virtual time for tests of anything built on this project. */
export type { CoreOptions } from '../../bindings/index.ts';
export type { Clock, Environment, Log, LogLevel, Network, UdpSocket } from '../environment.ts';
export { SimulatedHost } from './host.ts';
export type { Link, LinkOptions, LinkStats, LinkVerdict } from './link.ts';
export { Random } from './random.ts';
export { type PacketFate, type SimulatedPacket, Simulation, type SimulationOptions, type SocketAddress } from './simulation.ts';
