/**
 * A byte stream of a session, as an application holds it.
 *
 * A stream that we open can be used at once: early data leaves with the opening, up to the peer's initial window, and
 * `opened` reports whether the peer accepted. A refusal fails everything on the stream.
 *
 * At most one read, one write and one close are outstanding; a second one fails with OPERATION_IN_PROGRESS. The two
 * directions end independently: `close` ends ours (`stream-writing.ts`), the peer's (`stream-reading.ts`) continues to
 * its own end; an abort of the peer ends both.
 *
 * The session passes what the connection reports to `handle` and `fail`. A stream whose end is not read stays until
 * `abort` or the end of its session.
 */
import type { CoreStreamStats } from '../../bindings/index.ts';
import { check, type Payload, whole } from '../../protocol/arguments.ts';
import { LocalError, StreamCode, SvcError, streamError } from '../../protocol/errors/index.ts';
import { Deferred } from '../deferred.ts';
import { asyncDispose } from '../dispose.ts';
import type { StreamCarrier, StreamEvent, StreamOwner } from './owner.ts';
import { MAX_READ, StreamReading } from './stream-reading.ts';
import { StreamWriting, type WritingOwner } from './stream-writing.ts';

/** Largest weight of a stream. */
export const MAX_WEIGHT = 256;

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

/**
 * An open byte stream. Its methods are not async functions: those would cost three more turns of the promise queue for
 * each piece of data.
 */
export class Stream implements WritingOwner {
  /** Port the stream was opened to, 0 … 2^32 - 1. */
  readonly port: number;

  /**
   * Called when our direction ends before its end was acknowledged: the peer has stopped it, the session has ended, or
   * `abort`. For a writer that has nothing to write: no call of it would fail.
   */
  onStopped: ((error: SvcError) => void) | null = null;

  readonly owner: StreamOwner<Stream>;
  readonly #reading = new StreamReading(this);
  readonly #writing = new StreamWriting(this);
  #id: number;
  #opening: boolean;
  readonly #opened = Deferred.quiet<void>();
  /** Null: the core's default. */
  #weight: number | null = null;
  #endReported = false;

