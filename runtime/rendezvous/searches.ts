/**
 * State shared by all searches of one client: its local end, its send budget, one watch of the network and one timer. A
 * client may have thousands of idle connections, so a search holds only its own state.
 */

import type { Cancel, Clock, Environment, Log } from '../../platform/environment.ts';
import type { HostBudget } from '../../protocol/rendezvous/index.ts';
import { Alarm } from '../alarm.ts';
import type { KeepAliveReport } from '../keep-alive/index.ts';
import { uniform } from '../station/index.ts';
import type { LocalEnd } from './local-end.ts';
import type { MigratingSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

/** One search. */
export interface SearchTask {
  /** When it has something to do, ms; Infinity for never. */
  readonly wakeAt: number;
  /** Called at `wakeAt`, which is later afterwards. */
  wake(): void;
  /** This host is in another network. */
  networkChanged(): void;
}

/** State shared by searches of similar connections. */
export interface SearchKind {
  /** False: no sprayed stage. */
  readonly hardNat: boolean;
  /** Returns the current channel to the station behind the session's route. */
  stationOf(session: MigratingSession): StationView | null;
  /** Returns the ms between challenges that keep the relay warm. */
  keepInterval(): number;
  keepAliveReport(session: MigratingSession): KeepAliveReport;
}

export class Searches {
  readonly end: LocalEnd;
  readonly budget: HostBudget;
  readonly clock: Clock;
  readonly log: Log;
  readonly #all = new Set<SearchTask>();
  readonly #alarm: Alarm;
  #stopWatching: Cancel | null = null;

  constructor(end: LocalEnd, budget: HostBudget, { clock, log }: Pick<Environment, 'clock' | 'log'>) {
    this.end = end;
    this.budget = budget;
    this.clock = clock;
    this.log = log;
    this.#alarm = new Alarm(clock, () => this.#wake());
  }

  /** Wakes the search from now on, until `remove`. */
  add(search: SearchTask): void {
    this.#all.add(search);
    this.#stopWatching ??= this.end.gatherer.watch(() => {
      for (const each of [...this.#all]) each.networkChanged();
    });
    this.arm(search);
  }

  has(search: SearchTask): boolean {
    return this.#all.has(search);
  }

  remove(search: SearchTask): void {
    this.#all.delete(search);
    if (this.#all.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.#alarm.clear();
  }

  /** Returns a random number from 0 to less than 1. */
  fraction(): number {
    return uniform(this.end.host.environment.crypto);
  }

  /** Call when `wakeAt` of a search may be sooner than before. If it is later, the timer fires once for nothing. */
  arm({ wakeAt }: Pick<SearchTask, 'wakeAt'>): void {
    this.#alarm.set(wakeAt);
  }

  #wake(): void {
    const now = this.clock.now();
    for (const search of [...this.#all]) if (search.wakeAt <= now) search.wake();
    let next = Number.POSITIVE_INFINITY;
    for (const { wakeAt } of this.#all) next = Math.min(next, wakeAt);
    this.arm({ wakeAt: next });
  }
}
