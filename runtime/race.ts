/**
 * A race of attempts for one result, such as the dials to all addresses of a peer.
 *
 * 1. Attempts start in the order in which they were added, each a Connection Attempt Delay after the one before, or at
 *    once when one has failed (RFC 8305 §5). With a delay of 0 each starts as soon as it is added.
 * 2. The first that succeeds wins. All others are cancelled; a late result of one of them is discarded.
 * 3. The race fails when all attempts have failed and no more will be added, with the error that `summarize` makes of
 *    the failures.
 * 4. `stop` ends it before that, for example after a timeout or a signal.
 *
 * The clock is an argument. The caller defines an attempt and its time limit.
 */

import type { Cancel, Environment } from '../platform/environment.ts';
import { asSvcError, LocalError, type SvcError } from '../protocol/errors/index.ts';
import { Deferred } from './deferred.ts';
import { guarded } from './emitter.ts';

/** An attempt under way. */
export interface Attempt<T> {
  readonly result: Promise<T>;
  /** Gives up: `result` rejects with STOPPED, or its value is discarded. Harmless once the result is there. */
  cancel(): void;
}

/** Why an attempt failed. */
export interface Failure {
  /** Index of the attempt, from 0, in the order in which they were added. */
  readonly attempt: number;
  readonly error: SvcError;
}

export interface RaceOptions<T> {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  /** Connection Attempt Delay, ms. 0: all at once. Infinity: the next one starts only when one has failed. */
  readonly delay: number;
  /** Closes a result that arrives after the race is decided. */
  readonly discard: (result: T) => void;
  /**
   * Makes the error of a race whose attempts have all failed. `failures` is in the order in which they failed, and may
   * be empty.
   */
  readonly summarize: (failures: readonly Failure[]) => SvcError;
}

/** A race; itself an attempt in an enclosing race. */
export class Race<T> implements Attempt<T> {
  readonly #options: RaceOptions<T>;
  readonly #result = Deferred.quiet<T>();
  readonly #waiting: (() => Attempt<T>)[] = [];
  readonly #running = new Set<Attempt<T>>();
  readonly #failures: Failure[] = [];
  #started = 0;
  /** Attempts started and not settled. */
  #unsettled = 0;
  /** When the next attempt may start. */
  #nextAt = Number.NEGATIVE_INFINITY;
  #cancelDelay: Cancel = () => {};
  #complete = false;
  #decided = false;

  constructor(options: RaceOptions<T>) {
    this.#options = options;
  }

  /**
   * The first result. Rejects with the error of `summarize` or `stop`; a rejection that nothing awaits is not reported
   * as unhandled.
   */
  get result(): Promise<T> {
    return this.#result.promise;
  }

  /**
   * Adds an attempt. Ignored once the race is decided, or `end` was called.
   * @param start its exception is a failure of the attempt
   */
  add(start: () => Attempt<T>): void {
    if (this.#decided || this.#complete) return;
    this.#waiting.push(start);
    this.#advance();
  }

  /**
   * No further attempt will be added: the race fails as soon as all have failed, at once when there are none. May be
   * called again.
   */
  end(): void {
    this.#complete = true;
    this.#advance();
  }

  /**
   * Fails now, by default with the error that `summarize` makes of the failures so far. Harmless once the race is
   * decided.
   */
  stop(error?: SvcError): void {
    if (this.#decided) return;
    this.#decide();
    this.#result.reject(error ?? this.#options.summarize(this.#failures));
  }

  /** Stops the race with STOPPED. */
  readonly cancel = (): void => {
    this.stop(new LocalError('STOPPED', 'the connect was stopped'));
  };

  /** Starts the attempts that are due, and schedules the rest. */
  #advance(): void {
    const { clock } = this.#options.environment;
    this.#cancelDelay();
    while (!this.#decided && this.#waiting.length > 0) {
      const wait = this.#nextAt - clock.now();
      if (wait > 0) {
        this.#cancelDelay = clock.schedule(wait, this.#delayOver);
        return;
      }
      this.#nextAt = clock.now() + this.#options.delay;
      this.#start(this.#waiting.shift()!);
    }
    if (this.#complete && this.#unsettled === 0) this.stop();
  }

  readonly #delayOver = (): void => {
    this.#nextAt = Number.NEGATIVE_INFINITY;
    this.#advance();
  };

  #start(start: () => Attempt<T>): void {
    const number = this.#started++;
    this.#unsettled++;
    let attempt: Attempt<T>;
    try {
      attempt = start();
    } catch (error) {
      this.#noteFailure(number, error);
      return;
    }
    this.#running.add(attempt);
    attempt.result.then(
      (result) => this.#succeeded(attempt, result),
      (error: unknown) => this.#failed(attempt, number, error),
    );
    // Starting an attempt may have decided the race.
    if (this.#decided) this.#cancel(attempt);
  }

  #succeeded(attempt: Attempt<T>, result: T): void {
    this.#running.delete(attempt);
    if (this.#decided) {
      guarded(this.#options.environment.log, 'discarding a late result', () => this.#options.discard(result));
      return;
    }
    this.#decide();
    this.#result.resolve(result);
  }

  #failed(attempt: Attempt<T>, number: number, error: unknown): void {
    this.#running.delete(attempt);
    if (this.#decided) return;
    this.#noteFailure(number, error);
    this.#advance();
  }

  #noteFailure(attempt: number, error: unknown): void {
    this.#unsettled--;
    this.#failures.push({ attempt, error: asSvcError(error) });
    this.#nextAt = Number.NEGATIVE_INFINITY;
  }

  #decide(): void {
    this.#decided = true;
    this.#cancelDelay();
    this.#waiting.length = 0;
    for (const attempt of this.#running) this.#cancel(attempt);
  }

  #cancel(attempt: Attempt<T>): void {
    guarded(this.#options.environment.log, 'cancelling an attempt', () => attempt.cancel());
  }
}

/** Returns an attempt that a signal cancels. Throws what `run` throws. */
export function abortable<T>(run: (signal: AbortSignal) => Promise<T>): Attempt<T> {
  const controller = new AbortController();
  return { result: run(controller.signal), cancel: () => controller.abort() };
}

/** Returns the errors in the order in which their attempts were added. */
export function inOrder(failures: readonly Failure[]): SvcError[] {
  return [...failures].sort((a, b) => a.attempt - b.attempt).map(({ error }) => error);
}

/**
 * Returns the most informative error: the first of the lowest rank, null when all are of rank Infinity or there are
 * none.
 * @param rank by default a wrong key first, then anything but silence, then silence, and last what was stopped
 */
export function mostTelling(errors: readonly SvcError[], rank: (error: SvcError) => number = usualRank): SvcError | null {
  let most: SvcError | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const error of errors) {
    if (rank(error) >= least) continue;
    most = error;
    least = rank(error);
  }
  return most;
}

function usualRank({ code }: SvcError): number {
  if (code === 'FINGERPRINT_MISMATCH') return 0;
  if (code === 'TIMEOUT') return 2;
  return code === 'STOPPED' ? 3 : 1;
}
