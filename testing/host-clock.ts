/**
 * The clocks and timers of a simulated host, which may sleep.
 *
 * 1. While the host sleeps, none of its code runs. Events that become due wait, in order.
 * 2. Its monotonic clock stands still then, as CLOCK_MONOTONIC of Linux does, so that timers keep their remaining time;
 *    or it continues, as on Windows, and overdue timers fire when the host wakes.
 * 3. Its wall clock runs during sleep, and can be set.
 *
 * Events are in simulation time, which is the monotonic clock of a host that never slept.
 */
import type { Cancel, Clock } from '../platform/environment.ts';
import { Phase, type SimulationEvent } from './event-queue.ts';

/** Simulation time. */
export interface WorldClock {
  readonly now: number;
  readonly wallTime: number;
  at(time: number, phase: Phase, run: () => void): SimulationEvent;
}

interface Timer {
  /** On the host's monotonic clock. */
  readonly due: number;
  readonly phase: Phase;
  /** Null when it was cancelled or has run. */
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
  /** ms by which the monotonic clock is behind simulation time. */
  #behind = 0;
  #wallOffset = 0;
  /** Simulation time; null when awake. */
  #asleepSince: number | null = null;
  #waking: SimulationEvent | null = null;
  #paused: Timer[] = [];

  /** @param runsAsleep the monotonic clock continues while the host sleeps */
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

  /** Sets the wall clock. @param time Unix ms */
  setWallTime(time: number): void {
    this.#wallOffset = time - this.#world.wallTime;
  }

  /** For the host: begins a sleep of `ms` of simulation time. @param woke called when it wakes by itself */
  sleep(ms: number, woke: () => void): void {
    this.#asleepSince ??= this.#world.now;
    if (this.#waking !== null) this.#waking.run = null;
    this.#waking = ms === Number.POSITIVE_INFINITY ? null : this.#world.at(this.#world.now + ms, Phase.ARRIVAL, woke);
  }

  /** For the host: wakes it. */
  wake(): void {
    if (this.#asleepSince === null) return;
    if (this.#waking !== null) this.#waking.run = null;
    this.#waking = null;
    if (!this.#runsAsleep) this.#behind += this.#world.now - this.#asleepSince;
    this.#asleepSince = null;
    for (const timer of this.#paused.splice(0)) if (timer.run !== null) this.#enqueue(timer);
  }

  /** For the host: runs an event, immediately or when it wakes. */
  run(action: () => void): void {
    if (this.isAsleep) this.#start(0, Phase.ARRIVAL, action);
    else if (this.#isAlive()) action();
  }

  #start(delay: number, phase: Phase, run: () => void): Cancel {
    const timer: Timer = { due: this.now() + delay, phase, run, event: null };
    const at = this.#world.now + delay;
    // The clock of a host that slept is finer than simulation time: a timer due in less than one step of that must not
    // fire at once, again and again.
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
