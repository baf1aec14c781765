/** Options of a simulation and its hosts, and a test's view of datagrams. */

import type { LogLevel } from '../platform/environment.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import type { HostSettings } from './host.ts';
import type { LinkOptions, LinkVerdict } from './link.ts';
import type { NatBox, NatVerdict } from './nat-box.ts';

/** Seed, links and platform features of the simulation. */
export interface SimulationOptions {
  /** The same seed gives the same run. Default 1. */
  seed?: number | string;
  /** For every link that {@link Simulation.link} did not set. */
  link?: LinkOptions;
  /** Unix ms at virtual time 0. Default 2026-01-01. */
  wallTime?: number;
  /**
   * Awaited before time advances, such as `() => new Promise(setImmediate)`: lets real IO proceed. It costs
   * reproducibility.
   */
  hop?: () => Promise<void>;
  /**
   * Cryptography of each host over its seeded randomness, for a faster implementation of the same: `nativeCrypto` in
   * Node. Default: noble's, which runs everywhere.
   */
  crypto?: (randomBytes: (length: number) => Uint8Array) => CryptoProvider;
  /** Receives the log of every host. */
  log?: (host: string, level: LogLevel, message: string, fields?: Record<string, unknown>) => void;
}

/** Position of a host and its configuration. */
export interface HostOptions extends HostSettings {
  /** Each `address/bits`, IPv4 or IPv6, unique in its realm. Default one of each, in a network of its own. */
  readonly addresses?: readonly string[];
  /** The NAT box in front of it. Default none: it is in the core. */
  readonly behind?: NatBox;
  /** Routers between it and the other hosts and boxes of its realm. Default 0. */
  readonly hops?: number;
}

/** New position of a running host. */
export interface MoveOptions {
  /** Each `address/bits`; none: its link is down. */
  readonly addresses: readonly string[];
  /** Kinds of its interfaces, in the order of its addresses. Default `default`. */
  readonly kinds?: HostSettings['kinds'];
  /** The NAT box in front of it from now on, null for the core. Default: it stays in its realm. */
  readonly behind?: NatBox | null;
  /** Routers between it and the other members of its realm. Default as before. */
  readonly hops?: number;
}

/** An outgoing datagram of a host and its surroundings, as it crosses the link. */
export interface SimulatedPacket {
  /** Virtual ms. */
  readonly time: number;
  /**
   * Names of hosts. `to` is undefined when no host has the address. For a datagram to a NAT box without a mapping for
   * it, it is the first host behind the box, or the box if there is none.
   */
  readonly from: string;
  readonly to: string | undefined;
  /** After the NAT boxes of the sender, and before those of the receiver. */
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
  /** As the sender set it. */
  readonly hopLimit: number;
  readonly data: Uint8Array;
}

/** Fate of a datagram, or of one of its arrivals. */
export type PacketFate = LinkVerdict | NatVerdict | 'intercepted' | 'unreachable' | 'delivered';
