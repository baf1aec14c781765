/** A set of listeners of one kind. One that throws is logged and disturbs nobody; one may be removed while it is called. */
import type { Log } from '../transport/environment.ts';

export class Listeners<Values extends unknown[]> {
  readonly #listeners = new Set<(...values: Values) => void>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Returns the function that removes the listener. */
  add(listener: (...values: Values) => void): () => void {
    const own = (...values: Values) => listener(...values);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  emit(...values: Values): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(...values);
      } catch (error) {
        this.#log.error('a listener of the application failed', { error: String(error) });
      }
    }
  }
}
