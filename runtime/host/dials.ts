/**
 * The connects of a host: each from its handshake to the session that comes of it, or to the error that ends it. Two
 * kinds: over a path that is known, and prepared, whose Initiate travels in a request to the base station.
 */
import type { Clock } from '../../platform/environment.ts';
import type { Connection } from '../../protocol/connection/index.ts';
import type { Endpoint, PrepareOptions } from '../../protocol/endpoint/index.ts';
import { CloseCode, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Deferred } from '../deferred.ts';
import type { Attempt } from '../race.ts';
import type { Session } from '../session/session.ts';
import type { ConnectOptions, ConnectTarget, PreparedConnect } from './config.ts';
import type { Routes } from './routes.ts';
import type { Sockets } from './sockets.ts';

/** ms for a handshake when `connect` names none. */
const CONNECT_TIMEOUT = 10_000;

/** A connect under way. */
interface Dial {
  readonly target: ConnectTarget;
  readonly connection: Connection;
  /** Null while a prepared one waits for its Respond. */
  path: Path | null;
  readonly result: Deferred<Session>;
}

export interface DialsOptions {
  readonly clock: Clock;
  /** @throws LocalError CORE_FAILED while there is none */
  readonly endpoint: () => Endpoint;
  readonly sockets: Sockets;
  readonly routes: Routes;
  /** @throws LocalError STOPPED when the host is closed */
  readonly assertOpen: () => void;
  /** Wakes the driver. */
  readonly wake: () => void;
  /** Makes the session of a connection that has opened. */
  readonly opened: (connection: Connection, target: ConnectTarget) => Session;
}

/** The connects under way at one host. */
export class Dials {
  readonly #options: DialsOptions;
  readonly #dials = new Map<Connection, Dial>();

  constructor(options: DialsOptions) {
    this.#options = options;
  }

  /** The paths of the connects that have one. */
  get paths(): readonly Path[] {
    return [...this.#dials.values()].flatMap(({ path }) => path ?? []);
  }

  /**
   * Connects; resolves when the peer is authenticated.
   * @throws TIMEOUT; STOPPED (signal, host closed); RemoteError FINGERPRINT_MISMATCH, WRONG_PRODUCT_ID,
   *   WRONG_DEVICE_ID; OUT_OF_MEMORY; INVALID_ARGUMENT. A peer without a free slot ends the new session with
   *   DEVICE_INTERNAL_ERROR.
   */
  async connect(options: ConnectOptions): Promise<Session> {
    if (options.signal?.aborted === true) throw new LocalError('STOPPED', 'the connect was stopped');
    return this.#result(this.#start(options));
  }

  /** `connect` for callers that race attempts; ignores `signal`. Throws for invalid arguments or a closed host. */
  start(options: ConnectOptions): Attempt<Session> {
    const dial = this.#start(options);
    return { result: dial.result.promise, cancel: () => this.#cancel(dial) };
  }

  #start(options: ConnectOptions): Dial {
    const { assertOpen, clock, endpoint, routes, sockets } = this.#options;
    assertOpen();
    const path = 'path' in options ? options.path : sockets.path(options.address, options.port, options.socket);
    const now = clock.now();
    const handshake = { ...handshakeOf(options, now), ...routes.optionsOf(path), path };
    return this.#begin(options, endpoint().connect(handshake, now), path);
  }

  /** First half of a connect through the base station. @throws as connect; `signal` counts from `establish` on */
  prepare(target: ConnectTarget): PreparedConnect {
    const { assertOpen, clock, endpoint } = this.#options;
    assertOpen();
    const now = clock.now();
    const dial = this.#begin(target, endpoint().prepare(handshakeOf(target, now), now), null);
    return {
      initiate: dial.connection.initiate ?? new Uint8Array(0),
      establish: (respond, path) => this.#establish(dial, respond, path),
      cancel: () => this.#cancel(dial),
    };
  }

  /** For the host: the connection has events, and no session. */
  drain(connection: Connection): void {
    const dial = this.#dials.get(connection);
    for (let event = connection.nextEvent(); event !== null; event = connection.nextEvent()) {
      if (dial === undefined) continue;
      if (event.kind === 'opened') {
        this.#dials.delete(connection);
        dial.result.resolve(this.#options.opened(connection, dial.target));
        return;
      }
      if (event.kind === 'failed' || event.kind === 'closed') this.#fail(dial, event.error ?? new RemoteError('CLOSED', 'closed'));
    }
  }

  /** Ends the connects whose path is lost. */
  fail(isLost: (path: Path) => boolean, error: SvcError): void {
    for (const dial of [...this.#dials.values()]) if (dial.path !== null && isLost(dial.path)) this.#fail(dial, error);
  }

  /** Ends all connects without a packet: their core has failed. */
  abandon(error: SvcError): void {
    for (const { result } of this.#dials.values()) result.reject(error);
    this.#dials.clear();
  }

  /** Stops all connects: the host closes. */
  close(): void {
    for (const dial of [...this.#dials.values()]) this.#cancel(dial);
  }

  #begin(target: ConnectTarget, connection: Connection, path: Path | null): Dial {
    const dial: Dial = { target, connection, path, result: Deferred.quiet() };
    this.#dials.set(connection, dial);
    this.#options.wake();
    return dial;
  }

  async #establish(dial: Dial, respond: Uint8Array, path: Path): Promise<Session> {
    const { clock, endpoint, routes, wake } = this.#options;
    if (dial.target.signal?.aborted === true) this.#cancel(dial);
    if (this.#dials.has(dial.connection)) {
      dial.path = path;
      endpoint().respond(dial.connection, respond, path, clock.now(), routes.optionsOf(path));
      wake();
    } else routes.unused(path);
    return this.#result(dial);
  }

  /** Settles as the dial does; the signal of its target cancels it. */
  async #result(dial: Dial): Promise<Session> {
    const { signal } = dial.target;
    const cancel = (): void => this.#cancel(dial);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await dial.result.promise;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #cancel(dial: Dial): void {
    this.#fail(dial, new LocalError('STOPPED', 'the connect was stopped'));
  }

  #fail(dial: Dial, error: SvcError): void {
    if (!this.#dials.delete(dial.connection)) return;
    dial.result.reject(error);
    dial.connection.close(CloseCode.NO_ERROR, '', this.#options.clock.now());
    this.#options.wake(); // its route may be unused now
  }
}

/** Returns the endpoint's options for a connect. @param now ms on the clock of the endpoint */
function handshakeOf(target: ConnectTarget, now: number): PrepareOptions & { readonly firstTimeout?: 250 | 500 } {
  return { ...target, deadline: now + (target.timeout ?? CONNECT_TIMEOUT) };
}
