/**
 * One flow of a UDP tunnel on the client: the byte stream that represents it, and its datagrams (PROTOCOL.md §12).
 *
 * Datagrams are sent with the opening of the stream, without waiting for the device. A few are queued, but only while
 * the peer grants no stream.
 */

import type { Cancel, Clock } from '../../platform/environment.ts';
import { asSvcError, type SvcError } from '../../protocol/errors/index.ts';
import type { DatagramCounts, DatagramFlow, Session, Stream } from '../../runtime/session/index.ts';

/** Our constant: datagrams that wait for a stream; the oldest is dropped first. */
export const MAX_WAITING = 16;

/** The session and stream port that a tunnel leads to. */
export interface Target {
  readonly session: Session;
  readonly streamPort: number;
}

/** The parts of a flow; its session is open. */
export interface LocalFlowOptions extends Target {
  readonly clock: Clock;
  /** ms */
  readonly idleTimeout: number;
  /** Updated by the flow. */
  readonly counts: DatagramCounts;
  readonly receive: (payload: Uint8Array) => void;
  /** Called once. @param failure why the device refused or reset it; null: it ended normally */
  readonly onEnd: (failure: SvcError | null) => void;
}

export class LocalFlow {
  readonly #options: LocalFlowOptions;
  #stream: Stream | null = null;
  #datagrams: DatagramFlow | null = null;
  #waiting: Uint8Array[] = [];
  #state: 'open' | 'ended' | 'failed' = 'open';
  #lastUsed: number;
  #cancelTimer: Cancel;

  constructor(options: LocalFlowOptions) {
    const { clock, idleTimeout } = options;
    this.#options = options;
    this.#lastUsed = clock.now();
    this.#cancelTimer = clock.schedule(idleTimeout, () => this.#lookWhetherIdle());
  }

  /** Opens the stream. Datagrams of the device may arrive at once. @throws NOT_CONNECTED when the session is over */
  start(): void {
    const { session, streamPort } = this.#options;
    const stream = session.streams.open(streamPort);
    this.#stream = stream;
    this.#begin(stream);
    stream.opened.then(
      () => this.#begin(stream),
      () => {},
    );
    void this.#readToEnd(stream);
  }

  /** Whether the device refused or reset the flow. */
  get failed(): boolean {
    return this.#state === 'failed';
  }

  /** @param payload may be reused when this returns */
  send(payload: Uint8Array): void {
    if (this.#state !== 'open') return;
    this.#lastUsed = this.#options.clock.now();
    if (this.#datagrams !== null) this.#datagrams.send(payload);
    else if (this.#waiting.push(new Uint8Array(payload)) > MAX_WAITING) {
      this.#waiting.shift();
      this.#options.counts.dropped++;
    }
  }

  /** Ends the flow and, with it, the stream. */
  end(): void {
    this.#stop(null);
    this.#stream?.close().catch(() => {});
  }

  /** Ends it at once. */
  abort(): void {
    this.#stop(null);
    this.#stream?.abort();
  }

  /** Called as soon as the stream has its id. */
  #begin(stream: Stream): void {
    if (this.#datagrams !== null || stream.id < 0 || this.#state !== 'open') return;
    const receive = (payload: Uint8Array): void => {
      this.#lastUsed = this.#options.clock.now();
      this.#options.receive(payload);
    };
    const datagrams = this.#options.session.datagrams.open(stream.id, receive, this.#options.counts);
    this.#datagrams = datagrams;
    for (const payload of this.#waiting.splice(0)) datagrams.send(payload);
  }

  /** The end of the stream is the end of the flow. Bytes on it have no meaning yet and are ignored. */
  async #readToEnd(stream: Stream): Promise<void> {
    try {
      for (;;) await stream.read();
    } catch (thrown) {
      const error = asSvcError(thrown);
      const isEnd = error.code === 'END_OF_FILE';
      this.#stop(isEnd ? null : error);
      if (isEnd) stream.close().catch(() => {});
      else stream.abort();
    }
  }

  #lookWhetherIdle(): void {
    const { clock, idleTimeout } = this.#options;
    const rest = this.#lastUsed + idleTimeout - clock.now();
    if (rest > 0) this.#cancelTimer = clock.schedule(rest, () => this.#lookWhetherIdle());
    else this.end();
  }

  #stop(failure: SvcError | null): void {
    if (this.#state !== 'open') return;
    this.#state = failure === null ? 'ended' : 'failed';
    this.#cancelTimer();
    this.#datagrams?.close();
    this.#options.counts.dropped += this.#waiting.splice(0).length;
    this.#options.onEnd(failure);
  }
}
