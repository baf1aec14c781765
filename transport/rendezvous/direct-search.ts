/**
 * Finds a direct path for a client's connection and keeps it on the best one (PROTOCOL.md §6).
 *
 * 1. A relayed connection looks at once, and again as `RetrySchedule` says; an attempt that fails touches nothing.
 * 2. Of the pairs that answer within a moment the best becomes a path: validated by PATH_CHALLENGE in full size, then chosen. The relay is kept warm behind it.
 * 3. Where the direct path dies the connection is back on the relay within 3 s (the core's failover), and looks again.
 *
 * At most three direct paths are known to a connection at a time, one of them active. It ends with its session.
 */

import type { PathProbe } from '../../protocol/connection/index.ts';
import type { Path } from '../../protocol/path.ts';
import {
  type AttemptFacts,
  comparePaths,
  explain,
  type HostBudget,
  moveAt,
  type NotDirect,
  notDirect,
  type Pair,
  type PathClass,
  RetrySchedule,
  VOLUNTARY_PAUSE,
} from '../../protocol/rendezvous/index.ts';
import type { BoundSocket, Cancel, Clock, Log } from '../environment.ts';
import { Attempt, type AttemptVerdict } from './attempt.ts';
import type { LocalEnd } from './local-end.ts';
import { classOf, type PathsReport, pathReports, stationReport } from './paths-report.ts';
import type { MovingSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

/** ms between challenges that keep the relay warm: below the 30 s of NATs that see one exchange alone, and the 90 s after which the device forgets a path. */
const RELAY_KEEP = 25_000;
/** ms from the first pair that answers until the best is chosen; a pair on the local network is the best. */
const CHOICE_WAIT = 60;
/** ms in which a better pair may still answer, from one that is no better than the path in use. */
const BETTER_WAIT = 3_000;
/** ms: a direct path that was lost sooner counts as an attempt that failed, so that a connection does not go to and fro. */
const SHORT_LIFE = 30_000;

export interface DirectSearchOptions {
  readonly session: MovingSession;
  readonly end: LocalEnd;
  readonly budget: HostBudget;
  readonly clock: Clock;
  readonly log: Log;
  /** False: no sprayed stage. */
  readonly hardNat: boolean;
  /** The channel to the station behind the session's route, as it is now. */
  station(): StationView | null;
}

export class DirectSearch {
  readonly #options: DirectSearchOptions;
  readonly #schedule: RetrySchedule;
  readonly #since = new Map<Path, number>();
  /** Sockets that the host adopted for a path. */
  readonly #adopted = new Map<Path, BoundSocket>();
  readonly #ends: Cancel[] = [];
  #attempt: Attempt | null = null;
  #round = 0;
  #found: Pair[] = [];
  /** The path that is being validated. */
  #trying: Path | null = null;
  #movedAt = Number.NEGATIVE_INFINITY;
  #isLargeDropped = false;
  #lastFacts: AttemptFacts | null = null;
  #why: NotDirect | null = null;
  #cancelNext: Cancel = () => {};
  #cancelChoice: Cancel = () => {};
  #stopped = false;

  constructor(options: DirectSearchOptions) {
    const { session, clock } = options;
    this.#options = options;
    this.#schedule = new RetrySchedule(clock.now());
    this.#since.set(session.path, clock.wallTime());
    this.#ends.push(
      options.end.gatherer.watch(() => this.#networkChanged()),
      session.on('path', ({ path }) => this.#moved(path)),
      session.on('probed', (probe) => this.#probed(probe)),
      session.on('closed', () => this.stop()),
    );
    if (session.isOpen) this.#arm();
    // The peer has closed it in the packet behind the handshake: that is not told again.
    else this.stop();
  }

  /** All that is known of the connection's paths. */
  report(): PathsReport {
    const { session, clock, end } = this.#options;
    const facts = this.#attempt?.facts(this.#isLargeDropped) ?? this.#lastFacts;
    const isDirect = session.type === 'DIRECT';
    const why = this.#attempt !== null && this.#why === null ? notDirect('IN_PROGRESS') : this.#why;
    const at = this.#schedule.nextAt;
    return {
      paths: pathReports(session, this.#since, (address) => end.gatherer.isNear(address)),
      station: stationReport(this.#options.station(), end.gatherer),
      localNat: facts?.localNat ?? null,
      remoteNat: facts?.remoteNat ?? null,
      pairs: facts?.pairs ?? [],
      whyNotDirect: isDirect ? null : (why ?? notDirect('IN_PROGRESS')),
      nextAttempt: isDirect || at === Number.POSITIVE_INFINITY ? null : Math.max(0, Math.round(at - clock.now())),
    };
  }

  /** The device has proved who it is, or knows now who we are: both ends may say more than in the attempts before. */
  trustChanged(): void {
    if (this.#stopped || this.#options.session.type === 'DIRECT') return;
    this.#endAttempt();
    this.#schedule.restart(this.#now);
    this.#arm();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#endAttempt();
    this.#cancelNext();
    for (const end of this.#ends) end();
    for (const socket of this.#adopted.values()) this.#options.end.host.release(socket);
    this.#adopted.clear();
  }

  get #now(): number {
    return this.#options.clock.now();
  }

  #classOf(path: Path): PathClass {
    return classOf(path, (address) => this.#options.end.gatherer.isNear(address));
  }

  /** What was found out holds no longer. */
  #networkChanged(): void {
    if (this.#stopped) return;
    this.#endAttempt();
    if (this.#trying !== null) this.#drop(this.#trying);
    this.#schedule.restart(this.#now);
    this.#arm();
  }

  #arm(): void {
    this.#cancelNext();
    if (this.#stopped) return;
    const { nextAt } = this.#schedule;
    this.#cancelNext = this.#options.clock.schedule(Math.max(0, nextAt - this.#now), () => this.#begin());
  }

  #begin(): void {
    const { session, budget } = this.#options;
    if (this.#stopped || this.#attempt !== null || !session.isOpen) return;
    if (this.#schedule.nextAt > this.#now) {
      this.#arm();
      return;
    }
    const place = budget.acquireRound('known', this.#now);
    if (place === null) {
      this.#failed(notDirect('LIMITED'), false);
      return;
    }
    this.#schedule.begin();
    this.#isLargeDropped = false;
    this.#found = [];
    session.supplyIds();
    const { end, hardNat } = this.#options;
    this.#attempt = new Attempt({
      session,
      end,
      station: this.#options.station(),
      budget: place,
      round: ++this.#round,
      hardNat,
      onFound: (pair) => this.#foundPair(pair),
      onEnd: () => this.#attemptOver(),
    });
  }

  #foundPair(pair: Pair): void {
    this.#found.push(pair);
    if (this.#found.length > 1 && pair.kind !== 'near') return;
    this.#cancelChoice();
    this.#cancelChoice = this.#options.clock.schedule(pair.kind === 'near' ? 0 : CHOICE_WAIT, () => this.#choose());
  }

  /** Tries the best of the pairs that have answered, unless what is in use is as good. */
  #choose(): void {
    const attempt = this.#attempt;
    const { session } = this.#options;
    if (attempt === null || this.#trying !== null || !session.isOpen) return;
    const isNear = (address: string): boolean => this.#options.end.gatherer.isNear(address);
    const classes = new Map(this.#found.map((pair) => [pair, classOf({ kind: 'udp', address: pair.remote.address }, isNear)]));
    this.#found.sort((a, b) => comparePaths(classes.get(a)!, classes.get(b)!) || (a.rtt ?? 0) - (b.rtt ?? 0));
    const best = this.#found.shift();
    if (best === undefined) {
      this.#attemptOver();
      return;
    }
    const at = moveAt(this.#classOf(session.path), classes.get(best)!, this.#movedAt);
    if (at > this.#now) {
      this.#waitForBetter(at);
      return;
    }
    const found = attempt.pathOf(best);
    if (found === undefined) this.#choose();
    else this.#try(found.path, found.adopted);
  }

  /** What has answered is not better than the path in use, or it is too soon: until `at`, Infinity for never. */
  #waitForBetter(at: number): void {
    this.#found = [];
    if (at < Number.POSITIVE_INFINITY) {
      this.#attemptOver();
      this.#schedule.postpone(at);
      this.#arm();
    } else this.#cancelChoice = this.#options.clock.schedule(BETTER_WAIT, () => this.#attemptOver());
  }

  #try(path: Path, adopted: BoundSocket | null): void {
    const { session } = this.#options;
    if (adopted !== null) this.#adopted.set(path, adopted);
    this.#makeRoom(path);
    if (session.path.kind === 'route') session.keepPath(session.path, RELAY_KEEP);
    this.#trying = path;
    if (session.migrate(path)) return;
    this.#drop(path);
    this.#attemptOver();
  }

  /** Direct paths that are not in use make room for a new one. */
  #makeRoom(coming: Path | null = null): void {
    const { session } = this.#options;
    for (const path of session.paths) if (path.kind === 'udp' && path !== session.path && path !== coming) this.#drop(path);
  }

  #drop(path: Path): void {
    if (this.#trying === path) this.#trying = null;
    this.#options.session.removePath(path);
    this.#forget(path);
  }

  #forget(path: Path): void {
    this.#since.delete(path);
    const adopted = this.#adopted.get(path);
    this.#adopted.delete(path);
    if (adopted !== undefined) this.#options.end.host.release(adopted);
  }

  #moved(path: Path): void {
    const { clock, log } = this.#options;
    this.#since.set(path, clock.wallTime());
    const over = this.#classOf(path);
    log.debug('the connection uses another path', { over, path: path.key });
    if (over === 'relay') this.#lost();
    else {
      const mayImprove = this.#mayImprove(over);
      this.#movedAt = this.#now;
      this.#trying = null;
      this.#why = null;
      this.#endAttempt();
      this.#schedule.succeeded(this.#now, over === 'lan');
      if (mayImprove) this.#schedule.postpone(this.#now + VOLUNTARY_PAUSE);
      this.#arm();
    }
  }

  /** An address that may lead over a better network than `over` has not been given up. */
  #mayImprove(over: PathClass): boolean {
    const addresses = [...(this.#attempt?.openAddresses ?? []), ...this.#found.map(({ remote }) => remote.address)];
    const isNear = (address: string): boolean => this.#options.end.gatherer.isNear(address);
    return addresses.some((address) => comparePaths(classOf({ kind: 'udp', address }, isNear), over) < 0);
  }

  /** The direct path is gone. Nothing is held against one that had lasted; what is known of the NAT before this host may hold no longer. */
  #lost(): void {
    this.#endAttempt();
    this.#makeRoom();
    this.#why = null;
    this.#options.end.gatherer.forget();
    const isShort = this.#now - this.#movedAt < SHORT_LIFE;
    this.#movedAt = Number.NEGATIVE_INFINITY;
    if (isShort) {
      this.#failed(notDirect('NO_ANSWER'), false);
      return;
    }
    this.#schedule.restart(this.#now);
    this.#arm();
  }

  #probed({ path, answered, forgotten }: PathProbe): void {
    if (forgotten) this.#forget(path);
    if (path !== this.#trying || answered) return;
    // Checks of 76 bytes passed.
    this.#isLargeDropped = true;
    this.#drop(path);
    if (this.#found.length > 0) this.#choose();
    else this.#attemptOver();
  }

  /** Nothing more comes of the attempt. */
  #attemptOver(): void {
    const attempt = this.#attempt;
    if (attempt === null || this.#trying !== null) return;
    const facts = attempt.facts(this.#isLargeDropped);
    const { verdict, isPredicting } = attempt;
    this.#lastFacts = facts;
    this.#endAttempt();
    if (this.#options.session.type === 'DIRECT') {
      this.#schedule.succeeded(this.#now, false);
      this.#arm();
    } else if (verdict === 'unknown') {
      this.#why = notDirect('PEER_TOO_OLD');
      this.#schedule.stop();
    } else this.#failed(whyOf(verdict) ?? explain(facts), isPredicting);
  }

  #failed(why: NotDirect, isPredicting: boolean): void {
    this.#why = why;
    // Perhaps a router can open the way for the next attempt.
    this.#options.end.mapPort(this.#options.station());
    this.#schedule.failed(this.#now, isPredicting);
    this.#options.log.debug('no direct path', { code: why.code });
    this.#arm();
  }

  #endAttempt(): void {
    const attempt = this.#attempt;
    if (attempt === null) return;
    this.#lastFacts = attempt.facts(this.#isLargeDropped);
    this.#attempt = null;
    this.#cancelChoice();
    attempt.stop();
  }
}

/** What the device's answer says by itself. All may change: the client is paired meanwhile, a place is free, or it was the network that kept silent. */
function whyOf(verdict: AttemptVerdict): NotDirect | null {
  if (verdict === 'refused') return notDirect('DISABLED');
  if (verdict === 'silent') return notDirect('PEER_TOO_OLD');
  return verdict === 'busy' ? notDirect('LIMITED') : null;
}
