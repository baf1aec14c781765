/**
 * Finds a direct path for a client's connection and keeps it on the best one (PROTOCOL.md §6.6).
 *
 * 1. A relayed connection searches at once, and again as `RetrySchedule` says; a failed attempt changes nothing.
 * 2. Of the pairs that answer within a moment, the best becomes a path: validated by a full-size PATH_CHALLENGE, then
 *    chosen. The relay is kept warm behind it.
 * 3. When the direct path fails, the connection is back on the relay within 3 s (the core's failover), and searches
 *    again.
 *
 * A connection has at most two direct paths at a time, one of them active. The session's owner reports its migrations
 * (`migrated`) and its end (`stop`). An idle search holds little: `Searches` holds the state shared by several,
 * `SearchPaths` the direct paths, `Attempt` the state of one attempt; its findings are dropped in time.
 */

import type { BoundSocket } from '../../platform/environment.ts';
import type { PathProbe } from '../../protocol/connection/index.ts';
import { type Path, placeOfPeer } from '../../protocol/path.ts';
import {
  type AttemptFacts,
  comparePaths,
  explain,
  migrateAt,
  type NotDirect,
  notDirect,
  type Pair,
  type PathClass,
  RetrySchedule,
  sprayLimited,
  udpBlocked,
  VOLUNTARY_PAUSE,
} from '../../protocol/rendezvous/index.ts';
import { Attempt, sprayFrom, whyOf } from './attempt.ts';
import { classOf, FACTS_KEPT, type PathsReport, pathReports, restReport, stationReport } from './paths-report.ts';
import { SearchPaths } from './search-paths.ts';
import type { Searches, SearchKind, SearchTask } from './searches.ts';
import type { MigratingSession } from './sessions.ts';

/** ms from the first pair that answers until the best is chosen; a pair on the local network is chosen at once. */
const CHOICE_WAIT = 60;
/** ms in which a better pair may still answer, after one that is no better than the path in use. */
const BETTER_WAIT = 3_000;
/** ms: a direct path that was lost sooner counts as a failed attempt, so that a connection does not oscillate. */
const SHORT_LIFE = 30_000;
/**
 * ms after a change of network in which the loss of a path is attributed to that change and not held against the path:
 * failover takes up to 3 s.
 */
const CHANGE_TIME = 5_000;

export interface DirectSearchOptions {
  readonly session: MigratingSession;
  readonly shared: Searches;
  readonly kind: SearchKind;
}

export class DirectSearch implements SearchTask {
  readonly #session: MigratingSession;
  readonly #shared: Searches;
  readonly #kind: SearchKind;
  readonly #schedule: RetrySchedule;
  /** Unix ms, for the report. */
  readonly #opened: number;
  #migrated: number;
  /** Created at the first try, and freed when it holds nothing: a host may have many searches at rest. */
  #paths: SearchPaths | null = null;
  #attempt: Attempt | null = null;
  #round = 0;
  #migratedAt = Number.NEGATIVE_INFINITY;
  /** When this host changed its network. */
  #changedAt = Number.NEGATIVE_INFINITY;
  #last: { readonly facts: AttemptFacts; readonly until: number } | null = null;
  #why: NotDirect | null = null;

  constructor({ session, shared, kind }: DirectSearchOptions) {
    this.#session = session;
    this.#shared = shared;
    this.#kind = kind;
    this.#schedule = new RetrySchedule(shared.clock.now());
    this.#opened = shared.clock.wallTime();
    this.#migrated = this.#opened;
    // The peer may have closed the session in the packet after the handshake: that event does not come again.
    if (session.isOpen) shared.add(this);
  }

  /** For `Searches`: the next attempt, or the time to drop the last findings. */
  get wakeAt(): number {
    return Math.min(
      this.#attempt === null ? this.#schedule.nextAt : Number.POSITIVE_INFINITY,
      this.#last?.until ?? Number.POSITIVE_INFINITY,
    );
  }

