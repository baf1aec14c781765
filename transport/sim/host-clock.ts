/**
 * The clocks and timers of a simulated host, which may sleep.
 *
 * 1. While the host sleeps nothing of it runs. What is due meanwhile waits, in the order in which it was due.
 * 2. Its monotonic clock stands still then, as CLOCK_MONOTONIC of Linux does, so that timers have the time left that they had; or it runs on, as on
 *    Windows, and what is overdue runs when it wakes.
 * 3. Its wall clock runs through sleep, and can be set.
 *
 * Events are in time of the simulation, which is the monotonic clock of a host that never slept.
 */
import type { Cancel, Clock } from '../environment.ts';
import { Phase, type SimulationEvent } from './event-queue.ts';

/** Time of the simulation. */
export interface WorldClock {
  readonly now: number;
  readonly wallTime: number;
  at(time: number, phase: Phase, run: () => void): SimulationEvent;
}

interface Timer {
  /** On the monotonic clock of the host. */
  readonly due: number;
  readonly phase: Phase;
  /** Null when it was cancelled, or has run. */
  run: (() => void) | null;
  /** Null while it waits for the host to wake. */
  event: SimulationEvent | null;
}

/** Rounding of times, ms. */
const EPSILON = 1e-6;

/** Clocks and timers of one host. */
export class HostClock implements Clock {
  readonly #world: WorldClock;
  readonly #isAlive: () => boolean;
  readonly #runsAsleep: boolean;
  /** ms by which the monotonic clock is behind time of the simulation. */
  #behind = 0;
  #wallOffset = 0;
  /** Time of the simulation; null when awake. */
  #asleepSince: number | null = null;
  #waking: SimulationEvent | null = null;
  #paused: Timer[] = [];

  /** @param runsAsleep the monotonic clock does not stand still while the host sleeps */
  constructor(world: WorldClock, isAlive: () => boolean, runsAsleep: boolean) {
    this.#world = world;
    this.#isAlive = isAlive;
    this.#runsAsleep = runsAsleep;
  }

  get isAsleep(): boolean {
    return this.#asleepSince !== null;
  }

  readonly now = (): number => {
    const time = this.#asleepSince === null || this.#runsAsleep ? this.#world.now : this.#asleepSince;
    return time - this.#behind;
  };

  readonly wallTime = (): number => this.#world.wallTime + this.#wallOffset;

  readonly schedule = (delay: number, run: () => void): Cancel => {
    if (delay === Number.POSITIVE_INFINITY) return () => {};
    return this.#start(Math.max(0, delay || 0), Phase.ARRIVAL, run);
  };

  readonly defer = (run: () => void): void => void this.#start(0, Phase.DEFERRED, run);

  readonly soon = (run: () => void): void => void this.#start(0, Phase.DEFERRED, run);

  /** Somebody sets the wall clock. @param time Unix ms */
  setWallTime(time: number): void {
    this.#wallOffset = time - this.#world.wallTime;
  }

  /** For the host: it sleeps for so many ms of the simulation, from now on. @param woke called when it wakes by itself */
  sleep(ms: number, woke: () => void): void {
    this.#asleepSince ??= this.#world.now;
    if (this.#waking !== null) this.#waking.run = null;
    this.#waking = ms === Number.POSITIVE_INFINITY ? null : this.#world.at(this.#world.now + ms, Phase.ARRIVAL, woke);
  }

  /** For the host: it is awake from now on. */
  wake(): void {
    if (this.#asleepSince === null) return;
    if (this.#waking !== null) this.#waking.run = null;
    this.#waking = null;
    if (!this.#runsAsleep) this.#behind += this.#world.now - this.#asleepSince;
    this.#asleepSince = null;
    for (const timer of this.#paused.splice(0)) if (timer.run !== null) this.#enqueue(timer);
  }

  /** For the host: something happens to it. At once, or when it wakes. */
  run(action: () => void): void {
    if (this.isAsleep) this.#start(0, Phase.ARRIVAL, action);
    else if (this.#isAlive()) action();
  }

  #start(delay: number, phase: Phase, run: () => void): Cancel {
    const timer: Timer = { due: this.now() + delay, phase, run, event: null };
    const at = this.#world.now + delay;
    // The clock of a host that slept is finer than time of the simulation: what is due in less than a step of that must not come at once, again and again.
    this.#push(timer, delay > 0 && at === this.#world.now ? at + EPSILON : at);
    return () => {
      timer.run = null;
      if (timer.event !== null) timer.event.run = null;
    };
  }

  #enqueue(timer: Timer): void {
    this.#push(timer, this.#world.now + Math.max(0, timer.due - this.now()));
  }

  #push(timer: Timer, time: number): void {
    timer.event = this.#world.at(time, timer.phase, () => this.#fire(timer));
  }

  #fire(timer: Timer): void {
    timer.event = null;
    if (!this.#isAlive()) return;
    if (this.isAsleep) {
      this.#paused.push(timer);
    } else if (timer.due - this.now() > EPSILON) {
      this.#enqueue(timer);
    } else {
      const { run } = timer;
      timer.run = null;
      run?.();
    }
  }
}
