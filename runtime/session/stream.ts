/**
 * A byte stream of a session, as an application holds it.
 *
 * A stream that we open can be used at once: early data leaves with the opening, up to the peer's initial window, and
 * `opened` reports whether the peer accepted. A refusal fails everything on the stream.
 *
 * At most one read, one write and one close are outstanding; a second one fails with OPERATION_IN_PROGRESS. The two
 * directions end independently: `close` ends ours, the peer's (`stream-reading.ts`) continues to its own end; an abort
 * of the peer ends both.
 *
 * The session passes what the connection reports to `handle` and `fail`. A stream whose end is not read stays until
 * `abort` or the end of its session.
 */
import type { CoreStreamStats } from '../../bindings/index.ts';
import { bytesOf, check, type Payload, whole } from '../../protocol/arguments.ts';
import { LocalError, StreamCode, type SvcError, streamError } from '../../protocol/errors/index.ts';
import { Deferred } from '../deferred.ts';
import { type StreamCarrier, type StreamEvent, type StreamOwner, unlessOver } from './owner.ts';
import { MAX_READ, type ReadingOwner, StreamReading } from './stream-reading.ts';

const DONE = Promise.resolve();
/** Largest weight of a stream. */
const MAX_WEIGHT = 256;

interface Write {
  readonly data: Uint8Array;
  readonly length: number;
  taken: number;
  readonly result: Deferred<void>;
}

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
export class SessionStream implements ReadingOwner {
  /** Port the stream was opened to, 0 … 2^32 - 1. */
  readonly port: number;

  /**
   * Called when our direction ends before its end was acknowledged: the peer has stopped it, the session has ended, or
   * `abort`. For a writer that has nothing to write: no call of it would fail.
   */
  onStopped: ((error: SvcError) => void) | null = null;

  readonly owner: StreamOwner<SessionStream>;
  readonly #reading = new StreamReading(this);
  #id: number;
  #opening: boolean;
  readonly #opened = Deferred.quiet<void>();
  /** Null: the core's default. */
  #weight: number | null = null;
  #write: Write | null = null;
  #close: Deferred<void> | null = null;
  /** Why writing has ended; null while it has not, and after a proper close. */
  #writeEnd: SvcError | null = null;
  #finishing = false;
  #finished = false;
  #endReported = false;
  #writable: WritableStream<Uint8Array> | null = null;
  #bytesWritten = 0;