  wake(): void {
    if (this.#last !== null && this.#last.until <= this.#now) this.#last = null;
    if (this.#attempt === null && this.#schedule.nextAt <= this.#now) this.#begin();
  }

  /** Reports all that is known of the connection's paths. */
  report(): PathsReport {
    const { clock } = this.#shared;
    const { gatherer } = this.#shared.end;
    const facts = this.#attempt?.facts() ?? this.#last?.facts;
    const isDirect = this.#session.paths.type === 'DIRECT';
    const why = this.#attempt !== null && this.#why === null ? notDirect('IN_PROGRESS') : this.#why;
    const isSprayLeft = this.#attempt === null && why === sprayLimited;
    const at = Math.max(this.#schedule.nextAt, isSprayLeft ? sprayFrom(facts) : 0);
    return {
      paths: pathReports(this.#session, { opened: this.#opened, migrated: this.#migrated }, (address) => gatherer.isNear(address)),
      rest: restReport(this.#session),
      station: stationReport(this.#kind.stationOf(this.#session), gatherer),
      localNat: facts?.localNat ?? null,
      remoteNat: facts?.remoteNat ?? null,
      pairs: facts?.pairs ?? [],
      whyNotDirect: isDirect ? null : (why ?? notDirect('IN_PROGRESS')),
      nextAttempt: isDirect || at === Number.POSITIVE_INFINITY ? null : Math.max(0, Math.round(at - clock.now())),
      keepAlive: this.#kind.keepAliveReport(this.#session),
    };
  }

  /** The session uses another path. */
  migrated(path: Path): void {
    if (this.#isStopped) return;
    const { clock, log } = this.#shared;
    this.#migrated = clock.wallTime();
    const over = this.#classOf(path);
    log.debug('the connection uses another path', { over, address: placeOfPeer(path) });
    if (over === 'relay') this.#lost();
    else this.#won(path, over);
    this.#keep(this.#last?.facts ?? null);
    if (this.#paths?.rest() === true) this.#paths = null;
    this.#arm();
  }

  /** The device has proved its identity, or now knows ours: both ends may name more addresses than before. */
  trustChanged(): void {
    if (this.#isStopped || this.#session.paths.type === 'DIRECT') return;
    this.#endAttempt();
    this.#schedule.restart(this.#now);
    this.#arm();
  }

  /** This host is in another network: earlier findings no longer hold. */
  networkChanged(): void {
    if (this.#isStopped) return;
    this.#endAttempt();
    this.#paths?.dropOther();
    this.#paths?.releaseLost();
    this.#changedAt = this.#now;
    this.#schedule.restart(this.#now);
    this.#arm();
  }

  /** The session has ended. Harmless to call twice. */
  stop(): void {
    if (this.#isStopped) return;
    this.#shared.remove(this);
    this.#endAttempt();
    this.#paths?.stop();
    this.#paths = null;
  }

  get #isStopped(): boolean {
    return !this.#shared.has(this);
  }

  get #held(): SearchPaths {
    this.#paths ??= new SearchPaths(this.#session, this.#shared.end.host, this);
    return this.#paths;
  }

  get #now(): number {
    return this.#shared.clock.now();
  }

  #classOf(path: Pick<Path, 'kind' | 'address'>): PathClass {
    return classOf(path, (address) => this.#shared.end.gatherer.isNear(address));
  }

  #arm(): void {
    if (!this.#isStopped) this.#shared.arm(this);
  }

  #begin(): void {
    if (!this.#session.isOpen) {
      this.stop();
      return;
    }
    const { budget, end } = this.#shared;
    const slot = budget.acquireRound('known', this.#now);
    if (slot === null) {
      this.#why = notDirect('LIMITED');
      this.#schedule.crowded(this.#now, this.#shared.fraction());
      this.#arm();
      return;
    }
    this.#schedule.begin();
    this.#session.paths.supplyIds();
    this.#attempt = new Attempt({
      session: this.#session,
      end,
      station: this.#kind.stationOf(this.#session),
      budget: slot,
      round: ++this.#round,
      hardNat: this.#kind.hardNat,
      onFound: (pair) => this.#foundPair(pair),
      onEnd: () => this.#attemptOver(),
    });
  }

  #foundPair(pair: Pair): void {
    const attempt = this.#attempt;
    if (attempt === null) return;
    attempt.found.push(pair);
    if (attempt.found.length > 1 && pair.kind !== 'near') return;
    attempt.chooseIn(pair.kind === 'near' ? 0 : CHOICE_WAIT, () => this.#choose());
  }

  /** Tries the best of the pairs that have answered, unless the path in use is as good. */
  #choose(): void {
    const attempt = this.#attempt;
    if (attempt === null || (this.#paths?.trying ?? null) !== null || !this.#session.isOpen) return;
    const classes = new Map(attempt.found.map((pair) => [pair, this.#classOf({ kind: 'udp', address: pair.remote.address })]));
    attempt.found.sort((a, b) => comparePaths(classes.get(a)!, classes.get(b)!) || (a.rtt ?? 0) - (b.rtt ?? 0));
    const best = attempt.found.shift();
    if (best === undefined) {
      this.#attemptOver();
      return;
    }
    const at = migrateAt(this.#classOf(this.#session.paths.active), classes.get(best)!, this.#migratedAt);
    if (at > this.#now) {
      this.#waitForBetter(attempt, at);
      return;
    }
    const found = attempt.pathOf(best);
    if (found === undefined) this.#choose();
    else this.#try(found.path, found.adopted);
  }

  /** The answers are no better than the path in use, or it is too soon: until `at`, Infinity for never. */
  #waitForBetter(attempt: Attempt, at: number): void {
    attempt.found = [];
    if (at < Number.POSITIVE_INFINITY) {
      this.#attemptOver();
      this.#schedule.postpone(at);
      this.#arm();
    } else attempt.chooseIn(BETTER_WAIT, () => this.#attemptOver());
  }

  #try(path: Path, adopted: BoundSocket | null): void {
    if (!this.#held.try(path, adopted, this.#kind.keepInterval())) this.#attemptOver();
  }

  /**
   * The connection is on a direct path. If it is not the one being tried, that path and the socket adopted for it are
   * dropped.
   */
  #won(path: Path, over: PathClass): void {
    this.#paths?.dropOther(path);
    const mayImprove = this.#mayImprove(over);
    this.#migratedAt = this.#now;
    if (this.#paths !== null) this.#paths.trying = null;
    this.#why = null;
    this.#endAttempt();
    this.#schedule.succeeded(this.#now, over === 'lan');
    if (mayImprove) this.#schedule.postpone(this.#now + VOLUNTARY_PAUSE);
  }

  /** Returns whether an address that may lead over a better network than `over` may still answer. */
  #mayImprove(over: PathClass): boolean {
    const { openAddresses = [], found = [] } = this.#attempt ?? {};
    const addresses = [...openAddresses, ...found.map(({ remote }) => remote.address)];
    return addresses.some((address) => comparePaths(this.#classOf({ kind: 'udp', address }), over) < 0);
  }

  /**
   * The direct path is lost. Losing one that had lasted is not a failure; findings about this host's NAT may no longer
   * hold.
   */
  #lost(): void {
    this.#endAttempt();
    this.#held.makeRoom();
    this.#why = null;
    this.#shared.end.gatherer.forget();
    const isLostWithNetwork = this.#now - this.#changedAt < CHANGE_TIME;
    const isShort = this.#now - this.#migratedAt < SHORT_LIFE && !isLostWithNetwork;
    this.#migratedAt = Number.NEGATIVE_INFINITY;
    if (isShort) this.#failed(notDirect('NO_ANSWER'), false);
    else this.#schedule.restart(this.#now);
  }

  /** For its paths. */
  probed({ path, answered }: PathProbe): void {
    if (this.#paths === null || path !== this.#paths.trying || answered) return;
    this.#paths.drop(path);
    if (this.#attempt === null) return;
    // Checks of 76 bytes passed.
    this.#attempt.isLargeDropped = true;
    if (this.#attempt.found.length > 0) this.#choose();
    else this.#attemptOver();
  }

  /** The attempt brings no further pairs. */
  #attemptOver(): void {
    const attempt = this.#attempt;
    if (attempt === null || (this.#paths?.trying ?? null) !== null) return;
    const facts = attempt.facts();
    const { verdict, isPredicting } = attempt;
    this.#endAttempt();
    if (this.#session.paths.type === 'DIRECT') {
      this.#schedule.succeeded(this.#now, false);
      this.#arm();
    } else if (verdict === 'unknown') {
      this.#why = notDirect('PEER_TOO_OLD');
      this.#schedule.stop();
    } else {
      const why = whyOf(verdict) ?? this.#explain(facts);
      this.#failed(why, isPredicting);
      if (why === sprayLimited && sprayFrom(facts) > this.#now) this.#schedule.notAfter(sprayFrom(facts));
      this.#arm();
    }
  }

  #explain(facts: AttemptFacts): NotDirect {
    return this.#kind.stationOf(this.#session)?.webSocket === undefined ? explain(facts) : udpBlocked;
  }

  #failed(why: NotDirect, isPredicting: boolean): void {
    this.#why = why;
    // A router may open the way for the next attempt.
    this.#shared.end.mapPort(this.#kind.stationOf(this.#session));
    this.#schedule.failed(this.#now, isPredicting, this.#shared.fraction());
    this.#shared.log.debug('no direct path', { code: why.code });
    this.#arm();
  }

  #endAttempt(): void {
    const attempt = this.#attempt;
    if (attempt === null) return;
    this.#keep(attempt.facts());
    this.#attempt = null;
    attempt.cancelChoice();
    attempt.stop();
  }

  /** Keeps an attempt's findings while the connection is relayed, and for a moment of a direct one. */
  #keep(facts: AttemptFacts | null): void {
    const until = this.#session.paths.type === 'DIRECT' ? this.#now + FACTS_KEPT : Number.POSITIVE_INFINITY;
    this.#last = facts === null ? null : { facts, until };
  }
}
