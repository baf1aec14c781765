/**
 * The rests of a connection, which are its times without a path (PROTOCOL.md §6): their number, their total, and their
 * limit.
 *
 * How it gets another path is not here: the end that opened the connection requests one.
 */
import { CloseCode, LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import type { Lifecycle } from './lifecycle.ts';

/** Longest rest, ms (PROTOCOL.md §9). */
export const LONGEST_REST = 60_000;

/** Figures of one connection. */
export interface RestStats {
  /** Number of times it had no path. */
  readonly rests: number;
  /** Total of these times, ms. */
  readonly restTime: number;
}

export const NEVER_RESTED: RestStats = Object.freeze({ rests: 0, restTime: 0 });

export class Rest {
  /** Why the last path was lost; null while the connection does not rest. */
  #reason: SvcError | null = null;
  #since = 0;
  #rests = 0;
  #time = 0;
  readonly #life: Lifecycle;

  constructor(life: Lifecycle) {
    this.#life = life;
  }

  get reason(): SvcError | null {
    return this.#reason;
  }

  /** When it began; null while the connection does not rest. */
  get since(): number | null {
    return this.#reason === null ? null : this.#since;
  }

  /** No path carries anything: event `resting`. */
  begin(reason: SvcError, now: number): void {
    if (this.#reason === null) {
      this.#since = now;
      this.#rests++;
    }
    this.#reason = reason;
    this.#life.emit({ kind: 'resting', reason });
    this.#life.owner.eventful();
    this.#life.owner.touched();
  }

  /** The peer was heard on a path. */
  end(now: number): void {
    if (this.#reason === null) return;
    this.#time += now - this.#since;
    this.#reason = null;
  }

  /** Returns when the rest is over, Infinity while the connection does not rest. */
  nextTimeout(): number {
    return this.#reason === null ? Number.POSITIVE_INFINITY : this.#since + LONGEST_REST;
  }

  handleTimeout(now: number): void {
    if (now < this.nextTimeout()) return;
    const { code = 'CLOSED', message = 'the connection has no path' } = this.#reason ?? {};
    const text = `${message}; there was no other path within ${LONGEST_REST / 1000} s`;
    this.#over(code === 'TIMEOUT' ? new LocalError(code, text) : new RemoteError('CLOSED', text), now);
  }

  /** Ends the connection if it rests, for another one. */
  makeWay(now: number): void {
    if (this.#reason !== null) this.#over(new RemoteError('CLOSED', 'it had no path, and made way for another connection'), now);
  }

  stats(now: number): RestStats {
    return { rests: this.#rests, restTime: this.#time + (this.#reason === null ? 0 : now - this.#since) };
  }
  #over(error: SvcError, now: number): void {
    this.end(now);
    this.#life.end(error, CloseCode.ROUTE_CLOSED, error.message, now);
  }
}
