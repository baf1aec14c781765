/** One party on the network: its core, its endpoint, its sockets and its sessions. */
export type { KeepAlive } from '../../bindings/index.ts';
export type { Bind, ConnectOptions, ConnectTarget, HostConfig, HostLimits, NetworkWatcher, PreparedConnect } from './config.ts';
export { Host } from './host.ts';
