/** Settings of a base station; every limit has a default that suits one machine. */
import { amount, checkOptions, type Kind, nonEmptyText, options, orNull, whole } from '../../protocol/arguments.ts';
import type { RouteLimits } from '../../protocol/relay/index.ts';
import type { KeepAlive } from '../../runtime/host/index.ts';

/** Limits and times of a base station. */
export interface StationSettings {
  /**
   * UDP port of STUN; null: the one after that of the base station; 0: no STUN. If it cannot be bound, that is logged,
   * and there is no STUN.
   */
  stunPort: number | null;
  /** A second address of this host, numeric: STUN also answers there, on the port after `stunPort`. Null: none. */
  stunAddress: string | null;
  /** An upper bound given to devices when they attach: ms, ms, count. Null: they use their own numbers. */
  keepAlive: KeepAlive | null;
  /** Concurrent connections of devices and clients; a quarter of them is reserved for devices. */
  connections: number;
  /** Concurrent connections of one address (IPv4) or /64 (IPv6). */
  connectionsPerAddress: number;
  /**
   * Concurrent WebSockets, and those of one address (IPv4) or /64 (IPv6): behind a firewall that blocks UDP many have
   * one address.
   */
  webSockets: number;
  webSocketsPerAddress: number;
  /** ms that a WebSocket may be open without a session. */
  webSocketTimeout: number;
  /** SCTs of one device, 1 to 4,096; devices learn the number when they attach. */
  tokensPerDevice: number;
  /** Connects a second to one device (PROTOCOL.md §7.6), shared by all clients (`rates.ts`). */
  connectsPerDevice: number;
  /** Connects and attaches a second from one address (IPv4) or /64 (IPv6), with bursts of ten seconds' worth. */
  connectsPerAddress: number;
  attachesPerAddress: number;
  /**
   * Tokens of issuers checked a second for one address (IPv4) or /64 (IPv6), with bursts of ten seconds' worth; tokens
   * that were valid before do not count.
   */
  tokenChecksPerAddress: number;
  /** Uploads of tokens a second by one device, with bursts of ten seconds' worth: each waits for the disk. */
  uploadsPerDevice: number;
  /**
   * Pushes and service invocations a second by one device, with bursts of ten seconds' worth; concurrent ones of one
   * device (one call, while half of all are in use), and in total.
   */
  outboundRate: number;
  outboundPerDevice: number;
  outbound: number;
  /** Clients that wait for one device to attach, of one session, and in total. */
  waitersPerDevice: number;
  waitersPerSession: number;
  waiters: number;
  /**
   * Connects that wait for the directory, of one address (IPv4) or /64 (IPv6), and in total; ms that the directory may
   * take for one.
   */
  lookupsPerAddress: number;
  lookups: number;
  lookupTimeout: number;
  /** ms that a device may take to answer a connect before it counts as not attached (PROTOCOL.md §7.6). */
  answerTimeout: number;
  /** ms in which a session must show a valid credential. */
  arrivalTimeout: number;
  /** ms without a packet after which a route is forgotten; longer than the keep-alive of the ends. */
  routeIdleTimeout: number;
  routes: Partial<Omit<RouteLimits, 'idleTimeout'>>;
}

export const defaultSettings: StationSettings = {
  stunPort: null,
  stunAddress: null,
  keepAlive: null,
  connections: 10_000,
  connectionsPerAddress: 2_000,
  webSockets: 10_000,
  webSocketsPerAddress: 256,
  webSocketTimeout: 10_000,
  tokensPerDevice: 2_000,
  connectsPerDevice: 5,
  connectsPerAddress: 20,
  attachesPerAddress: 100,
  tokenChecksPerAddress: 10,
  uploadsPerDevice: 5,
  outboundRate: 5,
  outboundPerDevice: 8,
  outbound: 256,
  waitersPerDevice: 100,
  waitersPerSession: 16,
  waiters: 10_000,
  lookupsPerAddress: 1_000,
  lookups: 10_000,
  lookupTimeout: 2_000,
  answerTimeout: 4_000,
  arrivalTimeout: 5_000,
  routeIdleTimeout: 300_000,
  routes: {},
};

const KEEP_ALIVE = ['interval', 'retryInterval', 'maxRetries'] as const;
const ROUTES: Record<keyof StationSettings['routes'], Kind> = {
  routes: amount,
  routesPerChannel: amount,
  bytesPerSecond: amount,
  packetsPerSecond: amount,
  resetsPerSecond: amount,
  checksPerSecond: amount,
};
const KINDS: Record<keyof StationSettings, Kind> = {
  ...(Object.fromEntries(Object.keys(defaultSettings).map((name) => [name, amount])) as Record<keyof StationSettings, Kind>),
  stunPort: orNull(whole(0, 0xffff)),
  stunAddress: orNull(nonEmptyText),
  keepAlive: orNull(
    options('the keep-alive of a base station', { interval: amount, retryInterval: amount, maxRetries: amount }, KEEP_ALIVE),
  ),
  tokensPerDevice: whole(1, 4_096),
  routes: options('the routes of a base station', ROUTES),
};

/** @throws LocalError INVALID_ARGUMENT for an unknown setting, or a value of a wrong type */
export function checkSettings(settings: Partial<StationSettings>): void {
  checkOptions('the settings of a base station', settings, KINDS);
}
