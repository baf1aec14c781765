/**
 * Writers and readers for tests over a pair: content is a function of stream id and offset, so that no copy is kept for
 * comparison.
 */
import { EventKind } from '../../bindings/index.ts';
import type { End, Pair, ReportedEvent } from './pair.ts';

/** Bytes `from` … `from + length` of the content named `name`. */
export function content(name: number, from: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const at = from + i;
    bytes[i] = (at * 31 + (at >>> 8) * 17 + (at >>> 16) * 7 + name * 101) & 0xff;
  }
  return bytes;
}

/** Whether `bytes` equal `content` at that offset. */
export function matches(name: number, from: number, bytes: Uint8Array): boolean {
  const wanted = content(name, from, bytes.length);
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== wanted[i]) return false;
  return true;
}

/** Writes `total` bytes of content to a stream as capacity allows, and ends it. */
export class Writer {
  written = 0;
  finished = false;
  readonly #end: End;
  readonly #id: number;
  readonly #total: number;
  readonly #piece: number;

  constructor(end: End, id: number, total: number, piece = 8_192) {
    this.#end = end;
    this.#id = id;
    this.#total = total;
    this.#piece = piece;
    this.pump();
  }

  /** Call for each event of the end. */
  on({ kind, stream }: ReportedEvent): void {
    if (stream !== this.#id) return;
    if (kind === EventKind.STREAM_WRITABLE) this.pump();
    if (kind === EventKind.STREAM_FINISHED) this.finished = true;
  }

  pump(): void {
    const { connection } = this.#end;
    while (this.written < this.#total) {
      const wanted = Math.min(this.#piece, this.#total - this.written);
      const taken = connection.streams.write(this.#id, content(this.#id, this.written, wanted));
      this.written += taken;
      if (taken < wanted) return;
    }
    connection.streams.finish(this.#id);
  }
}

/** Reads every stream that opens and checks each byte. */
export class Reader {
  readonly lengths = new Map<number, number>();
  readonly ended = new Set<number>();
  wrong = 0;
  /** Streams it leaves unread. */
  readonly ignored = new Set<number>();
  readonly #end: End;
  readonly #buffer: Uint8Array;

  constructor(end: End, buffer = 16_384) {
    this.#end = end;
    this.#buffer = new Uint8Array(buffer);
  }

  on({ kind, stream }: ReportedEvent): void {
    if (kind !== EventKind.STREAM_READABLE || this.ignored.has(stream)) return;
    for (;;) {
      const length = this.#end.connection.streams.read(stream, this.#buffer);
      if (length === 0) return;
      if (length < 0) {
        this.ended.add(stream);
        return;
      }
      const at = this.lengths.get(stream) ?? 0;
      if (!matches(stream, at, this.#buffer.subarray(0, length))) this.wrong++;
      this.lengths.set(stream, at + length);
    }
  }
}

/**
 * `total` bytes of content in each direction of one stream, which the initiator opens; it handles the events of both
 * ends.
 */
export class Exchange {
  readonly #id: number;
  readonly #readers: Reader[];
  readonly #writers: Writer[];

  constructor({ initiator, responder, ends }: Pair, total: number) {
    this.#id = initiator.connection.streams.open();
    this.#readers = ends.map((end) => new Reader(end));
    this.#writers = [new Writer(initiator, this.#id, total)];
    ends.forEach((end, index) => {
      end.onEvent = (event) => {
        if (event.kind === EventKind.STREAM_OPENED) this.#writers.push(new Writer(responder, this.#id, total));
        this.#readers[index]?.on(event);
        this.#writers[index]?.on(event);
      };
    });
  }

  /** Both ends have read to the end, and all their own bytes are acknowledged. */
  readonly done = (): boolean =>
    this.#readers.every(({ ended }) => ended.has(this.#id)) &&
    this.#writers.length === 2 &&
    this.#writers.every(({ finished }) => finished);

  /** What each end has read: wrong bytes, total bytes. */
  get read(): [number, number][] {
    return this.#readers.map(({ wrong, lengths }) => [wrong, lengths.get(this.#id) ?? 0]);
  }
}
