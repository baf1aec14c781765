/** Figures of a connection, in the order of `connectionStats` (core-as/exports/connection.ts). */
import type { CongestionState } from './codes.generated.ts';

/** Figures of one connection since it was opened. */
export interface CoreConnectionStats {
  /** Smoothed and least round-trip time, ms. */
  rtt: number;
  minimumRtt: number;
  /** Congestion window and bytes in flight. */
  congestionWindow: number;
  bytesInFlight: number;
  packetsSent: number;
  packetsReceived: number;
  /** Without probes of a larger packet size. */
  packetsLost: number;
  /** Packets of the peer, or of nobody, that were dropped. */
  packetsDropped: number;
  bytesSent: number;
  bytesReceived: number;
  /** UDP payload of our packets, as far as probes have found out. */
  packetSize: number;
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
export interface CorePathStats {
  /** Smoothed and least round-trip time, ms. */
  rtt: number;
  minimumRtt: number;
  congestionWindow: number;
  bytesInFlight: number;
  packetsSent: number;
  packetsReceived: number;
  bytesSent: number;
  bytesReceived: number;
  packetSize: number;
  /** The peer has shown that it receives there. */
  proven: boolean;
}

const NAMES = [
  'rtt',
  'minimumRtt',
  'congestionWindow',
  'bytesInFlight',
  'packetsSent',
  'packetsReceived',
  'packetsLost',
  'packetsDropped',
  'bytesSent',
  'bytesReceived',
  'packetSize',
  'datagramsDropped',
  'authenticationFailures',
  'congestionState',
  'pacingRate',
  'bandwidth',
] as const satisfies readonly (keyof CoreConnectionStats)[];

/** The figures that `connectionPathStats` has left in the core's results. */
export function readPathStats(results: Float64Array): CorePathStats {
  const value = (index: number) => results[index] ?? 0;
  return {
    rtt: value(0),
    minimumRtt: value(1),
    congestionWindow: value(2),
    bytesInFlight: value(3),
    packetsSent: value(4),
    packetsReceived: value(5),
    bytesSent: value(6),
    bytesReceived: value(7),
    packetSize: value(8),
    proven: value(9) !== 0,
  };
}

/** The figures that `connectionStats` has left in the core's results. */
export function readStats(results: Float64Array): CoreConnectionStats {
  const stats = {} as Record<(typeof NAMES)[number], number>;
  for (const [index, name] of NAMES.entries()) stats[name] = results[index] ?? 0;
  return stats as CoreConnectionStats;
}
