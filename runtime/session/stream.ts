/**
 * A byte stream of a session, as an application holds it.
 *
 * A stream that we open can be used at once: early data leaves with the opening, up to the peer's initial window, and
 * `opened` reports whether the peer accepted. A refusal fails everything on the stream.
 *
 * At most one read, one write and one close are outstanding; a second one fails with OPERATION_IN_PROGRESS. The two
 * directions end independently: `close` ends ours, the peer's continues to its own end; an abort of the peer ends both.
 * Without a reader no promise is made and nothing is copied: data waits in the core, which grants the peer no further
 * credit.
 *
 * The session passes what the connection reports to `handle` and `fail`. A stream whose end is not read stays until
 * `abort` or the end of its session.
 */
import { bytesOf, check, type Payload, whole } from '../../protocol/arguments.ts';
import { LocalError, RemoteError, StreamCode, type SvcError, streamError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { Deferred } from '../deferred.ts';
import type { StreamCarrier, StreamEvent, StreamStats } from './stream-carrier.ts';

/** Most bytes that one readSome returns, and that the WHATWG streams buffer. */
const MAX_READ = 65_536;

const NOTHING = new Uint8Array(0);
const DONE = Promise.resolve();
/** Largest weight of a stream. */
const MAX_WEIGHT = 256;

interface Read {
  /** The buffer of readAll or of a reader; null for readSome, which takes at most `max` bytes. */
  readonly target: Uint8Array | null;
  /** Whether some bytes are enough. */
  readonly isPartial: boolean;
  readonly max: number;
  filled: number;
  readonly result: Deferred<Uint8Array>;
}

interface Write {
  readonly data: Uint8Array;
  readonly length: number;
  taken: number;
  readonly result: Deferred<void>;
}

/**
 * An open byte stream. Its methods are not async functions: those would cost three more turns of the promise queue for
 * each piece of data.
 */
export class SessionStream {
  /** Port the stream was opened to, 0 … 2^32 - 1. */
  readonly port: number;

  /**
   * Called when our direction ends before its end was acknowledged: the peer has stopped it, the session has ended, or
   * `abort`. For a writer that has nothing to write: no call of it would fail.
   */
  onStopped: ((error: SvcError) => void) | null = null;

  readonly #carrier: StreamCarrier<SessionStream>;
  /** Id on the wire; -1 while the peer grants no more streams. */
  #id: number;
  /** We opened it, and the peer has not accepted it yet. */
  #opening: boolean;
  readonly #opened = Deferred.quiet<void>();
  /** Null: the core's default. */
  #weight: number | null = null;
  #read: Read | null = null;
  #write: Write | null = null;
  #close: Deferred<void> | null = null;
  /** Why reading has ended: END_OF_FILE, STOPPED, … */
  #readEnd: SvcError | null = null;
  /** Why writing has ended; null while it has not, and after a proper close. */
  #writeEnd: SvcError | null = null;
  #finishing = false;
  #finished = false;
  #endReported = false;
  #readable: ReadableStream<Uint8Array> | null = null;
  #writable: WritableStream<Uint8Array> | null = null;
  #bytesRead = 0;
  #bytesWritten = 0;

  /**
   * Streams come from `Session.openStream`, `Session.startStream` and `IncomingStream.accept`.
   * @param id of a stream that we have accepted; -1 for one that we open, which waits for `begin`
   */
  constructor(carrier: StreamCarrier<SessionStream>, port: number, id = -1) {
    this.#carrier = carrier;
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

  /** True once neither direction can carry data any more. */
  get ended(): boolean {
    return this.#readEnd !== null && (this.#finished || this.#writeEnd !== null);
  }

  /**
   * Reads what has arrived, waiting for at least one byte.
   * @param max most bytes to return, from 1; never more than 65,536 come at once
   * @throws OPERATION_IN_PROGRESS; END_OF_FILE after the peer's last byte; STOPPED when aborted here or there or the
   *   session ended
   */
  readSome(max: number = MAX_READ): Promise<Uint8Array> {
    if (typeof max !== 'number' || !(max >= 1))
      return Promise.reject(new LocalError('INVALID_ARGUMENT', 'the number of bytes to read at most must be a number from 1'));
    const obstacle = this.#readObstacle();
    if (obstacle !== null) return Promise.reject(obstacle);
    const most = Math.min(MAX_READ, Math.floor(max));
    const bytes = this.#opening ? NOTHING : this.#take(most);
    if (bytes.length > 0) {
      this.#carrier.wake(); // credit to return
      return Promise.resolve(bytes);
    }
    if (this.#readEnd !== null) return Promise.reject(this.#readEnd);
    this.#read = { target: null, isPartial: true, max: most, filled: 0, result: new Deferred() };
    return this.#read.result.promise;
  }

  /**
   * Reads exactly `length` bytes, or fewer when the peer's direction ends first: the call then resolves with the
   * partial data, and the next one throws END_OF_FILE. An end without a single byte throws END_OF_FILE at once. The
   * same at both ends.
   * @throws as readSome; OUT_OF_MEMORY where no array has that length
   */
  readAll(length: number): Promise<Uint8Array> {
    const valid = Number.isSafeInteger(length) && length >= 0;
    const obstacle = valid
      ? this.#readObstacle()
      : new LocalError('INVALID_ARGUMENT', 'the number of bytes to read must be a whole number from 0');
    if (obstacle !== null) return Promise.reject(obstacle);
    if (length === 0) return Promise.resolve(new Uint8Array(0));
    const target = orElse(() => new Uint8Array(length), null);
    if (target === null) return Promise.reject(new LocalError('OUT_OF_MEMORY', `there is no room for ${length} bytes at once`));
    const read: Read = { target, isPartial: false, max: length, filled: 0, result: new Deferred() };
    this.#read = read;
    this.#advanceRead(read);
    if (read.filled > 0) this.#carrier.wake(); // credit to return
    return read.result.promise;
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
    if (taken > 0) this.#carrier.wake();
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
    const close = new Deferred<void>();
    this.#close = close;
    if (this.#id >= 0) this.#finish();
    return close.promise;
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
    this.#stopReading(error, code);
    this.#stopWriting(error, code);
  }

  /**
   * The reading direction as a WHATWG byte stream; do not use readSome and readAll then. Cancelling it asks the peer to
   * stop sending. A reader of the mode `byob` fills the caller's buffer: bulk data then leaves no garbage.
   */
  get readable(): ReadableStream<Uint8Array> {
    this.#readable ??= new ReadableStream(
      {
        type: 'bytes',
        pull: (controller) => this.#pull(controller),
        cancel: () => this.#stopReading(new LocalError('STOPPED', 'reading was cancelled'), StreamCode.NO_ERROR),
      },
      // Nothing is read ahead: data waits in the core, bounded by the stream's window.
      { highWaterMark: 0 },
    );
    return this.#readable;
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
    if (this.#id >= 0) this.#carrier.setStreamWeight(this.#id, weight);
  }

  stats(): StreamStats {
    return {
      bytesRead: this.#bytesRead,
      bytesWritten: this.#bytesWritten,
      transport: this.#id < 0 ? null : this.#carrier.streamStats(this.#id),
    };
  }

  /** For the session: the stream has its id, and buffered writes leave. */
  begin(id: number): void {
    this.#id = id;
    if (this.#weight !== null) this.#carrier.setStreamWeight(id, this.#weight);
    if (this.#write !== null) this.#advanceWrite(this.#write);
    if (this.#finishing) this.#finish();
  }

  /**
   * For the session: handles an event of this stream. The caller sends afterwards, so nothing here wakes the driver.
   */
  handle(event: StreamEvent): void {
    if (event.kind === 'readable') {
      if (this.#read !== null) this.#advanceRead(this.#read);
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
      this.#endReading(streamError(event.code));
    } else {
      this.#endWriting(streamError(event.code));
    }
  }

  /** For the session: it has ended. */
  fail(error: SvcError): void {
    this.#opened.reject(error);
    this.#endReading(error);
    this.#endWriting(error);
  }

  /** The peer may acknowledge all our data before it accepts the stream: data of a refused stream has not arrived. */
  #settleClose(): void {
    if (this.#opening || !this.#finished) return;
    this.#close?.resolve();
    this.#close = null;
    this.#reportEnd();
  }

  #refused(code: number): void {
    this.#carrier.resetStream(this.#id, code);
    this.#carrier.stopSending(this.#id, code);
    this.#carrier.wake();
    this.#opening = false;
    this.#finished = false;
    this.fail(streamError(code));
  }

  #finish(): void {
    this.#carrier.finishStream(this.#id);
    this.#carrier.wake();
  }

  #readObstacle(): SvcError | null {
    return this.#read === null ? this.#readEnd : inProgress('read');
  }

  #writeObstacle(): SvcError | null {
    if (this.#write !== null) return inProgress('write');
    if (this.#writeEnd !== null) return this.#writeEnd;
    return this.#finishing ? new LocalError('CLOSED', 'the stream is closed for writing') : null;
  }

  #advanceRead(read: Read): void {
    if (this.#opening) return;
    if (read.target !== null) {
      this.#fill(read, read.target);
      return;
    }
    this.#read = null;
    const bytes = this.#take(read.max);
    if (bytes.length > 0) read.result.resolve(bytes);
    else if (this.#readEnd !== null) read.result.reject(this.#readEnd);
    else this.#read = read;
  }

  async #pull(controller: ReadableByteStreamController): Promise<void> {
    const request = controller.byobRequest;
    try {
      if (request?.view) request.respond(await this.#readInto(request.view as Uint8Array));
      else controller.enqueue((await this.readSome()) as Uint8Array<ArrayBuffer>);
    } catch (error) {
      if (this.#readEnd?.code !== 'END_OF_FILE') throw error;
      controller.close();
      request?.respond(0);
    }
  }

  /** Reads what has arrived, at least one byte, into `target`. @returns how many bytes */
  async #readInto(target: Uint8Array): Promise<number> {
    const obstacle = this.#readObstacle();
    if (obstacle !== null) throw obstacle;
    const read: Read = { target, isPartial: true, max: target.length, filled: 0, result: new Deferred() };
    this.#read = read;
    this.#advanceRead(read);
    if (read.filled > 0) this.#carrier.wake(); // credit to return
    return (await read.result.promise).length;
  }

  /** Takes data for readSome, while no read is outstanding; also detects the end right after the last bytes. */
  #take(max: number): Uint8Array {
    const bytes = this.#carrier.takeStream(this.#id, max);
    const count = bytes?.length ?? 0;
    this.#bytesRead += count;
    const isEnd = bytes === null || (count > 0 && this.#carrier.takeStream(this.#id, 0) === null);
    if (isEnd) this.#endReading(endOfFile());
    return bytes ?? NOTHING;
  }

  #fill(read: Read, target: Uint8Array): void {
    let count = 1;
    const before = read.filled;
    while (count > 0 && read.filled < target.length) {
      count = this.#carrier.readStream(this.#id, read.filled === 0 ? target : target.subarray(read.filled));
      if (count > 0) read.filled += count;
    }
    this.#bytesRead += read.filled - before;
    if (read.filled === target.length || (read.isPartial && read.filled > 0)) this.#resolveAll(read, target);
    if (count < 0) this.#endReading(endOfFile());
  }

  /** A short result of readAll does not keep its whole array. */
  #resolveAll(read: Read, target: Uint8Array): void {
    this.#read = null;
    const isWhole = read.filled === target.length;
    read.result.resolve(isWhole ? target : read.isPartial ? target.subarray(0, read.filled) : target.slice(0, read.filled));
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
    for (let count = 1; count > 0 && at < data.length; at += count) count = this.#carrier.writeStream(this.#id, data, at, data.length);
    this.#bytesWritten += at - start;
    return at - start;
  }

  #stopReading(error: SvcError, code: number): void {
    if (this.#readEnd !== null) return;
    if (this.#id >= 0) this.#carrier.stopSending(this.#id, code);
    this.#carrier.wake();
    this.#endReading(error);
  }

  #stopWriting(error: SvcError, code: number): void {
    if (this.#finished || this.#writeEnd !== null) return;
    if (this.#id >= 0) this.#carrier.resetStream(this.#id, code);
    this.#carrier.wake();
    this.#endWriting(error);
  }

  #endReading(error: SvcError): void {
    if (this.#readEnd !== null) return;
    this.#readEnd = error;
    const read = this.#read;
    if (read?.target && read.filled > 0 && error.code === 'END_OF_FILE') this.#resolveAll(read, read.target);
    else read?.result.reject(error);
    this.#read = null;
    this.#reportEnd();
  }

  #endWriting(error: SvcError): void {
    if (this.#finished || this.#writeEnd !== null) return;
    this.#writeEnd = error;
    this.#write?.result.reject(error);
    this.#close?.reject(error);
    this.#write = null;
    this.#close = null;
    this.onStopped?.(error);
    this.#reportEnd();
  }

  #reportEnd(): void {
    if (this.#endReported || !this.ended) return;
    this.#endReported = true;
    this.#carrier.ended(this.#id, this);
  }
}

function endOfFile(): RemoteError {
  return new RemoteError('END_OF_FILE', 'the stream has ended');
}

function inProgress(operation: string): LocalError {
  return new LocalError('OPERATION_IN_PROGRESS', `a ${operation} is still running on this stream`);
}
