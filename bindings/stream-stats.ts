/** Figures of streams, in the order of core-as/streams/stats.ts. */
import { named } from './stats.ts';

/** Figures of one byte stream since it was opened. Bytes are those of the stream, without headers. */
export interface CoreStreamStats {
  /** Bytes sent, each counted once, and how many of them are acknowledged. */
  sent: number;
  acknowledged: number;
  /** Bytes sent again because they were lost, or seemed to be. */
  repeated: number;
  /** Bytes written and not acknowledged: what the stream holds of the core's memory for sending. */
  buffered: number;
  /** Bytes that the peer's window of this stream still lets us send. */
  sendCredit: number;
  /** How often there was something to send and the peer's window of this stream was used up. */
  blocked: number;
  /** Bytes that arrived, and how many of them wait to be read (those behind a gap not counted). */
  received: number;
  unread: number;
  /** Our receive window. */
  receiveWindow: number;
  /** Weight of our direction. */
  weight: number;
}

/** Figures of all streams and messages of a connection together. */
export interface CoreStreamTotals {
  /** Bytes sent, each counted once (a message as soon as it starts); how many of them are acknowledged, or were given up. */
  streamBytesSent: number;
  streamBytesAcknowledged: number;
  /** Bytes sent again. */
  streamBytesRepeated: number;
  /** Bytes of byte streams that were written and are not acknowledged. */
  streamBytesBuffered: number;
  /** Bytes that the peer's window of the connection still lets us send. */
  sendCredit: number;
  /** Bytes that arrived, and how many of them wait to be read or for a gap to close. */
  streamBytesReceived: number;
  streamBytesUnread: number;
  /** Our receive window of the connection. */
  receiveWindow: number;
  /** Streams and messages, of either end, that are not over. */
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

/** The figures that `streamStats` has left in the core's results. */
export function readStreamStats(results: Float64Array): CoreStreamStats {
  return named(STREAM, results);
}

/** The figures that `connectionStreamStats` has left there. */
export function readStreamTotals(results: Float64Array): CoreStreamTotals {
  return named(TOTALS, results);
}
