/** The byte streams of a connection, by their ids. `write`, `read` and `take` are the hot path of a transfer. */
import { type CoreHandle, type CoreInternals, call } from './core-internals.ts';
import { LocalError } from './error.ts';
import { type CoreStreamStats, readStreamStats } from './stats.ts';

/** Largest weight of a byte stream. */
const MAX_WEIGHT = 256;
/** Up to this many bytes, a loop copies faster than making a view and copying from it. */
const SHORT = 96;
const NOTHING = new Uint8Array(0);

/** The byte streams of a connection; errors as for the connection. */
export class CoreStreams {
  private readonly of: CoreHandle;

  /** `CoreConnection` makes its parts. */
  constructor(of: CoreHandle) {
    this.of = of;
  }

  /** Opens a byte stream; returns its id, -1 at the peer's limit (then STREAMS_AVAILABLE follows) or after a close. */
  open(): number {
    return call(this.of, (exports, handle) => exports.streamOpen(handle));
  }

  /** Returns how many bytes of `data` were taken, 0 after the stream's end; if too few, wait for STREAM_WRITABLE. */
  write(id: number, data: Uint8Array, start = 0, end = data.length): number {
    const { exports, transfer } = this.of.check();
    let done = start;
    while (done < end) {
      const part = Math.min(end - done, transfer.length);
      transfer.set(part === data.length ? data : data.subarray(done, done + part));
      const taken = this.written(exports, id, part);
      done += taken;
      if (taken < part) break;
    }
    return done - start;
  }

  /** Copies bytes to `target`; returns how many, 0 = none yet, -1 = the end was reached (or the stream is gone). */
  read(id: number, target: Uint8Array): number {
    const { transfer, buffer, transferAt } = this.of.check();
    let done = 0;
    while (done < target.length) {
      const length = this.readToTransfer(id, Math.min(target.length - done, transfer.length));
      if (length <= 0) return done > 0 ? done : length;
      target.set(buffer.subarray(transferAt, transferAt + length), done);
      done += length;
    }
    return done;
  }

  /**
   * Returns at most `max` bytes as a new array: empty = none yet, null = the end was reached (or the stream is gone).
   */
  take(id: number, max: number): Uint8Array | null {
    const { transfer, buffer, transferAt } = this.of.check();
    const length = this.readToTransfer(id, Math.min(max, transfer.length));
    if (length < 0) return null;
    if (length === 0) return NOTHING;
    const bytes = new Uint8Array(length);
    if (length > SHORT) bytes.set(buffer.subarray(transferAt, transferAt + length));
    else for (let index = 0; index < length; index++) bytes[index] = buffer[transferAt + index]!;
    return bytes;
  }

  /** Ends our direction after the written bytes; STREAM_FINISHED when all of them are acknowledged. */
  finish(id: number): void {
    call(this.of, (exports, handle) => exports.streamFinish(handle, id));
  }

  /** Ends our direction at once and discards what was not sent. Code below 2^53. */
  reset(id: number, code: number): void {
    call(this.of, (exports, handle) => exports.streamReset(handle, id, code));
  }

  /** Asks the peer to stop sending; later data is discarded, and no further event reports that direction. */
  stop(id: number, code: number): void {
    call(this.of, (exports, handle) => exports.streamStop(handle, id, code));
  }

  /** Raises our receive window of the stream to at least `bytes`; from there it grows automatically, up to 3.75 MiB. */
  raiseWindow(id: number, bytes: number): void {
    call(this.of, (exports, handle) => exports.streamRaiseWindow(handle, id, bytes));
  }

  /**
   * Sets the weight of our direction among byte streams with something to send, 1 to 256 (default 16): bytes are shared
   * in proportion.
   *
   * @throws LocalError INVALID_ARGUMENT for another number
   */
  setWeight(id: number, weight: number): void {
    this.of.check();
    if (!Number.isInteger(weight) || weight < 1 || weight > MAX_WEIGHT)
      throw new LocalError('INVALID_ARGUMENT', `a stream's weight is 1 to ${MAX_WEIGHT}, not ${weight}`);
    call(this.of, (exports, handle) => exports.streamSetWeight(handle, id, weight));
  }

  /** Returns the statistics of a byte stream; null once both directions have ended and their events were fetched. */
  stats(id: number): CoreStreamStats | null {
    return call(this.of, (exports, handle) => exports.streamStats(handle, id)) === 0 ? null : readStreamStats(this.of.core.results);
  }

  // Without a closure, as these run for every piece of data.

  private written(exports: CoreInternals['exports'], id: number, length: number): number {
    try {
      return exports.streamWrite(this.of.handle, id, length);
    } catch (error) {
      throw this.of.core.trap.caught(error);
    }
  }

  /** Returns the length, 0 or -1. */
  private readToTransfer(id: number, most: number): number {
    try {
      return this.of.core.exports.streamRead(this.of.handle, id, most);
    } catch (error) {
      throw this.of.core.trap.caught(error);
    }
  }
}
