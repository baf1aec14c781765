/**
 * Lets sessions rest: what one needs only while requests or streams are under way is let go some seconds after the last of them, so that a host
 * can hold many that are idle. One timer for all of a host, and none while all rest.
 */
import type { Cancel, Clock } from '../environment.ts';

/**
 * Our constant: ms between two looks. Long enough that requests in a row find everything in its place, short enough that memory follows what is
 * going on.
 */
const PAUSE = 5_000;

/** What can let go. */
export interface Restful {
  /** Lets go of what nothing under way needs. @returns false when something was needed: ask again later */
  rest(): boolean;
}

export class Resting {
  readonly #clock: Clock;
  readonly #awake = new Set<Restful>();
  #cancel: Cancel | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It holds something from now on. */
  woke(one: Restful): void {
    this.#awake.add(one);
    this.#cancel ??= this.#clock.schedule(PAUSE, () => this.#look());
  }

  /** It is over. */
  forget(one: Restful): void {
    this.#awake.delete(one);
    if (this.#awake.size === 0) this.#stop();
  }

  #look(): void {
    this.#stop();
    for (const one of this.#awake) if (one.rest()) this.#awake.delete(one);
    if (this.#awake.size > 0) this.#cancel = this.#clock.schedule(PAUSE, () => this.#look());
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
