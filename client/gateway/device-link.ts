/**
 * The gateway's connection to its device: one at a time, and another when it is lost, after a wait that doubles.
 *
 *   connected ── lost ──▶ waiting ── back-off ──▶ connecting ── done ──▶ connected
 *                            ▲──────── failed ────────┘└─ another key ──▶ ended
 */
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Cancel, Environment } from '../../transport/environment.ts';
import { Backoff } from '../../transport/station/backoff.ts';
import type { Connection } from '../connection.ts';
import { asSvcError } from './replies.ts';

/** What becomes of the connection. */
export interface LinkEvents {
  connected(connection: Connection): void;
  /** It is tried again. */
  lost(error: SvcError | null): void;
  /** It is not tried again: the device has another key than it is known by. */
  ended(error: SvcError): void;
}

export interface DeviceLinkOptions {
  readonly environment: Environment;
  /** Opens a connection; stops when `signal` fires. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  readonly events: LinkEvents;
}

/** A connection that stood that long begins the waits anew, ms. */
const STEADY = 30_000;

export class DeviceLink {
  readonly #options: DeviceLinkOptions;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  #since = 0;
  #retryAt = 0;
  #cancelTimer: Cancel = () => {};

  constructor(options: DeviceLinkOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.environment.crypto);
  }

  /** The connection, null while there is none. */
  get connection(): Connection | null {
    return this.#connection;
  }

  /** Seconds until another connection may stand, at least 1. */
  get retryIn(): number {
    return Math.max(1, Math.ceil((this.#retryAt - this.#options.environment.clock.now()) / 1000));
  }

  /** Takes over a connection that is connected, or begins to connect. */
  start(connection: Connection | null): void {
    if (connection !== null) this.#opened(connection);
    else void this.#connect();
  }

  /** Closes the connection, and opens none any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    const connection = this.#connection;
    this.#connection = null;
    await connection?.close();
  }

  async #connect(): Promise<void> {
    const { signal } = this.#closing;
    try {
      const connection = await this.#options.connect(signal);
      if (signal.aborted) await connection.close();
      else this.#opened(connection);
    } catch (error) {
      if (!signal.aborted) this.#failed(asSvcError(error));
    }
  }

  #opened(connection: Connection): void {
    // It may have ended before anybody listened.
    if (!connection.isConnected) {
      this.#failed(connection.closeReason);
      return;
    }
    this.#connection = connection;
    this.#since = this.#options.environment.clock.now();
    connection.addConnectionEventsListener({ onEvent: (event) => event === 'CLOSED' && this.#lost(connection) });
    this.#options.events.connected(connection);
  }

  #lost(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    if (this.#options.environment.clock.now() - this.#since >= STEADY) this.#backoff.reset();
    this.#failed(connection.closeReason);
  }

  #failed(error: SvcError | null): void {
    const { clock } = this.#options.environment;
    if (error?.code === 'FINGERPRINT_MISMATCH') {
      this.#options.events.ended(error);
      return;
    }
    const wait = this.#backoff.next();
    this.#retryAt = clock.now() + wait;
    this.#cancelTimer = clock.schedule(wait, () => void this.#connect());
    this.#options.events.lost(error);
  }
}
