/**
 * One timer for the earliest of many deadlines. It is only moved forward: when a deadline moves back, it rings for
 * nothing, and its owner sets it again.
 */
import type { Cancel, Clock } from '../platform/environment.ts';

export class Alarm {
  readonly #clock: Pick<Clock, 'now' | 'schedule'>;
  readonly #ring: () => void;
  #at = Number.POSITIVE_INFINITY;
  #cancel: Cancel = () => {};

  /** @param ring called when it is due, perhaps a little early; usually sets the alarm again */
  constructor(clock: Pick<Clock, 'now' | 'schedule'>, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at that time, ms, unless it is set to an earlier one; Infinity changes nothing. */
  set(at: number): void {
    if (at >= this.#at) return;
    this.clear();
    this.#at = at;
    this.#cancel = this.#clock.schedule(Math.max(0, at - this.#clock.now()), () => {
      this.#at = Number.POSITIVE_INFINITY;
      this.#ring();
    });
  }

  /** Does not ring until it is set again. */
  clear(): void {
    this.#cancel();
    this.#at = Number.POSITIVE_INFINITY;
  }
}
