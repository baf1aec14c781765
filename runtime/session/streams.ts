/**
 * The byte streams of one session: those waiting for their id, those offered by the peer, those in use or being opened.
 * Passes the connection's events to their streams.
 *
 * When the peer grants no more streams, opens wait in a queue until it does. Without a listener an offered stream is
 * refused at once.
 */
import { signal as aSignal, check, checkOptions, whole } from '../../protocol/arguments.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import { LocalError, StreamCode, type SvcError } from '../../protocol/errors/index.ts';
import { guarded } from '../emitter.ts';
import { IncomingStream } from './incoming-stream.ts';
import type { SessionOwner, StreamOwner } from './owner.ts';
import { MAX_WEIGHT, Stream } from './stream.ts';

/** Options of a stream to open. */
export interface StreamOptions {
  /** Aborts the stream when it fires before the peer has accepted it. */
  readonly signal?: AbortSignal;
  /** Share of our direction among the session's byte streams, 1 to 256; default 16. See `Stream.setWeight`. */
  readonly weight?: number;
}

/** The part of a session that its streams use. */
export interface StreamsOwner extends SessionOwner {
  /** The application's listener, read at each offer. */
  readonly onStream: ((stream: IncomingStream) => void) | null;
}

export type StreamConnectionEvent = Extract<
  ConnectionEvent,
  { kind: 'stream' | 'accepted' | 'readable' | 'writable' | 'finished' | 'reset' | 'stopped' | 'streams-available' }
>;

/** Byte streams of one session. */
export class SessionStreams implements StreamOwner<Stream> {
  readonly connection: Connection;
  readonly #session: StreamsOwner;
  readonly #queue = new Set<Stream>();
  readonly #offered = new Map<number, IncomingStream>();
  readonly #streams = new Map<number, Stream>();

  constructor(session: StreamsOwner) {
    this.#session = session;
    this.connection = session.connection;
  }

  /** Streams in use or being opened. */
  get count(): number {
    return this.#streams.size + this.#queue.size + this.#offered.size;
  }

  /**
   * Opens a byte stream, without waiting for the peer: early data leaves with the opening and saves a round trip. Until
   * the peer has accepted, at most 16 KiB leave (PROTOCOL.md §5.3); further writes wait. `opened` of the stream reports
   * acceptance; after a refusal every call fails with its error, and the peer discards early data. While the peer
   * grants no more streams, it waits. Only the end that opened the session can (PROTOCOL.md §5.3).
   * @param port 0 … 2^32 - 1
   * @throws LocalError INVALID_STATE at the end that accepted the session; NOT_CONNECTED when the session is over;
   *   STOPPED when `signal` has fired; INVALID_ARGUMENT
   */
  open(port: number, options: StreamOptions = {}): Stream {
    check('the stream port', port, whole(0, 0xffff_ffff));
    checkOptions('a stream', options, { signal: aSignal, weight: whole(1, MAX_WEIGHT) });
    this.#session.assertOpen();
    if (!this.connection.initiator) throw new LocalError('INVALID_STATE', 'only the end that opened the session opens streams');
    const { signal, weight } = options;
    if (signal?.aborted === true) throw new LocalError('STOPPED', 'opening the stream was stopped');
    const stream = new Stream(this, port);
    if (weight !== undefined) stream.setWeight(weight);
    this.#queue.add(stream);
    this.#openQueued();
    if (signal !== undefined) abortOpening(stream, signal);
    return stream;
  }

  /** For the session: an event of a stream. */
  handle(event: StreamConnectionEvent): void {
    if (event.kind === 'stream') this.#offer(event.id, event.port);
    else if (event.kind === 'streams-available') this.#openQueued();
    else if ((event.kind === 'reset' || event.kind === 'stopped') && this.#offered.has(event.id)) this.#withdrawn(event.id);
    else this.#streams.get(event.id)?.handle(event);
  }

  /** For the session: it ended, and everything on it fails. */
  fail(error: SvcError): void {
    for (const incoming of this.#offered.values()) incoming.withdraw();
    this.#offered.clear();
    for (const stream of [...this.#queue, ...this.#streams.values()]) stream.fail(error);
    this.#queue.clear();
    this.#streams.clear();
  }

  /** For the streams. */
  whileOpen<T>(call: () => T, instead: T): T {
    return this.#session.whileOpen(call, instead);
  }

  /** For the streams: both directions are over. */
  ended(stream: Stream): void {
    if (stream.id < 0) this.#queue.delete(stream);
    else this.#streams.delete(stream.id);
  }

  #openQueued(): void {
    for (const stream of this.#queue) {
      const id = this.#session.whileOpen(() => this.connection.streams.open(stream.port), -1);
      if (id < 0) break;
      this.#queue.delete(stream);
      this.#streams.set(id, stream);
      stream.begin(id);
    }
  }

  #offer(id: number, port: number): void {
    const incoming = new IncomingStream(port, {
      accept: () => {
        this.#offered.delete(id);
        this.#session.whileOpen(() => this.connection.streams.accept(id), undefined);
        return this.#adopt(id, port);
      },
      refuse: (code) => {
        this.#offered.delete(id);
        this.#refuse(id, code);
      },
    });
    const listener = this.#session.onStream;
    this.#offered.set(id, incoming);
    if (listener === null || !guarded(this.#session.log, 'stream listener', () => listener(incoming))) incoming.refuse();
  }

  /** The peer withdrew its offer. */
  #withdrawn(id: number): void {
    this.#offered.get(id)?.withdraw();
    this.#offered.delete(id);
    this.#refuse(id, StreamCode.ABORTED);
  }

  #refuse(id: number, code: number): void {
    this.#session.whileOpen(() => this.connection.streams.refuse(id, code), undefined);
  }

  #adopt(id: number, port: number): Stream {
    const stream = new Stream(this, port, id);
    this.#streams.set(id, stream);
    return stream;
  }
}

function abortOpening(stream: Stream, signal: AbortSignal): void {
  const abort = (): void => stream.abort();
  const settled = (): void => signal.removeEventListener('abort', abort);
  signal.addEventListener('abort', abort, { once: true });
  stream.opened.then(settled, settled);
}
