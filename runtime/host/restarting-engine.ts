/**
 * The engine that a host's driver sees: the Endpoint, and after a trap of its core a new one.
 *
 * A trap is a bug in the data plane; it must cost only the connections of that core. After the failing call this engine
 * returns nothing until the new core is ready. The owner is notified once, before the new endpoint exists.
 */
import type { Core } from '../../bindings/index.ts';
import type { Clock, Log } from '../../platform/environment.ts';
import type { Endpoint, EndpointEvent } from '../../protocol/endpoint/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Engine, Packets } from '../engine.ts';

export interface EngineParts {
  readonly core: Core;
  readonly endpoint: Endpoint;
}

export interface RestartingEngineOptions {
  clock: Clock;
  log: Log;
  /** Creates a core and an endpoint on it. */
  start: () => Promise<EngineParts>;
  /** The core failed: its connections are lost. */
  onFailed: () => void;
  /** A new endpoint is ready. */
  onRestarted: () => void;
  /**
   * Ten attempts in a row to create a new core have failed. Called once for each failed core; the attempts continue.
   */
  onUnrecoverable: (error: unknown) => void;
}

/** ms between attempts to create a new core. */
const RETRY = 1000;
/** Attempts after which `onUnrecoverable` is called. */
const ATTEMPTS = 10;

/** An engine that outlives its core. */
export class RestartingEngine implements Engine<EndpointEvent> {
  /** Packet slots of each of its cores. */
  readonly slots: number;
  readonly #options: RestartingEngineOptions;
  #running: EngineParts | null;
  #closed = false;

  constructor(running: EngineParts, options: RestartingEngineOptions) {
    this.slots = running.endpoint.slots;
    this.#running = running;
    this.#options = options;
  }

  /** @throws LocalError CORE_FAILED while there is none */
  get endpoint(): Endpoint {
    this.#check();
    if (this.#running === null) throw new LocalError('CORE_FAILED', 'the data plane failed and is restarting');
    return this.#running.endpoint;
  }

  /** The core; null while it restarts. */
  get core(): Core | null {
    return this.#running?.core ?? null;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Stops restarting. */
  close(): void {
    this.#closed = true;
  }

  // No closures below: these run for every packet.

  receive(datagram: Uint8Array, path: Path, now: number): void {
    try {
      this.#running?.endpoint.receive(datagram, path, now);
    } catch (error) {
      this.#caught(error);
    }
  }

  transmit(now: number, room: (socket: number) => number): Packets | null {
    try {
      return this.#running?.endpoint.transmit(now, room) ?? null;
    } catch (error) {
      this.#caught(error);
      return null;
    }
  }

  nextTimeout(): number {
    try {
      return this.#running?.endpoint.nextTimeout() ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      this.#caught(error);
      return Number.POSITIVE_INFINITY;
    }
  }

  handleTimeout(now: number): void {
    try {
      this.#running?.endpoint.handleTimeout(now);
    } catch (error) {
      this.#caught(error);
    }
  }

  nextEvent(): EndpointEvent | null {
    this.#check();
    try {
      return this.#running?.endpoint.nextEvent() ?? null;
    } catch (error) {
      this.#caught(error);
      return null;
    }
  }

  #caught(error: unknown): void {
    if (this.#running?.core.failed !== true) throw error;
    this.#fail(error);
  }

  /** The endpoint, or a call of the application outside a service, may have hit the trap. */
  #check(): void {
    if (this.#running?.core.failed === true) this.#fail(null);
  }

  #fail(error: unknown): void {
    this.#running = null;
    const { log, onFailed } = this.#options;
    log.error('the data plane failed, its connections are lost; please report it', error === null ? {} : { error: String(error) });
    onFailed();
    void this.#restart(1);
  }

  async #restart(attempt: number): Promise<void> {
    const { start, onRestarted, onUnrecoverable, clock, log } = this.#options;
    if (this.#closed) return;
    try {
      const running = await start();
      if (this.#closed) return;
      this.#running = running;
      onRestarted();
    } catch (error) {
      log.error('the data plane cannot be restarted; trying again', { error: String(error) });
      if (attempt === ATTEMPTS) onUnrecoverable(error);
      clock.schedule(RETRY, () => void this.#restart(attempt + 1));
    }
  }
}
