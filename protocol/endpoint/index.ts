/** The endpoint: handshakes, demultiplexing and the lifecycle of connections (PROTOCOL.md §2, §3). */
export type { PacketBatch } from './batch.ts';
export type { ConnectOptions, EndpointConfig, EndpointLimits, KeptConnections, PrepareOptions, RouteOptions } from './config.ts';
export { Endpoint } from './endpoint.ts';
export type { EndpointEvent } from './registry.ts';
export type { EndpointStats } from './stats.ts';
