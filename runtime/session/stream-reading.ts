/**
 * The reading direction of a stream: the outstanding read, what has been read, and why reading has ended. Without a
 * reader no promise is made and nothing is copied: data waits in the core, which grants the peer no further credit.
 */
import { LocalError, RemoteError, StreamCode, type SvcError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { Deferred } from '../deferred.ts';
import { type StreamOwner, unlessOver } from './owner.ts';

/** Most bytes that one read returns, and that the WHATWG streams buffer. */
export const MAX_READ = 65_536;

const NOTHING = new Uint8Array(0);

interface Read {
  /** The buffer of readAll or of a reader; null for `read`, which takes at most `max` bytes. */
  readonly target: Uint8Array | null;
  /** Whether some bytes are enough. */
  readonly isPartial: boolean;
  readonly max: number;
  filled: number;
  readonly result: Deferred<Uint8Array>;
}

/** The stream of a reading direction. */
export interface ReadingOwner {
  readonly owner: Pick<StreamOwner<never>, 'connection' | 'whileOpen'>;
  readonly id: number;
  /** We opened it, and the peer has not accepted it yet. */
  readonly isOpening: boolean;
  /** Nothing more can be read. */
  directionEnded(): void;
}

/** The reading direction of one stream; `Stream` documents its calls. */
export class StreamReading {
  /** Why reading has ended: END_OF_FILE, STOPPED, … */
  end: SvcError | null = null;
  bytes = 0;
  readonly #stream: ReadingOwner;
  #read: Read | null = null;
  #readable: ReadableStream<Uint8Array> | null = null;

  constructor(stream: ReadingOwner) {
    this.#stream = stream;
  }

  read(max: number): Promise<Uint8Array> {
    if (typeof max !== 'number' || !(max >= 1))
      return Promise.reject(new LocalError('INVALID_ARGUMENT', 'the number of bytes to read at most must be a number from 1'));
    const obstacle = this.#obstacle();
    if (obstacle !== null) return Promise.reject(obstacle);
    const most = Math.min(MAX_READ, Math.floor(max));
    const bytes = this.#stream.isOpening ? NOTHING : this.#take(most);
    if (bytes.length > 0) return Promise.resolve(bytes);
    if (this.end !== null) return Promise.reject(this.end);
    this.#read = { target: null, isPartial: true, max: most, filled: 0, result: new Deferred() };
    return this.#read.result.promise;
  }

  readAll(length: number): Promise<Uint8Array> {
    const valid = Number.isSafeInteger(length) && length >= 0;
    const obstacle = valid
      ? this.#obstacle()
      : new LocalError('INVALID_ARGUMENT', 'the number of bytes to read must be a whole number from 0');
    if (obstacle !== null) return Promise.reject(obstacle);
    if (length === 0) return Promise.resolve(new Uint8Array(0));
    const target = orElse(() => new Uint8Array(length), null);
    if (target === null) return Promise.reject(new LocalError('OUT_OF_MEMORY', `there is no room for ${length} bytes at once`));
    return this.#begin(target, false);
  }

  get readable(): ReadableStream<Uint8Array> {
    this.#readable ??= new ReadableStream(
      {
        type: 'bytes',
        pull: (controller) => this.#pull(controller),
        cancel: () => this.stop(new LocalError('STOPPED', 'reading was cancelled'), StreamCode.NO_ERROR),
      },
      // Nothing is read ahead: data waits in the core, bounded by the stream's window.
      { highWaterMark: 0 },
    );
    return this.#readable;
  }

  /** Data has arrived, or the end. */
  advance(): void {
    const read = this.#read;
    if (read === null || this.#stream.isOpening) return;
    if (read.target !== null) {
      this.#fill(read, read.target);
      return;
    }
    this.#read = null;
    const bytes = this.#take(read.max);
    if (bytes.length > 0) read.result.resolve(bytes);
    else if (this.end !== null) read.result.reject(this.end);
    else this.#read = read;
  }

  /** Asks the peer to stop sending, and fails what is outstanding. */
  stop(error: SvcError, code: number): void {
    if (this.end !== null) return;
    const { id, owner } = this.#stream;
    if (id >= 0) owner.whileOpen(() => owner.connection.streams.stop(id, code), undefined);
    this.fail(error);
  }

  /** Nothing more can be read, for this reason. */
  fail(error: SvcError): void {
    if (this.end !== null) return;
    this.end = error;
    const read = this.#read;
    if (read?.target && read.filled > 0 && error.code === 'END_OF_FILE') this.#resolve(read, read.target);
    else read?.result.reject(error);
    this.#read = null;
    this.#stream.directionEnded();
  }

  #obstacle(): SvcError | null {
    return this.#read === null ? this.end : new LocalError('OPERATION_IN_PROGRESS', 'a read is still running on this stream');
  }

  #begin(target: Uint8Array, isPartial: boolean): Promise<Uint8Array> {
    const read: Read = { target, isPartial, max: target.length, filled: 0, result: new Deferred() };
    this.#read = read;
    this.advance();
    return read.result.promise;
  }

  async #pull(controller: ReadableByteStreamController): Promise<void> {
    const request = controller.byobRequest;
    try {
      if (request?.view) request.respond((await this.#readInto(request.view as Uint8Array)).length);
      else controller.enqueue((await this.read(MAX_READ)) as Uint8Array<ArrayBuffer>);
    } catch (error) {
      if (this.end?.code !== 'END_OF_FILE') throw error;
      controller.close();
      request?.respond(0);
    }
  }

  /** Reads what has arrived, at least one byte, into `target`. */
  async #readInto(target: Uint8Array): Promise<Uint8Array> {
    const obstacle = this.#obstacle();
    if (obstacle !== null) throw obstacle;
    return this.#begin(target, true);
  }

  /** Takes data for `read`, while no read is outstanding; also detects the end right after the last bytes. */
  #take(max: number): Uint8Array {
    const bytes = this.#taken(max);
    const count = bytes?.length ?? 0;
    this.bytes += count;
    if (bytes === null || (count > 0 && this.#taken(0) === null)) this.fail(endOfFile());
    return bytes ?? NOTHING;
  }

  /** Runs for every piece of data: no closure within. */
  #taken(max: number): Uint8Array | null {
    try {
      return this.#stream.owner.connection.streams.take(this.#stream.id, max);
    } catch (error) {
      return unlessOver(error, NOTHING);
    }
  }

  #fill(read: Read, target: Uint8Array): void {
    const { id, owner } = this.#stream;
    let count = 1;
    const before = read.filled;
    while (count > 0 && read.filled < target.length) {
      const rest = read.filled === 0 ? target : target.subarray(read.filled);
      count = owner.whileOpen(() => owner.connection.streams.read(id, rest), 0);
      if (count > 0) read.filled += count;
    }
    this.bytes += read.filled - before;
    if (read.filled === target.length || (read.isPartial && read.filled > 0)) this.#resolve(read, target);
    if (count < 0) this.fail(endOfFile());
  }

  /** A short result of readAll does not keep its whole array. */
  #resolve(read: Read, target: Uint8Array): void {
    this.#read = null;
    const isWhole = read.filled === target.length;
    read.result.resolve(isWhole ? target : read.isPartial ? target.subarray(0, read.filled) : target.slice(0, read.filled));
  }
}

function endOfFile(): RemoteError {
  return new RemoteError('END_OF_FILE', 'the stream has ended');
}
