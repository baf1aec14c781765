/** What a stream of a session needs of the connection below it, what that reports, and the figures of both. */
import type { CoreStreamStats } from '../../bindings/index.ts';

/** Figures of one stream since it was opened. */
export interface StreamStats {
  /** Bytes that the application has read and written. */
  bytesRead: number;
  bytesWritten: number;
  /**
   * Figures of the data plane: bytes sent, received and buffered, windows, and how often it had to wait; null once the
   * core has freed the stream.
   */
  transport: CoreStreamStats | null;
}

/** The carrier of streams: the connection under a session. @typeParam Stream a stream of the session */
export interface StreamCarrier<Stream> {
  /** Takes the bytes that have arrived, at most `max`: empty = none yet, null = the end. */
  takeStream(id: number, max: number): Uint8Array | null;
  readStream(id: number, target: Uint8Array): number;
  writeStream(id: number, data: Uint8Array, start: number, end: number): number;
  finishStream(id: number): void;
  resetStream(id: number, code: number): void;
  stopSending(id: number, code: number): void;
  setStreamWeight(id: number, weight: number): void;
  streamStats(id: number): CoreStreamStats | null;
  /** Wakes the driver: there may be something to send. */
  wake(): void;
  /** Both directions are over: the stream needs no further events. */
  ended(id: number, stream: Stream): void;
}

/** Events that the connection reports about a stream. */
export type StreamEvent =
  | { kind: 'accepted' }
  | { kind: 'readable' }
  | { kind: 'writable' }
  | { kind: 'finished' }
  | { kind: 'reset'; code: number }
  | { kind: 'stopped'; code: number };
