/**
 * Events and their listeners. Listeners run in the order in which they were added. A listener that throws is logged;
 * the others still run, and `emit` never throws. Adding or removing a listener during an emission takes effect with the
 * next one.
 */
import type { Log } from '../platform/environment.ts';

/** Listeners by event name. */
export class Emitter<Events> {
  readonly #log: Log;
  readonly #listeners = new Map<keyof Events, Set<(value: never) => void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** @returns a function that stops listening; harmless to call twice */
  on<K extends keyof Events>(event: K, listener: (value: Events[K]) => void): () => void {
    const own = (value: Events[K]): void => listener(value); // the same function may listen twice
    let listeners = this.#listeners.get(event);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(event, listeners);
    }
    listeners.add(own);
    return () => {
      listeners.delete(own);
      // Leave nothing behind for an event that had a listener only briefly: there may be many emitters.
      if (listeners.size === 0 && this.#listeners.get(event) === listeners) this.#listeners.delete(event);
    };
  }

  emit<K extends keyof Events>(event: K, value: Events[K]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      guarded(this.#log, `listener of ${String(event)}`, () => (listener as (value: Events[K]) => void)(value));
    }
  }
}

/** Runs code of the application: an exception is logged under `what` and not rethrown. @returns false when it threw */
export function guarded(log: Log, what: string, run: () => void): boolean {
  try {
    run();
    return true;
  } catch (error) {
    log.error(`${what} threw`, { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    return false;
  }
}
