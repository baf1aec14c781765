/**
 * Drives parts that have the four verbs (ARCHITECTURE.md) through virtual time, and checks the rules of the verbs:
 *
 * 1. `transmit` and `nextEvent` end.
 * 2. `handleTimeout` before its time does nothing.
 * 3. After `handleTimeout`, once `transmit` and `nextEvent` returned null, `nextTimeout` lies in the future: no driver
 *    spins.
 */

/** A part with a timer. It has `transmit` and `nextEvent` if it has outputs and events. */
export interface Part<Output, Event> {
  nextTimeout(): number;
  handleTimeout(now: number): void;
  transmit?(now: number): Output | null;
  nextEvent?(): Event | null;
}

/** Handles the output of a part. */
export interface Handlers<Output, Event> {
  output?(output: Output, now: number): void;
  event?(event: Event, now: number): void;
}

interface Driven {
  readonly part: Part<unknown, unknown>;
  readonly handlers: Handlers<unknown, unknown>;
}

/** More outputs and events than any part of the tests has at one time. */
const ENDLESS = 10_000;

/** Virtual time for any number of parts. */
export class VirtualDriver {
  now = 0;
  readonly #driven: Driven[] = [];
  #calls: { readonly at: number; readonly run: () => void }[] = [];

  add<Output, Event>(part: Part<Output, Event>, handlers: Handlers<Output, Event> = {}): void {
    this.#driven.push({ part, handlers } as Driven);
  }

  /** Schedules an arrival, or a call of the application, at a time from now on. */
  at(time: number, run: () => void): void {
    this.#calls.push({ at: time, run });
  }

  /** Advances from one timeout or call to the next. */
  run(until: number): void {
    this.#drainAll();
    for (let next = this.#next(); next <= until; next = this.#next()) {
      this.#wakeEarly(next);
      this.now = Math.max(this.now, next);
      this.#call();
      this.#wake();
    }
    this.now = until;
  }

  #next(): number {
    return Math.min(...this.#calls.map(({ at }) => at), ...this.#driven.map(({ part }) => timeoutOf(part)));
  }

  #call(): void {
    const due = this.#calls.filter(({ at }) => at <= this.now);
    this.#calls = this.#calls.filter(({ at }) => at > this.now);
    for (const { run } of due) run();
    this.#drainAll();
  }

  #wake(): void {
    for (const driven of this.#driven.filter(({ part }) => timeoutOf(part) <= this.now)) {
      driven.part.handleTimeout(this.now);
      this.#drain(driven);
      const next = timeoutOf(driven.part);
      if (next <= this.now) throw new Error(`handled its timeout at ${this.now}, and wants to be called at ${next}`);
    }
  }

  #wakeEarly(next: number): void {
    const early = this.now + (next - this.now) / 2;
    if (!(early > this.now && early < next)) return;
    for (const driven of this.#driven) {
      const before = timeoutOf(driven.part);
      driven.part.handleTimeout(early);
      if (this.#drain(driven) > 0 || timeoutOf(driven.part) !== before) throw new Error(`acted at ${early}, before its time ${before}`);
    }
  }

  #drainAll(): void {
    for (const driven of this.#driven) this.#drain(driven);
  }

  /** @returns the number of outputs and events */
  #drain({ part, handlers }: Driven): number {
    for (let count = 0; count < ENDLESS; count++) {
      const early = part.nextEvent?.() ?? null;
      const output = early === null ? (part.transmit?.(this.now) ?? null) : null;
      // A part that finds nothing to send may have an event about that.
      const event = early ?? (output === null ? (part.nextEvent?.() ?? null) : null);
      if (event !== null) handlers.event?.(event, this.now);
      else if (output !== null) handlers.output?.(output, this.now);
      else return count;
    }
    throw new Error('transmit and nextEvent come to no end');
  }
}

function timeoutOf(part: Part<unknown, unknown>): number {
  const at = part.nextTimeout();
  if (Number.isNaN(at)) throw new Error('nextTimeout is no number');
  return at;
}

/** Records the time of each output. */
export class Log<Entry> {
  readonly entries: [number, Entry][] = [];
  readonly note = (entry: Entry, now: number): void => void this.entries.push([now, entry]);
}
