/**
 * Keeps the sessions of a host across changes of its network and sleep. `NetworkMonitor` reports what happens; this
 * file reacts:
 *
 * 1. In another network, a host whose port no peer needs to know binds a fresh socket. Sessions that it opened migrate
 *    there, channels to base stations first: each gets a path from the fresh socket to the same peer, with its own
 *    connection ids, and uses it once the peer has answered.
 * 2. When a channel has migrated, its routes have followed it (`host/routes.ts`), and the sessions on them probe the
 *    other end, so that both ends at once resend what was lost meanwhile. A session on a direct path probes that and
 *    its route: the core migrates to the one that answers.
 * 3. All other sessions probe each of their paths: a peer that answers has learned this host's new address.
 * 4. When every migration is over, the old paths are forgotten, and the old socket is closed as soon as it is unused.
 *
 * If the host returns to the previous network while migrations are under way, the old paths are used again. After a
 * sleep, and when the network is back, every path of every session is probed. The network is not watched while no
 * session is open or wanted.
 *
 * A resting session is left alone: its opener resumes it.
 */

import type { BoundSocket, Cancel } from '../../platform/environment.ts';
import { isLoopback, parseAddress } from '../../protocol/address.ts';
import type { Path } from '../../protocol/path.ts';
import { type NetworkEvent, NetworkMonitor, type NetworkSnapshot } from '../../protocol/roaming/index.ts';
import { Alarm } from '../alarm.ts';
import type { Host, NetworkWatcher } from '../host/index.ts';
import type { Session } from '../session/index.ts';
import { Migration } from './migration.ts';

/** Network events, and `migrated`: a channel to a base station is in the new network. */
export type RoamingEvent = NetworkEvent | 'migrated';

export interface RoamingOptions {
  readonly host: Host;
  /**
   * In another network the first socket is replaced by one on another port. False where peers were given the port: the
   * socket stays, and so do ids.
   */
  readonly takesFreshSocket: boolean;
  readonly onEvent?: (event: RoamingEvent) => void;
  /** Returns true while a session is wanted: the network is then watched even without one. */
  readonly isWaiting?: () => boolean;
}

/** Destinations whose source address is watched, and sessions that are searched for them. */
const MAX_DESTINATIONS = 4;
const MAX_SOUGHT = 64;
/** ms after which unfinished migrations are given up. Validation takes 3 s or more. */
const MIGRATION_TIMEOUT = 5_000;
/** ms for which a replaced socket is kept at least. */
const LINGER = 3_000;
/** Replaced sockets that are still in use; at this limit the newest stays. */
const MAX_REPLACED = 4;
/** Sessions that probe at a time, and ms between two batches: 30 Mbit/s. */
const ASKING_AT_ONCE = 64;
const ASKING_PAUSE = 20;
/**
 * ms from the migration of a channel until its routes are probed: the station accepts nothing on them before it knows
 * that the channel has migrated.
 */
const AFTER_CHANNEL = 10;

export class Roaming implements NetworkWatcher {
  readonly #options: RoamingOptions;
  readonly #monitor = new NetworkMonitor();
  /** Addresses at the last look. */
  #destinations: ReadonlySet<string> = new Set();
  readonly #alarm: Alarm;
  #isLooking = false;
  #isClosed = false;
  /** Migrations by session. */
  #migrations = new Map<Session, Migration>();
  #cancelMigrations: Cancel = () => {};
  /** Number of changes. */
  #change = 0;
  readonly #replaced = new Map<BoundSocket, number>();
  /**
   * Sessions over WebSockets that were notified of a change, the path that each had then, and what stops the wait for
   * another one.
   */
  readonly #notified = new WeakMap<Session, { readonly path: Path; readonly stop: Cancel }>();
  /** Sessions that will probe, and the timer that starts them. */
  readonly #asking = new Set<Session>();
  #cancelAsking: Cancel | null = null;

  /** Watches from now on, until `close`. */
  constructor(options: RoamingOptions) {
    this.#options = options;
    this.#alarm = new Alarm(this.#clock, () => void this.#look());
    options.host.watcher = this;
    this.#arm();
  }