  /**
   * Streams come from `SessionStreams.open` and `IncomingStream.accept`.
   * @param id of a stream that we have accepted; -1 for one that we open, which waits for `begin`
   */
  constructor(owner: StreamOwner<Stream>, port: number, id = -1) {
    this.owner = owner;
    this.#id = id;
    this.#opening = id < 0;
    this.port = port;
    if (!this.#opening) this.#opened.resolve();
  }

  /**
   * Resolves when the peer has accepted the stream; at once for one that we accepted. Need not be awaited: errors
   * surface in every other call, too.
   * @throws STOPPED: refused, no listener, limit reached, aborted, or the session ended; FORBIDDEN
   */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Id on the wire; -1 while the peer grants no more streams and `opened` is outstanding. */
  get id(): number {
    return this.#id;
  }

  /** For its directions: we opened it, and the peer has not accepted it yet. */
  get isOpening(): boolean {
    return this.#opening;
  }

  /** True once neither direction can carry data any more. */
  get ended(): boolean {
    return this.#reading.end !== null && this.#writing.isOver;
  }

  /**
   * Reads what has arrived, waiting for at least one byte.
   * @param max most bytes to return, from 1; never more than 65,536 come at once
   * @throws OPERATION_IN_PROGRESS; END_OF_FILE after the peer's last byte; STOPPED when aborted here or there or the
   *   session ended
   */
  read(max: number = MAX_READ): Promise<Uint8Array> {
    return this.#reading.read(max);
  }

  /**
   * Reads exactly `length` bytes, or fewer when the peer's direction ends first: the call then resolves with the
   * partial data, and the next one throws END_OF_FILE. An end without a single byte throws END_OF_FILE at once. The
   * same at both ends.
   * @throws as read; OUT_OF_MEMORY where no array has that length
   */
  readAll(length: number): Promise<Uint8Array> {
    return this.#reading.readAll(length);
  }

  /**
   * Buffers all of `given`, text as UTF-8; resolves when its last byte is copied: only then may the caller reuse the
   * array.
   * @throws INVALID_ARGUMENT, also when the array was resized or transferred before that: a part of it was written;
   *   OPERATION_IN_PROGRESS while another write runs; CLOSED after close; STOPPED
   */
  write(given: Payload): Promise<void> {
    return this.#writing.write(given);
  }

  /**
   * Ends our direction; resolves when the peer has accepted the stream and acknowledged all of it. Reading continues.
   * Closing again after that is harmless.
   * @throws OPERATION_IN_PROGRESS while a write or close runs; STOPPED
   */
  close(): Promise<void> {
    return this.#writing.close();
  }

  /**
   * Ends both directions at once: unsent data is lost and outstanding calls fail with STOPPED, here and at the peer.
   * May be called at any time, and again.
   * @param code stream error code on the wire
   * @throws LocalError INVALID_ARGUMENT
   */
  abort(code: number = StreamCode.ABORTED): void {
    check('the code of an abort', code, whole(0, 0xffff_ffff));
    const error = new LocalError('STOPPED', 'the stream was aborted');
    this.#opened.reject(error);
    if (this.#opening) this.#writing.unfinish();
    this.#reading.stop(error, code);
    this.#writing.stop(error, code);
  }

  /**
   * Iterates over what arrives, until the peer's last byte. Leaving the loop earlier asks the peer to stop sending.
   * @throws as read, but for END_OF_FILE
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) yield await this.read();
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'END_OF_FILE') throw error;
    } finally {
      this.#reading.stop(new LocalError('STOPPED', 'reading was ended'), StreamCode.NO_ERROR);
    }
  }

  declare [Symbol.asyncDispose]: () => Promise<void>;
  static {
    asyncDispose(Stream, (stream) => stream.#dispose());
  }

  /**
   * The reading direction as a WHATWG byte stream; do not use `read` and `readAll` then. Cancelling it asks the peer to
   * stop sending. A reader of the mode `byob` fills the caller's buffer: bulk data then leaves no garbage.
   */
  get readable(): ReadableStream<Uint8Array> {
    return this.#reading.readable;
  }

  /**
   * The writing direction as a WHATWG stream; do not use `write` and `close` then. Aborting it resets only our
   * direction.
   */
  get writable(): WritableStream<Payload> {
    return this.#writing.writable;
  }

  /**
   * Sets this stream's share of our sending direction among byte streams with data to send, in proportion to their
   * weights. Takes effect at once.
   * @param weight 1 to 256; a stream starts with 16
   * @throws INVALID_ARGUMENT
   */
  setWeight(weight: number): void {
    check('the weight of a stream', weight, whole(1, MAX_WEIGHT));
    this.#weight = weight;
    this.#applyWeight(weight);
  }

  stats(): StreamStats {
    return {
      bytesRead: this.#reading.bytes,
      bytesWritten: this.#writing.bytes,
      transport: this.#id < 0 ? null : this.#call((streams, id) => streams.stats(id), null),
    };
  }

  /** For the session: the stream has its id, and buffered writes leave. */
  begin(id: number): void {
    this.#id = id;
    if (this.#weight !== null) this.#applyWeight(this.#weight);
    this.#writing.begin();
  }

  /**
   * For the session: handles an event of this stream. The caller sends afterwards, so nothing here wakes the driver.
   */
  handle(event: StreamEvent): void {
    if (event.kind === 'readable') {
      this.#reading.advance();
    } else if (event.kind === 'writable') {
      this.#writing.advance();
    } else if (event.kind === 'finished') {
      this.#writing.finished();
    } else if (event.kind === 'accepted') {
      this.#opening = false;
      this.#opened.resolve();
      this.#writing.settleClose();
    } else if (this.#opening) {
      this.#refused(event.code);
    } else if (event.kind === 'reset') {
      this.#reading.fail(streamError(event.code));
    } else {
      this.#writing.fail(streamError(event.code));
    }
  }

  /** For the session: it has ended. */
  fail(error: SvcError): void {
    this.#opened.reject(error);
    this.#reading.fail(error);
    this.#writing.fail(error);
  }

  /** After `close`: until that is done. Otherwise what runs over the stream was interrupted. */
  async #dispose(): Promise<void> {
    await this.#writing.closed();
    this.abort();
  }

  #refused(code: number): void {
    this.#call((streams, id) => streams.reset(id, code), undefined);
    this.#call((streams, id) => streams.stop(id, code), undefined);
    this.#opening = false;
    this.#writing.unfinish();
    this.fail(streamError(code));
  }

  #applyWeight(weight: number): void {
    if (this.#id >= 0) this.#call((streams, id) => streams.setWeight(id, weight), undefined);
  }

  #call<T>(call: (streams: StreamCarrier['streams'], id: number) => T, instead: T): T {
    return this.owner.whileOpen(() => call(this.owner.connection.streams, this.#id), instead);
  }

  directionEnded(): void {
    if (this.#endReported || !this.ended) return;
    this.#endReported = true;
    this.owner.ended(this);
  }
}
