/**
 * The writing direction of a stream: the outstanding write, the outstanding close, and why writing has ended. Bytes
 * wait here only while the core has no room for them.
 */
import { bytesOf, type Payload } from '../../protocol/arguments.ts';
import { LocalError, StreamCode, type SvcError } from '../../protocol/errors/index.ts';
import { Deferred } from '../deferred.ts';
import { unlessOver } from './owner.ts';
import { MAX_READ, type ReadingOwner } from './stream-reading.ts';

const DONE = Promise.resolve();

interface Write {
  readonly data: Uint8Array;
  readonly length: number;
  taken: number;
  readonly result: Deferred<void>;
}

/** The stream of a writing direction. */
export interface WritingOwner extends ReadingOwner {
  readonly onStopped: ((error: SvcError) => void) | null;
}

/** The writing direction of one stream; `Stream` documents its calls. */
export class StreamWriting {
  /** Why writing has ended; null while it has not, and after a proper close. */
  end: SvcError | null = null;
  bytes = 0;
  readonly #stream: WritingOwner;
  #write: Write | null = null;
  #close: Deferred<void> | null = null;
  #finishing = false;
  #finished = false;
  #writable: WritableStream<Payload> | null = null;

  constructor(stream: WritingOwner) {
    this.#stream = stream;
  }

  /** True once it can carry no more data, and all has been acknowledged. */
  get isOver(): boolean {
    return this.#finished || this.end !== null;
  }

  write(given: Payload): Promise<void> {
    let data: Uint8Array;
    try {
      data = bytesOf('the data of a stream', given);
    } catch (error) {
      return Promise.reject(error);
    }
    const obstacle = this.#obstacle();
    if (obstacle !== null) return Promise.reject(obstacle);
    const taken = this.#give(data, 0);
    if (taken === data.length) return DONE;
    const write: Write = { data, length: data.length, taken, result: new Deferred() };
    this.#write = write;
    return write.result.promise;
  }

  async close(): Promise<void> {
    if (this.#write !== null || (this.#finishing && this.#close !== null)) throw inProgress(this.#write ? 'write' : 'close');
    if (this.#finished) return;
    if (this.end !== null) throw this.end;
    this.#finishing = true;
    this.#close = new Deferred();
    const { promise } = this.#close;
    this.#finish();
    return promise;
  }

  /** Settles with a close under way; at once without one. Never rejects. */
  async closed(): Promise<void> {
    await this.#close?.promise.catch(() => {});
  }

  get writable(): WritableStream<Payload> {
    this.#writable ??= new WritableStream<Payload>(
      {
        write: (chunk) => this.write(chunk),
        close: () => this.close(),
        abort: () => this.stop(new LocalError('STOPPED', 'writing was aborted'), StreamCode.ABORTED),
      },
      { highWaterMark: MAX_READ, size: (chunk) => (typeof chunk === 'string' ? chunk.length : (chunk?.byteLength ?? 0)) },
    );
    return this.#writable;
  }

  /** The stream has its id: what was buffered leaves. */
  begin(): void {
    this.advance();
    if (this.#finishing) this.#finish();
  }

  /** There may be room. */
  advance(): void {
    const write = this.#write;
    if (write === null) return;
    const isWhole = write.data.length === write.length;
    if (isWhole) write.taken += this.#give(write.data, write.taken);
    if (isWhole && write.taken < write.length) return;
    this.#write = null;
    if (isWhole) write.result.resolve();
    else write.result.reject(new LocalError('INVALID_ARGUMENT', 'the array of a write was resized or transferred before its end'));
  }

  /** All has been acknowledged. */
  finished(): void {
    this.#finished = true;
    this.settleClose();
  }

  /** The peer may acknowledge all our data before it accepts the stream: data of a refused stream has not arrived. */
  settleClose(): void {
    if (this.#stream.isOpening || !this.#finished) return;
    this.#close?.resolve();
    this.#close = null;
    this.#stream.directionEnded();
  }

  /** The peer has not accepted the stream: an acknowledgement of its data counts for nothing. */
  unfinish(): void {
    this.#finished = false;
  }

  /** Resets our direction, and fails what is outstanding. */
  stop(error: SvcError, code: number): void {
    if (this.isOver) return;
    const { id, owner } = this.#stream;
    if (id >= 0) owner.whileOpen(() => owner.connection.streams.reset(id, code), undefined);
    this.fail(error);
  }

  /** Nothing more can be written, for this reason. */
  fail(error: SvcError): void {
    if (this.isOver) return;
    this.end = error;
    this.#write?.result.reject(error);
    this.#close?.reject(error);
    this.#write = null;
    this.#close = null;
    this.#stream.onStopped?.(error);
    this.#stream.directionEnded();
  }

  #finish(): void {
    const { id, owner } = this.#stream;
    if (id >= 0) owner.whileOpen(() => owner.connection.streams.finish(id), undefined);
  }

  #obstacle(): SvcError | null {
    if (this.#write !== null) return inProgress('write');
    if (this.end !== null) return this.end;
    return this.#finishing ? new LocalError('CLOSED', 'the stream is closed for writing') : null;
  }

  /** @returns how many bytes of `data` from `start` on were taken */
  #give(data: Uint8Array, start: number): number {
    if (this.#stream.id < 0) return 0;
    let at = start;
    for (let count = 1; count > 0 && at < data.length; at += count) count = this.#copy(data, at);
    this.bytes += at - start;
    return at - start;
  }

  /** Runs for every piece of data: no closure within. */
  #copy(data: Uint8Array, start: number): number {
    try {
      return this.#stream.owner.connection.streams.write(this.#stream.id, data, start, data.length);
    } catch (error) {
      return unlessOver(error, 0);
    }
  }
}

function inProgress(operation: 'write' | 'close'): LocalError {
  return new LocalError('OPERATION_IN_PROGRESS', `a ${operation} is still running on this stream`);
}
