/** Values that arrive over time, as applications read them: with `for await`. */
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { Deferred } from './deferred.ts';
import { asyncDispose } from './dispose.ts';

/** The values that a reader has not taken yet, bounded by their keeper. */
export interface KeptValues<T> {
  /** Removes and returns the next value; undefined when there is none. */
  take(): T | undefined;
  /** Called once, when the subscription has ended. */
  ended(): void;
}

/** Values that arrive over time. Read them with `for await`; leaving the loop ends it. */
export class Subscription<T> implements AsyncIterableIterator<T> {
  readonly #kept: KeptValues<T>;
  #end: SvcError | 'ended' | null = null;
  #waiting: Deferred<IteratorResult<T>> | null = null;
  #stopListening: () => void = () => {};

  /** For the keeper of the values. @param signal ends it */
  constructor(kept: KeptValues<T>, signal?: AbortSignal) {
    this.#kept = kept;
    if (signal === undefined) return;
    const close = (): void => this.end('ended');
    signal.addEventListener('abort', close, { once: true });
    this.#stopListening = () => signal.removeEventListener('abort', close);
    if (signal.aborted) close();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Waits for the next value.
   * @throws OPERATION_IN_PROGRESS while another call waits; once, the error that ended it, after the values before it
   */
  async next(): Promise<IteratorResult<T>> {
    if (this.#waiting !== null) throw new LocalError('OPERATION_IN_PROGRESS', 'another call waits for the next value');
    const value = this.#kept.take();
    if (value !== undefined) return { value, done: false };
    const end = this.#end;
    if (end === null) {
      this.#waiting = new Deferred();
      return this.#waiting.promise;
    }
    this.#end = 'ended';
    if (end !== 'ended') throw end;
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<T>> {
    await this.close();
    return { value: undefined, done: true };
  }

  /** Ends it: a reader gets no further value. Harmless to call again. */
  async close(): Promise<void> {
    this.end('ended');
    while (this.#kept.take() !== undefined);
  }

  declare [Symbol.asyncDispose]: () => Promise<void>;
  static {
    asyncDispose(Subscription, (subscription) => subscription.close());
  }

  /** For the keeper of the values: there may be one. */
  wake(): void {
    if (this.#waiting === null) return;
    const value = this.#kept.take();
    if (value !== undefined) this.#settle((waiting) => waiting.resolve({ value, done: false }));
  }

  /** For the keeper of the values: no further value follows; an error is thrown after those that are kept. */
  end(end: SvcError | 'ended'): void {
    if (this.#end !== null) return;
    this.#end = this.#waiting === null ? end : 'ended';
    this.#stopListening();
    this.#kept.ended();
    this.#settle((waiting) => (end === 'ended' ? waiting.resolve({ value: undefined, done: true }) : waiting.reject(end)));
  }

  #settle(settle: (waiting: Deferred<IteratorResult<T>>) => void): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null) settle(waiting);
  }
}
