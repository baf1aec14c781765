import type { Clock } from '../../platform/environment.ts';

/** Time that stands still until the test lets it pass; scheduled work runs on the way. */
export class ManualClock implements Clock {
  timers: { at: number; run: () => void }[] = [];
  readonly #wallStart: number;
  #now: number;

  /** @param wallStart Unix time where `now` is 0 */
  constructor(start = 0, wallStart = 0) {
    this.#now = start;
    this.#wallStart = wallStart;
  }

  now = (): number => this.#now;
  wallTime = (): number => this.#wallStart + this.#now;
  schedule = (delay: number, run: () => void): (() => void) => {
    const timer = { at: this.#now + delay, run };
    this.timers.push(timer);
    return () => this.#drop(timer);
  };
  defer = (): void => {};
  soon = (): void => {};

  pass(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#drop(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
  }

  #drop(timer: object): void {
    this.timers = this.timers.filter((each) => each !== timer);
  }
}
