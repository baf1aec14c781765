/**
 * The connection behind a gateway or forwarded ports: one at a time, replaced when it is lost, after a wait that
 * doubles.
 *
 *   connected ── lost ──▶ waiting ── back-off ──▶ connecting ── done ──▶ connected
 *                            ▲──────── failed ────────┘└─ refused ──▶ ended
 *
 * It ends permanently when the device has another key, when the base station refuses a client that it accepted before
 * (its user was deleted, the device is no longer registered), or when the owner closes it.
 */

import type { Cancel, Environment } from '../platform/environment.ts';
import { asSvcError, type ErrorCode, NoChannelsError, type SvcError } from '../protocol/errors/index.ts';
import { Backoff } from '../runtime/station/backoff.ts';
import type { Connection } from './connection.ts';

/** Changes of the connection. */
export interface LinkEvents {
  connected(connection: Connection): void;
  /** The connection was lost or could not be made; another attempt follows. */
  lost(error: SvcError | null): void;
  /** The link has ended permanently, see above. */
  ended(error: SvcError): void;
}

export interface DeviceLinkOptions {
  readonly environment: Environment;
  /** Opens a connection; stops when `signal` fires. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  readonly events: LinkEvents;
  /** Further errors of `connect` that end it. */
  readonly isFinal?: (error: SvcError) => boolean;
  /** The next connect may have another token, so that a rejected token does not end the link. Default false. */
  readonly renewsToken?: boolean;
}

/** Answers of the base station that stay the same until a person acts. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'TOKEN_REJECTED',
  'UNKNOWN_DEVICE_ID',
  'UNKNOWN_PRODUCT_ID',
  'UNKNOWN_SERVER_KEY',
]);

/** A connection that stayed open this long, ms, resets the back-off. */
const STEADY = 30_000;

export class DeviceLink {
  readonly #options: DeviceLinkOptions;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  #since = 0;
  #retryAt = 0;
  /** Whether the latest connection was made through the base station. */
  #isRelayed = false;
  #cancelTimer: Cancel = () => {};

  constructor(options: DeviceLinkOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.environment.crypto);
  }

  /** The connection, null while there is none. */
  get connection(): Connection | null {
    return this.#connection;
  }

  /** Seconds until the next connection can be open, at least 1. */
  get retryIn(): number {
    return Math.max(1, Math.ceil((this.#retryAt - this.#options.environment.clock.now()) / 1000));
  }

  /** Takes over an open connection, or begins to connect. */
  start(connection: Connection | null): void {
    if (connection !== null) this.#opened(connection);
    else void this.#connect();
  }

  /** Closes the connection, and opens no further one. */
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
    } catch (thrown) {
      const error = asSvcError(thrown);
      if (!signal.aborted) this.#failed(error, this.#options.isFinal?.(error));
    }
  }

  #opened(connection: Connection): void {
    // It may have ended before a listener was added.
    if (!connection.isConnected) {
      this.#failed(connection.closeReason);
      return;
    }
    this.#connection = connection;
    this.#isRelayed = connection.stationVerified !== null;
    this.#since = this.#options.environment.clock.now();
    connection.on('close', () => this.#lost(connection));
    this.#options.events.connected(connection);
  }

  #lost(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    if (this.#options.environment.clock.now() - this.#since >= STEADY) this.#backoff.reset();
    this.#failed(connection.closeReason);
  }

  #failed(error: SvcError | null, isFinal = false): void {
    const { clock } = this.#options.environment;
    if (error !== null && (isFinal || this.#isRefusal(error))) {
      this.#options.events.ended(error);
      return;
    }
    const wait = this.#backoff.next();
    this.#retryAt = clock.now() + wait;
    this.#cancelTimer = clock.schedule(wait, () => void this.#connect());
    this.#options.events.lost(error);
  }

  /**
   * A refusal by the base station counts only for a connection through it: on the local network a device may not need
   * it.
   */
  #isRefusal(error: SvcError): boolean {
    if (error.code === 'FINGERPRINT_MISMATCH') return true;
    const code = error instanceof NoChannelsError ? error.remoteChannelErrorCode : error.code;
    if (code === 'TOKEN_REJECTED' && this.#options.renewsToken === true) return false;
    return this.#isRelayed && REFUSALS.has(code);
  }
}
