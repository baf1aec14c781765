/**
 * Stream listeners: which handler serves which port of the device. A stream to a port without a listener is refused.
 */

import type { Log } from '../platform/environment.ts';
import { callback, check, whole } from '../protocol/arguments.ts';
import { LocalError, StreamCode } from '../protocol/errors/index.ts';
import type { IncomingStream, Stream } from '../runtime/session/index.ts';
import type { DeviceConnection } from './connections.ts';

/** The first ephemeral port: the device assigns ports from here on. */
const FIRST_EPHEMERAL_PORT = 0x8000_0000;
const LAST_PORT = 0xffff_ffff;

/** A stream that a client wants to open. Accept or refuse it within 30 s; later it is reset. */
export interface DeviceStream {
  readonly port: number;
  readonly connection: DeviceConnection;
  /**
   * Starts the flow of data.
   * @throws LocalError STOPPED when the client gave up meanwhile; INVALID_STATE when decided before
   */
  accept(): Stream;
  /** Refuses the stream: the client's open fails with STOPPED. */
  refuse(code?: number): void;
}

/** An error of a handler that carries the code for refusing its stream. */
export class StreamRefusal extends Error {
  readonly streamCode: number;

  constructor(streamCode: number, cause: Error) {
    super(cause.message, { cause });
    this.streamCode = streamCode;
  }
}

/** Receives every stream to its port; an error ends the stream. */
export type StreamHandler = (stream: DeviceStream) => void | Promise<void>;

/** A port with its listener. */
export interface StreamListener {
  /** The given port, or an ephemeral one (≥ 0x80000000). */
  readonly port: number;
  /** Stops listening; open streams continue. */
  close(): void;
}

export class StreamListeners {
  readonly #log: Log;
  readonly #handlers = new Map<number, StreamHandler>();
  #nextEphemeral = FIRST_EPHEMERAL_PORT;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * @param port 1 to 2^32 − 1, or 0 for an ephemeral one
   * @throws LocalError OPERATION_IN_PROGRESS when the port has a listener; INVALID_ARGUMENT
   */
  listen(port: number, handler: StreamHandler): StreamListener {
    check('the stream port', port, whole(0, LAST_PORT));
    check('the stream handler', handler, callback);
    const chosen = port === 0 ? this.#ephemeral() : port;
    if (this.#handlers.has(chosen)) throw new LocalError('OPERATION_IN_PROGRESS', `stream port ${chosen} already has a listener`);
    this.#handlers.set(chosen, handler);
    return { port: chosen, close: () => this.#handlers.get(chosen) === handler && this.#handlers.delete(chosen) };
  }

  /** Passes a stream that arrived on a client's session to its handler. */
  arrived(stream: IncomingStream, connection: DeviceConnection): void {
    const handler = this.#handlers.get(stream.port);
    if (handler === undefined) stream.refuse(StreamCode.STREAM_REFUSED);
    else this.#run(handler, stream, connection);
  }

  /** A handler that fails ends its stream, accepted or not. */
  async #run(handler: StreamHandler, stream: IncomingStream, connection: DeviceConnection): Promise<void> {
    let accepted: Stream | null = null;
    const accept = () => {
      accepted = stream.accept();
      return accepted;
    };
    try {
      await handler({ port: stream.port, connection, accept, refuse: (code) => stream.refuse(code) });
    } catch (error) {
      this.#log.warn('a stream ended with an error', { port: stream.port, error: String(error) });
      if (accepted === null) stream.refuse(error instanceof StreamRefusal ? error.streamCode : StreamCode.SERVICE_FAILED);
      else (accepted as Stream).abort(StreamCode.SERVICE_FAILED);
    }
  }

  #ephemeral(): number {
    while (this.#handlers.has(this.#nextEphemeral)) this.#advance();
    const port = this.#nextEphemeral;
    this.#advance();
    return port;
  }

  #advance(): void {
    this.#nextEphemeral = this.#nextEphemeral === LAST_PORT ? FIRST_EPHEMERAL_PORT : this.#nextEphemeral + 1;
  }
}
