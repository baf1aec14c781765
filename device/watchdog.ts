/**
 * Calls back once when a device is not attached and its attach state has not changed for 10 minutes; any change
 * restarts the time.
 */
import type { Cancel, Clock } from '../platform/environment.ts';

const LIMIT = 10 * 60_000;

export class Watchdog {
  readonly #clock: Clock;
  readonly #bark: () => void;
  #cancel: Cancel | null = null;

  constructor(clock: Clock, bark: () => void) {
    this.#clock = clock;
    this.#bark = bark;
  }

  /** Restarts the time: the state changed, and not to attached. */
  restart(): void {
    this.stop();
    this.#cancel = this.#clock.schedule(LIMIT, this.#bark);
  }

  /** Stops the time: the device is attached, or no longer tries. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
