/**
 * Statistics of a connection, of its paths and of its streams, in the order of `connectionStats` and
 * `connectionPathStats` (core-as/exports) and of core-as/streams/stats.ts.
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
function named<K extends string>(names: readonly K[], results: Float64Array): Record<K, number> {
  const stats = {} as Record<K, number>;
  for (const [index, name] of names.entries()) stats[name] = results[index] ?? 0;
  return stats;
}

/** Statistics of one byte stream since it was opened. Bytes are those of the stream, without headers. */
export interface CoreStreamStats {
  /** Bytes sent, each counted once, and how many of them are acknowledged. */
  sent: number;
  acknowledged: number;
  /** Bytes retransmitted because they were lost, or seemed to be. */
  repeated: number;
  /** Bytes written and not acknowledged: the stream's share of the core's send buffers. */
  buffered: number;
  /** Bytes that the peer's window of this stream still allows us to send. */
  sendCredit: number;
  /** How often there was something to send while the peer's window of this stream was used up. */
  blocked: number;
  /** Bytes that arrived, and how many of them wait to be read (excluding those behind a gap). */
  received: number;
  unread: number;
  /** Our receive window. */
  receiveWindow: number;
  /** Weight of our direction. */
  weight: number;
}

/** Statistics of all streams and messages of a connection together. */
export interface CoreStreamTotals {
  /**
   * Bytes sent, each counted once (a message as soon as it starts); how many of them are acknowledged, or were given
   * up.
   */
  streamBytesSent: number;
  streamBytesAcknowledged: number;
  /** Bytes retransmitted. */
  streamBytesRepeated: number;
  /** Bytes written to byte streams and not acknowledged. */
  streamBytesBuffered: number;
  /** Bytes that the peer's window of the connection still allows us to send. */
  sendCredit: number;
  /** Bytes that arrived, and how many of them wait to be read or for a gap to close. */
  streamBytesReceived: number;
  streamBytesUnread: number;
  /** Our receive window of the connection. */
  receiveWindow: number;
  /** Streams and messages, of either end, that have not ended. */
  streams: number;
  messages: number;
}

const STREAM = [
  'sent',
  'acknowledged',
  'repeated',
  'buffered',
  'sendCredit',
  'blocked',
  'received',
  'unread',
  'receiveWindow',
  'weight',
] as const satisfies readonly (keyof CoreStreamStats)[];

const TOTALS = [
  'streamBytesSent',
  'streamBytesAcknowledged',
  'streamBytesRepeated',
  'streamBytesBuffered',
  'sendCredit',
  'streamBytesReceived',
  'streamBytesUnread',
  'receiveWindow',
  'streams',
  'messages',
] as const satisfies readonly (keyof CoreStreamTotals)[];

/** Reads the statistics that `streamStats` left in the core's results. */
export function readStreamStats(results: Float64Array): CoreStreamStats {
  return named(STREAM, results);
}

/** Reads the statistics that `connectionStreamStats` left there. */
export function readStreamTotals(results: Float64Array): CoreStreamTotals {
  return named(TOTALS, results);
}
