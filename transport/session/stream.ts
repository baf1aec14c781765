/**
 * A byte stream of a session, as an application holds it.
 *
 * Semantics: at most one read, one write and one close are outstanding; a second one fails with OPERATION_IN_PROGRESS.
 * `write` resolves when the data is buffered; `close` ends our direction only and resolves when everything is acknowledged.
 */

/** Figures of one stream since it was opened. */
export interface StreamStats {
  bytesRead: number;
  bytesWritten: number;
}

export class SessionStream {
  /** Stream id on the wire. */
  get id(): number {
    throw new Error('not there yet');
  }
  /** Port the stream was opened to, 0 … 2^32 - 1. */
  get port(): number {
    throw new Error('not there yet');
  }
  /**
   * Reads what has arrived, waiting for at least one byte.
   * @param max most bytes to return, 1 … 65,536 (default 65,536)
   * @throws LocalError OPERATION_IN_PROGRESS, STOPPED (aborted here or by the peer, connection lost); END_OF_FILE after the peer's last byte
   */
  readSome(max?: number): Promise<Uint8Array> {
    void max;
    throw new Error('not there yet');
  }
  /**
   * Reads exactly `length` bytes, or fewer when the peer's direction ends before: then the call resolves with what there was and
   * the next one throws END_OF_FILE. An end without a single byte is END_OF_FILE at once.
   * @throws as readSome
   */
  readAll(length: number): Promise<Uint8Array> {
    void length;
    throw new Error('not there yet');
  }
  /**
   * Buffers all of `data`; resolves when the last byte is copied, so the caller may reuse the array then (not before).
   * @throws LocalError CLOSED after close; OPERATION_IN_PROGRESS while another write runs; STOPPED
   */
  write(data: Uint8Array): Promise<void> {
    void data;
    throw new Error('not there yet');
  }
  /**
   * Ends our direction; resolves when the peer has acknowledged all of it. Reading goes on.
   * @throws LocalError OPERATION_IN_PROGRESS while a write or close runs; CLOSED when closed before; STOPPED
   */
  close(): Promise<void> {
    throw new Error('not there yet');
  }
  /** Ends both directions at once; unsent data is lost and what is outstanding fails with STOPPED. May be called at any time, again too. */
  abort(code?: number): void {
    void code;
    throw new Error('not there yet');
  }
  /** True once the stream cannot carry anything any more in either direction. */
  get ended(): boolean {
    throw new Error('not there yet');
  }
  /** The reading direction as a WHATWG stream (made at first use; then leave readSome and readAll alone). Cancel = abort. */
  get readable(): ReadableStream<Uint8Array> {
    throw new Error('not there yet');
  }
  /** The writing direction as a WHATWG stream (made at first use; then leave write and close alone). Its close is `close`, its abort `abort`. */
  get writable(): WritableStream<Uint8Array> {
    throw new Error('not there yet');
  }
  stats(): StreamStats {
    throw new Error('not there yet');
  }
}
