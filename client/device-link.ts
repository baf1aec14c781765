/**
 * The connection of what outlives connections, a gateway or forwarded ports: one at a time, and another when it is lost, after a wait that doubles.
 *
 *   connected ── lost ──▶ waiting ── back-off ──▶ connecting ── done ──▶ connected
 *                            ▲──────── failed ────────┘└─ refused ──▶ ended
 *
 * What ends it for good: the device has another key, the base station refuses a client that it let through before (its user was deleted, the device is not
 * registered any more), or what the owner says.
 */
import { asSvcError, type ErrorCode, NoChannelsError, type SvcError } from '../protocol/errors/index.ts';
import type { Cancel, Environment } from '../transport/environment.ts';
import { Backoff } from '../transport/station/backoff.ts';
import type { Connection } from './connection.ts';

/** What becomes of the connection. */
export interface LinkEvents {
  connected(connection: Connection): void;
  /** It is tried again. */
  lost(error: SvcError | null): void;
  /** It is not tried again, see above. */
  ended(error: SvcError): void;
}

export interface DeviceLinkOptions {
  readonly environment: Environment;
  /** Opens a connection; stops when `signal` fires. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  readonly events: LinkEvents;
  /** What else ends it: asked of what `connect` fails with. */
  readonly isFinal?: (error: SvcError) => boolean;
  /** The next connect may have another token: that one is rejected ends nothing. Default false. */
  readonly renewsToken?: boolean;
}

/** What the base station says of a client or a device for as long as a person does nothing about it. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'TOKEN_REJECTED',
  'UNKNOWN_DEVICE_ID',
  'UNKNOWN_PRODUCT_ID',
  'UNKNOWN_SERVER_KEY',
]);

/** A connection that stood that long begins the waits again, ms. */
const STEADY = 30_000;

export class DeviceLink {
  readonly #options: DeviceLinkOptions;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  #since = 0;
  #retryAt = 0;
  /** The latest connection was made through the base station. */
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
    } catch (thrown) {
      const error = asSvcError(thrown);
      if (!signal.aborted) this.#failed(error, this.#options.isFinal?.(error));
    }
  }

  #opened(connection: Connection): void {
    // It may have ended before anybody listened.
    if (!connection.isConnected) {
      this.#failed(connection.closeReason);
      return;
    }
    this.#connection = connection;
    this.#isRelayed = connection.stationVerified !== null;
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

  /** The base station's word counts where the way leads through it: on the local network a device may do without. */
  #isRefusal(error: SvcError): boolean {
    if (error.code === 'FINGERPRINT_MISMATCH') return true;
    const code = error instanceof NoChannelsError ? error.remoteChannelErrorCode : error.code;
    if (code === 'TOKEN_REJECTED' && this.#options.renewsToken === true) return false;
    return this.#isRelayed && REFUSALS.has(code);
  }
}