  /** Called by the host. */
  opened(session: Session): void {
    if (this.#options.takesFreshSocket && isMigratable(session)) session.paths.supplyIds();
    this.#arm();
  }

  /** Called by the host. */
  unreachable(address: string): void {
    if (!this.#destinations.has(address)) return;
    this.#monitor.sendFailed();
    this.#arm();
  }

  /** Stops watching. Migrations under way continue. */
  close(): void {
    this.#isClosed = true;
    this.#alarm.clear();
    this.#cancelMigrations();
    this.#cancelAsking?.();
    this.#options.host.watcher = null;
  }

  get #host(): Host {
    return this.#options.host;
  }

  get #clock(): Host['environment']['clock'] {
    return this.#host.environment.clock;
  }

  #arm(): void {
    if (this.#isClosed || this.#isLooking) return;
    if (this.#host.sessions.size === 0 && this.#replaced.size === 0 && this.#options.isWaiting?.() !== true) {
      this.#monitor.stop();
      return;
    }
    this.#alarm.set(this.#monitor.nextTimeout());
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    const snapshot = await this.#snapshot();
    this.#isLooking = false;
    if (this.#isClosed) return;
    const event = this.#monitor.look(snapshot, { now: this.#clock.now(), wallTime: this.#clock.wallTime() });
    if (event !== null) this.#react(event);
    this.#closeReplaced();
    this.#arm();
  }

  async #snapshot(): Promise<NetworkSnapshot> {
    const { network } = this.#host.environment;
    const destinations = this.#findDestinations();
    this.#destinations = new Set(destinations);
    if (network.sourceAddress === undefined || destinations.length === 0) return { interfaces: network.interfaces?.() ?? [] };
    const sources = await Promise.all(destinations.map((destination) => network.sourceAddress!(destination)));
    return { sources: new Map(destinations.map((destination, i) => [destination, sources[i]!])) };
  }

