/**
 * Sweeps idle sessions: what a session needs only while requests or streams are under way is freed some seconds after
 * the last of them, so that a host can hold many idle ones. One timer for a whole host, and none while all are idle.
 */
import type { Cancel, Clock } from '../../platform/environment.ts';

/**
 * Our constant: ms between two sweeps. Long enough that consecutive requests reuse everything, short enough that memory
 * follows the activity.
 */
export const PAUSE = 5_000;

/** An object that can free memory. */
export interface Sweepable {
  /** Frees what nothing under way needs. @returns false when something was needed: call again later */
  sweep(): boolean;
}

export class IdleSweeper {
  readonly #clock: Clock;
  readonly #watched = new Set<Sweepable>();
  #cancel: Cancel | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sweeps the object from now on. */
  watch(one: Sweepable): void {
    this.#watched.add(one);
    this.#cancel ??= this.#clock.schedule(PAUSE, () => this.#look());
  }

  /** Stops sweeping it. */
  forget(one: Sweepable): void {
    this.#watched.delete(one);
    if (this.#watched.size === 0) this.#stop();
  }

  #look(): void {
    this.#stop();
    for (const one of this.#watched) if (one.sweep()) this.#watched.delete(one);
    if (this.#watched.size > 0) this.#cancel = this.#clock.schedule(PAUSE, () => this.#look());
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
