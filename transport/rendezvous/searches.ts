/**
 * State shared by all searches of one client: its local end, its send budget, one watch of the network and one timer. A
 * client may have thousands of idle connections, so a search holds only its own state.
 */
import { u32 } from '../../protocol/packet/index.ts';
import type { HostBudget } from '../../protocol/rendezvous/index.ts';
import type { Cancel, Clock, Log } from '../environment.ts';
import type { LocalEnd } from './local-end.ts';

export interface SearchesOptions {
  readonly end: LocalEnd;
  readonly budget: HostBudget;
  readonly clock: Clock;
  readonly log: Log;
}

/** One search. */
export interface Waking {
  /** When it has something to do, ms; Infinity for never. */
  readonly wakeAt: number;
  /** Called at `wakeAt`, which is later afterwards. */
  wake(): void;
  /** This host is in another network. */
  networkChanged(): void;
}

export class Searches {
  readonly end: LocalEnd;
  readonly budget: HostBudget;
  readonly clock: Clock;
  readonly log: Log;
  readonly #all = new Set<Waking>();
  #stopWatching: Cancel | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #cancelTimer: Cancel = () => {};

  constructor({ end, budget, clock, log }: SearchesOptions) {
    this.end = end;
    this.budget = budget;
    this.clock = clock;
    this.log = log;
  }

  /** Wakes the search from now on, until `remove`. */
  add(search: Waking): void {
    this.#all.add(search);
    this.#stopWatching ??= this.end.gatherer.watch(() => {
      for (const each of [...this.#all]) each.networkChanged();
    });
    this.arm(search);
  }

  has(search: Waking): boolean {
    return this.#all.has(search);
  }

  remove(search: Waking): void {
    this.#all.delete(search);
    if (this.#all.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.#cancel();
  }

  /** Returns a random number from 0 to less than 1. */
  fraction(): number {
    return u32(this.end.host.environment.crypto.randomBytes(4), 0) / 2 ** 32;
  }

  /** Call when `wakeAt` of a search may be sooner than before. If it is later, the timer fires once for nothing. */
  arm({ wakeAt }: Pick<Waking, 'wakeAt'>): void {
    if (wakeAt >= this.#timerAt) return;
    this.#cancel();
    this.#timerAt = wakeAt;
    this.#cancelTimer = this.clock.schedule(Math.max(0, wakeAt - this.clock.now()), () => this.#wake());
  }

  #wake(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.clock.now();
    for (const search of [...this.#all]) if (search.wakeAt <= now) search.wake();
    let next = Number.POSITIVE_INFINITY;
    for (const { wakeAt } of this.#all) next = Math.min(next, wakeAt);
    this.arm({ wakeAt: next });
  }

  #cancel(): void {
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }
}