  /**
   * Streams come from `SessionStreams.open`, `SessionStreams.start` and `IncomingStream.accept`.
   * @param id of a stream that we have accepted; -1 for one that we open, which waits for `begin`
   */
  constructor(owner: StreamOwner<SessionStream>, port: number, id = -1) {
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

  /** For its reading direction: we opened it, and the peer has not accepted it yet. */
  get isOpening(): boolean {
    return this.#opening;
  }

  /** True once neither direction can carry data any more. */
  get ended(): boolean {
    return this.#reading.end !== null && (this.#finished || this.#writeEnd !== null);
  }

  /**
   * Reads what has arrived, waiting for at least one byte.
   * @param max most bytes to return, from 1; never more than 65,536 come at once
   * @throws OPERATION_IN_PROGRESS; END_OF_FILE after the peer's last byte; STOPPED when aborted here or there or the
   *   session ended
   */
  readSome(max: number = MAX_READ): Promise<Uint8Array> {
    return this.#reading.readSome(max);
  }

  /**
   * Reads exactly `length` bytes, or fewer when the peer's direction ends first: the call then resolves with the
   * partial data, and the next one throws END_OF_FILE. An end without a single byte throws END_OF_FILE at once. The
   * same at both ends.
   * @throws as readSome; OUT_OF_MEMORY where no array has that length
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
    let data: Uint8Array;
    try {
      data = bytesOf('the data of a stream', given);
    } catch (error) {
      return Promise.reject(error);
    }
    const obstacle = this.#writeObstacle();
    if (obstacle !== null) return Promise.reject(obstacle);
    const taken = this.#give(data, 0);
    if (taken === data.length) return DONE;
    const write: Write = { data, length: data.length, taken, result: new Deferred() };
    this.#write = write;
    return write.result.promise;
  }

  /**
   * Ends our direction; resolves when the peer has accepted the stream and acknowledged all of it. Reading continues.
   * Closing again after that is harmless.
   * @throws OPERATION_IN_PROGRESS while a write or close runs; STOPPED
   */
  async close(): Promise<void> {
    if (this.#write !== null || (this.#finishing && this.#close !== null)) throw inProgress(this.#write ? 'write' : 'close');
    if (this.#finished) return;
    if (this.#writeEnd !== null) throw this.#writeEnd;
    this.#finishing = true;
    this.#close = new Deferred();
    const { promise } = this.#close;
    if (this.#id >= 0) this.#call((streams, id) => streams.finish(id), undefined);
    return promise;
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
    if (this.#opening) this.#finished = false;
    this.#reading.stop(error, code);
    this.#stopWriting(error, code);
  }

  /**
   * The reading direction as a WHATWG byte stream; do not use readSome and readAll then. Cancelling it asks the peer to
   * stop sending. A reader of the mode `byob` fills the caller's buffer: bulk data then leaves no garbage.
   */
  get readable(): ReadableStream<Uint8Array> {
    return this.#reading.readable;
  }

  /**
   * The writing direction as a WHATWG stream; do not use write and close then. Aborting it resets only our direction.
   */
  get writable(): WritableStream<Payload> {
    this.#writable ??= new WritableStream<Payload>(
      {
        write: (chunk) => this.write(chunk),
        close: () => this.close(),
        abort: () => this.#stopWriting(new LocalError('STOPPED', 'writing was aborted'), StreamCode.ABORTED),
      },
      { highWaterMark: MAX_READ, size: (chunk) => (typeof chunk === 'string' ? chunk.length : (chunk?.byteLength ?? 0)) },
    );
    return this.#writable;
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
      bytesWritten: this.#bytesWritten,
      transport: this.#id < 0 ? null : this.#call((streams, id) => streams.stats(id), null),
    };
  }

  /** For the session: the stream has its id, and buffered writes leave. */
  begin(id: number): void {
    this.#id = id;
    if (this.#weight !== null) this.#applyWeight(this.#weight);
    if (this.#write !== null) this.#advanceWrite(this.#write);
    if (this.#finishing) this.#call((streams, streamId) => streams.finish(streamId), undefined);
  }

  /**
   * For the session: handles an event of this stream. The caller sends afterwards, so nothing here wakes the driver.
   */
  handle(event: StreamEvent): void {
    if (event.kind === 'readable') {
      this.#reading.advance();
    } else if (event.kind === 'writable') {
      if (this.#write !== null) this.#advanceWrite(this.#write);
    } else if (event.kind === 'finished') {
      this.#finished = true;
      this.#settleClose();
    } else if (event.kind === 'accepted') {
      this.#opening = false;
      this.#opened.resolve();
      this.#settleClose();
    } else if (this.#opening) {
      this.#refused(event.code);
    } else if (event.kind === 'reset') {
      this.#reading.fail(streamError(event.code));
    } else {
      this.#endWriting(streamError(event.code));
    }
  }

  /** For the session: it has ended. */
  fail(error: SvcError): void {
    this.#opened.reject(error);
    this.#reading.fail(error);
    this.#endWriting(error);
  }

  /** The peer may acknowledge all our data before it accepts the stream: data of a refused stream has not arrived. */
  #settleClose(): void {
    if (this.#opening || !this.#finished) return;
    this.#close?.resolve();
    this.#close = null;
    this.directionEnded();
  }

  #refused(code: number): void {
    this.#call((streams, id) => streams.reset(id, code), undefined);
    this.#call((streams, id) => streams.stop(id, code), undefined);
    this.#opening = false;
    this.#finished = false;
    this.fail(streamError(code));
  }

  #applyWeight(weight: number): void {
    if (this.#id >= 0) this.#call((streams, id) => streams.setWeight(id, weight), undefined);
  }

  #call<T>(call: (streams: StreamCarrier['streams'], id: number) => T, instead: T): T {
    return this.owner.whileOpen(() => call(this.owner.connection.streams, this.#id), instead);
  }

  #writeObstacle(): SvcError | null {
    if (this.#write !== null) return inProgress('write');
    if (this.#writeEnd !== null) return this.#writeEnd;
    return this.#finishing ? new LocalError('CLOSED', 'the stream is closed for writing') : null;
  }

  #advanceWrite(write: Write): void {
    const isWhole = write.data.length === write.length;
    if (isWhole) write.taken += this.#give(write.data, write.taken);
    if (isWhole && write.taken < write.length) return;
    this.#write = null;
    if (isWhole) write.result.resolve();
    else write.result.reject(new LocalError('INVALID_ARGUMENT', 'the array of a write was resized or transferred before its end'));
  }

  /** @returns how many bytes of `data` from `start` on were taken */
  #give(data: Uint8Array, start: number): number {
    if (this.#id < 0) return 0;
    let at = start;
    for (let count = 1; count > 0 && at < data.length; at += count) count = this.#copy(data, at);
    this.#bytesWritten += at - start;
    return at - start;
  }

  /** Runs for every piece of data: no closure within. */
  #copy(data: Uint8Array, start: number): number {
    try {
      return this.owner.connection.streams.write(this.#id, data, start, data.length);
    } catch (error) {
      return unlessOver(error, 0);
    }
  }

  #stopWriting(error: SvcError, code: number): void {
    if (this.#finished || this.#writeEnd !== null) return;
    if (this.#id >= 0) this.#call((streams, id) => streams.reset(id, code), undefined);
    this.#endWriting(error);
  }

  #endWriting(error: SvcError): void {
    if (this.#finished || this.#writeEnd !== null) return;
    this.#writeEnd = error;
    this.#write?.result.reject(error);
    this.#close?.reject(error);
    this.#write = null;
    this.#close = null;
    this.onStopped?.(error);
    this.directionEnded();
  }

  directionEnded(): void {
    if (this.#endReported || !this.ended) return;
    this.#endReported = true;
    this.owner.ended(this);
  }
}

function inProgress(operation: 'write' | 'close'): LocalError {
  return new LocalError('OPERATION_IN_PROGRESS', `a ${operation} is still running on this stream`);
}
