/** Figures of a connection and of its paths, in the order of `connectionStats` and `connectionPathStats` (core-as/exports). */
import type { CongestionState } from './codes.generated.ts';

/** What a connection and each of its paths tell alike. */
interface TrafficStats {
  /** Smoothed and least round-trip time, ms. */
  rtt: number;
  minimumRtt: number;
  /** Congestion window and bytes in flight. */
  congestionWindow: number;
  bytesInFlight: number;
  packetsSent: number;
  packetsReceived: number;
  bytesSent: number;
  bytesReceived: number;
  /** UDP payload of our packets, as far as probes have found out. */
  packetSize: number;
}

/** Figures of one connection since it was opened; round trip, window and packet size are those of the active path. */
export interface CoreConnectionStats extends TrafficStats {
  /** Without probes of a larger packet size. */
  packetsLost: number;
  /** Packets of the peer, or of nobody, that were dropped. */
  packetsDropped: number;
  /** Datagrams, ours and the peer's, that a full queue or a smaller packet size has cost. */
  datagramsDropped: number;
  authenticationFailures: number;
  /** One of CongestionState. */
  congestionState: CongestionState;
  /** Bytes a second at which packets leave while the window allows them. */
  pacingRate: number;
  /** BBR: bytes a second that the path is thought to carry; 0 = not known, or another controller. */
  bandwidth: number;
}

/** Figures of one path since it came up; those of the first since the connection was opened. */
export interface CorePathStats extends TrafficStats {
  /** The peer has shown that it receives there. */
  validated: boolean;
}

const TRAFFIC = [
  'rtt',
  'minimumRtt',
  'congestionWindow',
  'bytesInFlight',
  'packetsSent',
  'packetsReceived',
  'bytesSent',
  'bytesReceived',
  'packetSize',
] as const satisfies readonly (keyof TrafficStats)[];

const CONNECTION = [
  ...TRAFFIC,
  'packetsLost',
  'packetsDropped',
  'datagramsDropped',
  'authenticationFailures',
  'congestionState',
  'pacingRate',
  'bandwidth',
] as const satisfies readonly (keyof CoreConnectionStats)[];

/** The figures that `connectionPathStats` has left in the core's results. */
export function readPathStats(results: Float64Array): CorePathStats {
  return { ...named(TRAFFIC, results), validated: results[TRAFFIC.length] !== 0 };
}

/** The figures that `connectionStats` has left in the core's results. */
export function readStats(results: Float64Array): CoreConnectionStats {
  return named(CONNECTION, results) as CoreConnectionStats;
}

/** The first of the core's results, by names in their order. */
export function named<K extends string>(names: readonly K[], results: Float64Array): Record<K, number> {
  const stats = {} as Record<K, number>;
  for (const [index, name] of names.entries()) stats[name] = results[index] ?? 0;
  return stats;
}
