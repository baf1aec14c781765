/**
 * Sweeps idle sessions: what one needs only while requests or streams are under way is let go some seconds after the last of them, so that a host
 * can hold many that are idle. One timer for all of a host, and none while all are idle.
 */
import type { Cancel, Clock } from '../environment.ts';

/**
 * Our constant: ms between two looks. Long enough that requests in a row find everything in its place, short enough that memory follows what is
 * going on.
 */
const PAUSE = 5_000;

/** What can let go. */
export interface Sweepable {
  /** Lets go of what nothing under way needs. @returns false when something was needed: ask again later */
  sweep(): boolean;
}

export class IdleSweeper {
  readonly #clock: Clock;
  readonly #watched = new Set<Sweepable>();
  #cancel: Cancel | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It holds something from now on. */
  watch(one: Sweepable): void {
    this.#watched.add(one);
    this.#cancel ??= this.#clock.schedule(PAUSE, () => this.#look());
  }

  /** It is over. */
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