  #findDestinations(): string[] {
    const found = new Set<string>();
    let sought = 0;
    for (const { connection } of this.#host.sessions) {
      const { path } = connection;
      if (path.address !== '' && !isOnThisHost(path.address)) found.add(path.address);
      if (++sought === MAX_SOUGHT || found.size === MAX_DESTINATIONS) break;
    }
    return [...found];
  }

  #react(event: NetworkEvent): void {
    this.#host.environment.log.debug('the network of this host', { event });
    this.#options.onEvent?.(event);
    if (event === 'changed') void this.#leave();
    else if (event === 'reverted') this.#return();
    else this.#askAll();
  }

  /** Migrates to the present network. */
  async #leave(): Promise<void> {
    const change = ++this.#change;
    this.#finishMigrations();
    const socket = await this.#freshSocket();
    if (change !== this.#change || this.#isClosed) {
      if (socket !== null) void this.#host.sockets.unbind(socket);
      return;
    }
    if (socket === null) {
      this.#notifyWebSockets();
      this.#monitor.settle();
      this.#askAll();
      return;
    }
    this.#replaced.set(this.#host.sockets.bound[0]!, this.#clock.now());
    this.#host.sockets.promote(socket);
    this.#notifyWebSockets();
    this.#migrateTo(socket);
  }

  /** A WebSocket cannot migrate: its session opens another one, and probes UDP from the new first socket. */
  #notifyWebSockets(): void {
    for (const session of this.#host.sessions) if (session.paths.active.kind === 'websocket') this.#notifyWebSocket(session);
  }

  #notifyWebSocket(session: Session): void {
    this.#notified.get(session)?.stop();
    const stop = session.on('path', () => {
      stop();
      this.#options.onEvent?.('migrated');
    });
    this.#notified.set(session, { path: session.paths.active, stop });
    session.noteNetworkChanged();
  }

  async #freshSocket(): Promise<BoundSocket | null> {
    if (!this.#options.takesFreshSocket || this.#replaced.size >= MAX_REPLACED) return null;
    try {
      return await this.#host.sockets.bind({ port: 0 });
    } catch (error) {
      this.#host.environment.log.warn('no fresh socket in another network', { error: String(error) });
      return null;
    }
  }

  #migrateTo(socket: BoundSocket): void {
    const all = [...this.#host.sessions];
    const migratable = all.filter(isMigratable);
    const isChannel = new Map(migratable.map((session) => [session, this.#host.relayedOver(session) > 0]));
    migratable.sort((a, b) => Number(isChannel.get(b)) - Number(isChannel.get(a)));
    for (const session of migratable) {
      const migration = new Migration(session, socket, (ended) => this.#migrationEnded(ended));
      this.#migrations.set(session, migration);
      if (migration.isOver) this.#migrationEnded(migration);
    }
    this.#askLater(all.filter((session) => !isMigratable(session) && !this.#isRouted(session)));
    this.#cancelMigrations = this.#clock.schedule(MIGRATION_TIMEOUT, () => this.#settle());
    this.#settleWhenOver();
  }

  #migrationEnded({ session, hasMigrated, isOver }: Migration): void {
    if (!isOver) return;
    this.#channelAsked(session, hasMigrated);
    this.#settleWhenOver();
  }

  /** Sessions on the channel probe, whether it has migrated or not. */
  #channelAsked(channel: Session, hasMigrated: boolean): void {
    const over = [...this.#host.sessions].filter(({ connection }) =>
      connection.allPaths.some((path) => this.#host.routes.channelOf(path) === channel),
    );
    if (over.length === 0) return;
    if (hasMigrated) {
      for (const session of over) session.noteChannelMigrated();
      this.#options.onEvent?.('migrated');
    }
    for (const session of over) this.#asking.add(session);
    this.#cancelAsking ??= this.#clock.schedule(AFTER_CHANNEL, () => this.#askSome());
  }

  #isRouted({ connection }: Session): boolean {
    return connection.allPaths.some((path) => this.#host.routes.channelOf(path) !== undefined);
  }

  #settleWhenOver(): void {
    for (const { isOver } of this.#migrations.values()) if (!isOver) return;
    this.#settle();
  }

  /** This host has settled in its network. */
  #settle(): void {
    this.#finishMigrations();
    this.#monitor.settle();
  }

  #finishMigrations(): void {
    this.#cancelMigrations();
    for (const migration of this.#migrations.values()) migration.finish();
    this.#migrations.clear();
  }

  /** Returns to the previous network, whose paths still exist. */
  #return(): void {
    this.#change++;
    this.#cancelMigrations();
    const migrations = [...this.#migrations.values()];
    this.#migrations.clear();
    for (const migration of migrations) migration.undo();
    const [former] = [...this.#replaced.keys()].slice(-1);
    if (migrations.length > 0 && former !== undefined) {
      this.#replaced.delete(former);
      this.#replaced.set(this.#host.sockets.bound[0]!, this.#clock.now());
      this.#host.sockets.promote(former);
    }
    // Sessions that already have another WebSocket; the others still have the previous one.
    for (const session of this.#host.sessions)
      if (session.paths.active.kind === 'websocket' && (this.#notified.get(session)?.path ?? session.paths.active) !== session.paths.active)
        this.#notifyWebSocket(session);
    this.#monitor.settle();
    this.#askAll();
  }

  #askAll(): void {
    const all = [...this.#host.sessions];
    for (const session of all.filter((each) => each.connection.initiator && each.paths.active.kind !== 'route')) ask(session);
    this.#askLater(all.filter((each) => !each.connection.initiator || each.paths.active.kind === 'route'));
  }

  #askLater(sessions: Iterable<Session>): void {
    for (const session of sessions) this.#asking.add(session);
    if (this.#cancelAsking === null) this.#askSome();
  }

  #askSome(): void {
    let left = ASKING_AT_ONCE;
    for (const session of this.#asking) {
      if (left-- === 0) break;
      this.#asking.delete(session);
      ask(session);
    }
    this.#cancelAsking = this.#asking.size === 0 ? null : this.#clock.schedule(ASKING_PAUSE, () => this.#askSome());
  }

  #closeReplaced(): void {
    for (const [socket, since] of this.#replaced) {
      if (this.#clock.now() - since < LINGER || this.#host.uses(socket)) continue;
      this.#replaced.delete(socket);
      void this.#host.sockets.unbind(socket);
    }
  }
}

/** The end that opened a session chooses its path; a route follows its channel. */
function isMigratable(session: Session): boolean {
  const { connection, restReason } = session;
  const { initiator, path } = connection;
  return initiator && path.kind === 'udp' && restReason === null && !isOnThisHost(path.address);
}

/** Sends to the peer on each path, and asks for an answer there. */
function ask(session: Session): void {
  if (!session.isOpen || session.restReason !== null) return;
  for (const path of session.paths.all) session.paths.probe(path);
  session.ping();
}

function isOnThisHost(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && isLoopback(bytes);
}
