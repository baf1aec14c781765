/**
 * The byte streams of one session: those waiting for their id, those offered by the peer, those in use or being opened.
 * Passes the connection's events to their streams.
 *
 * When the peer grants no more streams, opens wait in a queue until it does. Without a listener an offered stream is
 * refused at once.
 */

import type { Log } from '../../platform/environment.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import { LocalError, StreamCode, type SvcError } from '../../protocol/errors/index.ts';
import { guarded } from '../emitter.ts';
import { IncomingStream } from './incoming-stream.ts';
import { SessionStream } from './stream.ts';
import type { StreamCarrier } from './stream-carrier.ts';
import { otherwise, whileOpen } from './while-open.ts';

const NOTHING = new Uint8Array(0);

/** Options of a stream to open. */
export interface OpenStreamOptions {
  /** Ends the open with STOPPED when it fires. */
  signal?: AbortSignal;
  /** Share of our direction among the session's byte streams, 1 to 256; default 16. See `SessionStream.setWeight`. */
  weight?: number;
}

export interface SessionStreamsOptions {
  connection: Connection;
  log: Log;
  wake: () => void;
  /** The application's listener, read at each offer. */
  listener: () => ((stream: IncomingStream) => void) | null;
}

export type StreamConnectionEvent = Extract<
  ConnectionEvent,
  { kind: 'stream' | 'accepted' | 'readable' | 'writable' | 'finished' | 'reset' | 'stopped' | 'streams-available' }
>;

/** Byte streams of one session. */
export class SessionStreams {
  readonly #options: SessionStreamsOptions;
  readonly #connection: Connection;
  readonly #carrier: StreamCarrier<SessionStream>;
  readonly #queue = new Set<SessionStream>();
  readonly #offered = new Map<number, IncomingStream>();
  readonly #streams = new Map<number, SessionStream>();

  constructor(options: SessionStreamsOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#carrier = this.#makeCarrier();
  }

  /** Streams in use or being opened. */
  get count(): number {
    return this.#streams.size + this.#queue.size + this.#offered.size;
  }

  /** Returns a stream that may be used at once. @throws INVALID_ARGUMENT */
  start(port: number, { weight }: Pick<OpenStreamOptions, 'weight'>): SessionStream {
    if (!Number.isInteger(port) || port < 0 || port > 0xffffffff) throw new LocalError('INVALID_ARGUMENT', `${port} is not a stream port`);
    const stream = new SessionStream(this.#carrier, port);
    if (weight !== undefined) stream.setWeight(weight);
    this.#queue.add(stream);
    this.#openQueued();
    return stream;
  }

  handle(event: StreamConnectionEvent): void {
    if (event.kind === 'stream') this.#offer(event.id, event.port);
    else if (event.kind === 'streams-available') this.#openQueued();
    else if ((event.kind === 'reset' || event.kind === 'stopped') && this.#offered.has(event.id)) this.#withdrawn(event.id);
    else this.#streams.get(event.id)?.handle(event);
  }

  /** The session ended: everything on it fails. */
  fail(error: SvcError): void {
    for (const incoming of this.#offered.values()) incoming.withdraw();
    this.#offered.clear();
    for (const stream of [...this.#queue, ...this.#streams.values()]) stream.fail(error);
    this.#queue.clear();
    this.#streams.clear();
  }

  #openQueued(): void {
    for (const stream of this.#queue) {
      const id = whileOpen(() => this.#connection.streams.open(stream.port), -1);
      if (id < 0) break;
      this.#queue.delete(stream);
      this.#streams.set(id, stream);
      stream.begin(id);
    }
    this.#options.wake();
  }

  #offer(id: number, port: number): void {
    const incoming = new IncomingStream(port, {
      accept: () => {
        this.#offered.delete(id);
        whileOpen(() => this.#connection.streams.accept(id), undefined);
        this.#options.wake();
        return this.#adopt(id, port);
      },
      refuse: (code) => {
        this.#offered.delete(id);
        this.#refuse(id, code);
      },
    });
    const listener = this.#options.listener();
    this.#offered.set(id, incoming);
    if (listener === null || !guarded(this.#options.log, 'stream listener', () => listener(incoming))) incoming.refuse();
  }

  /** The peer withdrew its offer. */
  #withdrawn(id: number): void {
    this.#offered.get(id)?.withdraw();
    this.#offered.delete(id);
    this.#refuse(id, StreamCode.ABORTED);
  }

  #refuse(id: number, code: number): void {
    whileOpen(() => this.#connection.streams.refuse(id, code), undefined);
    this.#options.wake();
  }

  #adopt(id: number, port: number): SessionStream {
    const stream = new SessionStream(this.#carrier, port, id);
    this.#streams.set(id, stream);
    return stream;
  }

  #makeCarrier(): StreamCarrier<SessionStream> {
    const connection = this.#connection;
    return {
      // These two run for every piece of data: no closure within.
      takeStream(id, max) {
        try {
          return connection.streams.take(id, max);
        } catch (error) {
          return otherwise(error, NOTHING);
        }
      },
      writeStream(id, data, start, end) {
        try {
          return connection.streams.write(id, data, start, end);
        } catch (error) {
          return otherwise(error, 0);
        }
      },
      readStream: (id, target) => whileOpen(() => connection.streams.read(id, target), 0),
      finishStream: (id) => whileOpen(() => connection.streams.finish(id), undefined),
      resetStream: (id, code) => whileOpen(() => connection.streams.reset(id, code), undefined),
      stopSending: (id, code) => whileOpen(() => connection.streams.stop(id, code), undefined),
      streamStats: (id) => whileOpen(() => connection.streams.stats(id), null),
      setStreamWeight: (id, weight) => whileOpen(() => connection.streams.setWeight(id, weight), undefined),
      wake: this.#options.wake,
      ended: (id, stream) => {
        if (id < 0) this.#queue.delete(stream);
        else this.#streams.delete(id);
      },
    };
  }
}
