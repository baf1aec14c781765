/**
 * Statistics of a connection and of its paths, in the order of `connectionStats` and `connectionPathStats`
 * (core-as/exports).
 */
import type { CongestionState } from './codes.generated.ts';

/** Common statistics of a connection and of each of its paths. */
interface TrafficStats {
  /** Smoothed and minimum round-trip time, ms. */
  rtt: number;
  minimumRtt: number;
  /** Congestion window and bytes in flight. */
  congestionWindow: number;
  bytesInFlight: number;
  packetsSent: number;
  packetsReceived: number;
  bytesSent: number;
  bytesReceived: number;
  /** UDP payload of our packets, as probes have established it. */
  packetSize: number;
}

/**
 * Statistics of one connection since it was opened; round trip, window and packet size are those of the active path.
 */
export interface CoreConnectionStats extends TrafficStats {
  /** Excludes probes of a larger packet size. */
  packetsLost: number;
  /** Dropped packets, from the peer or forged. */
  packetsDropped: number;
  /** Datagrams dropped: ours because of a smaller packet size, the peer's because of a full queue. */
  datagramsDropped: number;
  authenticationFailures: number;
  /** One of CongestionState. */
  congestionState: CongestionState;
  /** Bytes per second at which packets leave while the window allows them. */
  pacingRate: number;
  /** BBR: estimated capacity of the path, bytes per second; 0 = unknown, or another controller. */
  bandwidth: number;
  /** Our DATAGRAM frames in packets that were declared lost. */
  datagramsLost: number;
}

/** Statistics of one path since it was added; of the first one since the connection was opened. */
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
  'datagramsLost',
] as const satisfies readonly (keyof CoreConnectionStats)[];

/** Reads the statistics that `connectionPathStats` left in the core's results. */
export function readPathStats(results: Float64Array): CorePathStats {
  return { ...named(TRAFFIC, results), validated: results[TRAFFIC.length] !== 0 };
}

/** Reads the statistics that `connectionStats` left in the core's results. */
export function readStats(results: Float64Array): CoreConnectionStats {
  return named(CONNECTION, results) as CoreConnectionStats;
}

/** Returns the first of the core's results by their names, in order. */
export function named<K extends string>(names: readonly K[], results: Float64Array): Record<K, number> {
  const stats = {} as Record<K, number>;
  for (const [index, name] of names.entries()) stats[name] = results[index] ?? 0;
  return stats;
}
