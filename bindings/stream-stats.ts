/** Statistics of streams, in the order of core-as/streams/stats.ts. */
import { named } from './stats.ts';

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
