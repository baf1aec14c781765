/**
 * The byte streams of one session: those being opened, those offered by the peer, those in use. Translates the connection's events for the
 * stream they belong to.
 *
 * When the peer grants no more streams, opens wait in a queue until it does. A stream nobody listens for is refused at once.
 */
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import { LocalError, StreamCode, type SvcError, streamError } from '../../protocol/errors/index.ts';
import type { Log } from '../environment.ts';
import { Deferred } from './deferred.ts';
import { guarded } from './emitter.ts';
import { IncomingStream } from './incoming-stream.ts';
import { assertWeight, SessionStream, type StreamCarrier } from './stream.ts';
import { whileOpen } from './while-open.ts';

/** How a stream is opened. */
export interface OpenStreamOptions {
  /** When it fires the open ends with STOPPED. */
  signal?: AbortSignal;
  /** Share of our direction among the session's byte streams, 1 to 256; default 16. See `SessionStream.setWeight`. */
  weight?: number;
}

interface Opening {
  readonly port: number;
  readonly weight: number | undefined;
  readonly result: Deferred<SessionStream>;
}

export interface SessionStreamsOptions {
  connection: Connection;
  log: Log;
  wake: () => void;
  /** MAX_READ bytes that every stream may use within one call. */
  scratch: Uint8Array;
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
  readonly #carrier: StreamCarrier;
  readonly #queue = new Set<Opening>();
  readonly #opening = new Map<number, Opening>();
  readonly #offered = new Map<number, IncomingStream>();
  readonly #streams = new Map<number, SessionStream>();

  constructor(options: SessionStreamsOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#carrier = this.#makeCarrier();
  }

  /** Streams in use or being opened. */
  get count(): number {
    return this.#streams.size + this.#opening.size + this.#queue.size + this.#offered.size;
  }

  /** @throws INVALID_ARGUMENT, STOPPED (refused, limit, signal), what the session ended with */
  async open(port: number, { signal, weight }: OpenStreamOptions = {}): Promise<SessionStream> {
    if (weight !== undefined) assertWeight(weight);
    if (!Number.isInteger(port) || port < 0 || port > 0xffffffff) throw new LocalError('INVALID_ARGUMENT', `${port} is not a stream port`);
    if (signal?.aborted === true) throw stopped();
    const opening: Opening = { port, weight, result: new Deferred() };
    const cancel = (): void => this.#cancel(opening);
    signal?.addEventListener('abort', cancel, { once: true });
    this.#queue.add(opening);
    this.#openQueued();
    try {
      return await opening.result.promise;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  handle(event: StreamConnectionEvent): void {
    if (event.kind === 'stream') this.#offer(event.id, event.port);
    else if (event.kind === 'streams-available') this.#openQueued();
    else if (event.kind === 'accepted') this.#accepted(event.id);
    else if (event.kind === 'reset' || event.kind === 'stopped') this.#ended(event.id, event);
    else this.#streams.get(event.id)?.handle(event);
  }

  /** The session ended: everything on it fails. */
  fail(error: SvcError): void {
    for (const opening of [...this.#queue, ...this.#opening.values()]) opening.result.reject(error);
    this.#queue.clear();
    this.#opening.clear();
    for (const incoming of this.#offered.values()) incoming.withdraw();
    this.#offered.clear();
    for (const stream of [...this.#streams.values()]) stream.fail(error);
    this.#streams.clear();
  }

  #openQueued(): void {
    for (const opening of this.#queue) {
      const id = whileOpen(() => this.#connection.openStream(opening.port), -1);
      if (id < 0) break;
      this.#queue.delete(opening);
      this.#opening.set(id, opening);
    }
    this.#options.wake();
  }

  #accepted(id: number): void {
    const opening = this.#opening.get(id);
    if (opening === undefined) return;
    this.#opening.delete(id);
    const stream = this.#adopt(id, opening.port);
    if (opening.weight !== undefined) stream.setWeight(opening.weight);
    opening.result.resolve(stream);
  }

  #cancel(opening: Opening): void {
    for (const [id, other] of this.#opening) {
      if (other === opening) this.#abandon(id, StreamCode.ABORTED);
    }
    this.#queue.delete(opening);
    opening.result.reject(stopped());
  }

  #abandon(id: number, code: number): void {
    this.#opening.delete(id);
    this.#carrier.resetStream(id, code);
    this.#carrier.stopSending(id, code);
    this.#options.wake();
  }

  #offer(id: number, port: number): void {
    const incoming = new IncomingStream(port, {
      accept: () => {
        this.#offered.delete(id);
        whileOpen(() => this.#connection.acceptStream(id), undefined);
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

  /** The peer ended one direction: of a stream in use, of one it had not accepted (a refusal), or of its own offer. */
  #ended(id: number, event: Extract<ConnectionEvent, { kind: 'reset' | 'stopped' }>): void {
    const opening = this.#opening.get(id);
    if (opening !== undefined) {
      this.#abandon(id, event.code);
      opening.result.reject(streamError(event.code));
      return;
    }
    const offered = this.#offered.get(id);
    if (offered === undefined) {
      this.#streams.get(id)?.handle(event);
      return;
    }
    this.#offered.delete(id);
    offered.withdraw();
    this.#refuse(id, StreamCode.ABORTED);
  }

  #refuse(id: number, code: number): void {
    whileOpen(() => this.#connection.refuseStream(id, code), undefined);
    this.#options.wake();
  }

  #adopt(id: number, port: number): SessionStream {
    const stream = new SessionStream(this.#carrier, id, port);
    this.#streams.set(id, stream);
    return stream;
  }

  #makeCarrier(): StreamCarrier {
    const connection = this.#connection;
    return {
      scratch: this.#options.scratch,
      readStream: (id, target) => whileOpen(() => connection.readStream(id, target), 0),
      writeStream: (id, data, start, end) => whileOpen(() => connection.writeStream(id, data, start, end), 0),
      finishStream: (id) => whileOpen(() => connection.finishStream(id), undefined),
      resetStream: (id, code) => whileOpen(() => connection.resetStream(id, code), undefined),
      stopSending: (id, code) => whileOpen(() => connection.stopSending(id, code), undefined),
      setStreamWeight: (id, weight) => whileOpen(() => connection.setStreamWeight(id, weight), undefined),
      wake: this.#options.wake,
      ended: (id) => this.#streams.delete(id),
    };
  }
}

function stopped(): LocalError {
  return new LocalError('STOPPED', 'opening the stream was stopped');
}
