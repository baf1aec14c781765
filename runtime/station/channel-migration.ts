/**
 * Migrates an open channel to a base station between UDP and a WebSocket: carries out what
 * `protocol/station-dial/channel-paths.ts` decides.
 *
 * A WebSocket is a path of the session like an address. It is added, challenged, and used by migration, so routes over
 * the channel follow. A channel ends if its only path disappears at once, as when a WebSocket is cut: its owner dials
 * again.
 */

import type { Cancel, Clock } from '../../platform/environment.ts';
import { CloseCode, RemoteError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { ChannelPaths, type ChannelPathsEvent, type Over } from '../../protocol/station-dial/index.ts';
import { Alarm } from '../alarm.ts';
import type { Host } from '../host/host.ts';
import type { Session } from '../session/session.ts';
import type { WebSocketSocket } from '../websocket/index.ts';
import type { StationAddress } from './station-address.ts';
import type { WaysToStation } from './ways.ts';
import { type DialResult, openWebSocket } from './web-socket-dial.ts';

/** ms (or two round trips) without arrivals after which a challenged path counts as silent. */
const MIN_SILENCE = 1_000;
/** ms for a WebSocket to open. */
const OPEN_TIMEOUT = 10_000;

/** The target of the channel. */
interface Target {
  readonly host: Host;
  readonly station: StationAddress;
  readonly ways: WaysToStation;
}

/** Lasts from the moment that a channel opens until it ends. */
export class ChannelMigration {
  readonly #host: Host;
  readonly #session: Session;
  readonly #station: StationAddress;
  readonly #ways: WaysToStation;
  readonly #clock: Clock;
  readonly #decisions: ChannelPaths;
  readonly #ended = new AbortController();
  /** The latest attempt to open a WebSocket. */
  #opening = new AbortController();
  /** Challenged UDP paths, and those of them that are still silent. */
  #udp: Path[] = [];
  #silent = new Set<Path>();
  /** Number of times UDP was challenged. */
  #questions = 0;
  /** Open WebSockets, and the one opened by the latest attempt. */
  readonly #webSockets = new Set<WebSocketSocket>();
  #webSocket: WebSocketSocket | null = null;
  /** The path in use. */
  #path: Path;
  /** Packets that the path in use had received when it was challenged. */
  #heard: { readonly path: Path; readonly packets: number };
  #cancelAsking: Cancel = () => {};
  readonly #alarm: Alarm;
  #isServing = false;

  constructor({ session, webSocket, host, station, ways }: DialResult & Target) {
    this.#host = host;
    this.#session = session;
    this.#station = station;
    this.#ways = ways;
    this.#clock = host.environment.clock;
    this.#alarm = new Alarm(this.#clock, () => this.#serve());
    this.#path = session.paths.active;
    this.#heard = { path: session.paths.active, packets: 0 };
    if (webSocket !== null) this.#webSockets.add(webSocket);
    this.#decisions = new ChannelPaths(overOf(session.paths.active), this.#clock.now());
    // Ahead of time: no ids arrive over a path that has gone silent.
    session.paths.supplyIds();
    session.on('suspected', () => this.#report((paths, now) => paths.suspected(now)));
    session.on('network', () => this.#networkChanged());
    session.on('probed', ({ path, answered }) => this.#probed(path, answered));
    session.on('path', ({ path }) => this.#migrated(path));
    session.on('closed', () => this.#end());
    this.#serve();
  }

  #report(what: (paths: ChannelPaths, now: number) => void): void {
    what(this.#decisions, this.#clock.now());
    this.#serve();
  }

  #serve(): void {
    if (this.#isServing || this.#ended.signal.aborted) return;
    this.#isServing = true;
    const now = this.#clock.now();
    if (this.#decisions.nextTimeout() <= now) this.#decisions.handleTimeout(now);
    for (let event = this.#decisions.nextEvent(); event !== null; event = this.#decisions.nextEvent()) {
      this.#act(event);
      // One of these events may have ended the channel: then nothing is left to do.
      if (this.#ended.signal.aborted) return;
    }
    this.#isServing = false;
    this.#alarm.set(this.#decisions.nextTimeout());
  }

  #act(event: ChannelPathsEvent): void {
    if (event.kind === 'ask-active') this.#askActive();
    else if (event.kind === 'ask-udp') void this.#askUdp();
    else if (event.kind === 'open-websocket') void this.#openWebSocket();
    else if (event.kind === 'close-websocket') this.#closeWebSockets();
    else if (event.kind === 'end')
      this.#session.end(
        new RemoteError('CLOSED', 'the way to the base station failed, and this connection cannot change to another: a new one is needed'),
        CloseCode.NO_ERROR,
      );
    else this.#migrate(event.to);
  }

  /** Any packet that arrives there counts as an answer. */
  #askActive(): void {
    const { paths: own } = this.#session;
    this.#noteHeard();
    own.probe(own.active);
    this.#cancelAsking();
    this.#cancelAsking = this.#clock.schedule(Math.max(MIN_SILENCE, 2 * (own.rtt ?? 0)), () =>
      this.#report((paths, now) => (this.#isActiveAlive() ? paths.activeAnswered() : paths.activeSilent(now))),
    );
  }

  #networkChanged(): void {
    this.#noteHeard();
    this.#report((paths, now) => paths.networkChanged(now));
  }

  #noteHeard(): void {
    const path = this.#session.paths.active;
    this.#heard = { path, packets: this.#received(path) };
  }

  /** Something has arrived since the path was challenged, or another one is in use. */
  #isActiveAlive(): boolean {
    const path = this.#session.paths.active;
    return path !== this.#heard.path || this.#received(path) > this.#heard.packets;
  }

  #sent(path: Path): number {
    return this.#session.paths.stats(path)?.packetsSent ?? 0;
  }

  #received(path: Path): number {
    return this.#session.paths.stats(path)?.packetsReceived ?? 0;
  }

  /** Challenges an address of each family, one of all while it flees: the next one each time. */
  async #askUdp(): Promise<void> {
    const question = ++this.#questions;
    const { host, port } = this.#station;
    const addresses = await this.#host.environment.network.resolve(host).catch(() => []);
    const [socket] = this.#host.sockets.bound;
    if (this.#ended.signal.aborted || question !== this.#questions) return;
    const pathsOf = (list: readonly string[]): Path[] => (socket === undefined ? [] : list.map((address) => socket.path(address, port)));
    const next = (paths: readonly Path[]): Path | undefined => paths[(question - 1) % paths.length];
    const families = [false, true].map((isV6) => pathsOf(addresses.filter((address) => address.includes(':') === isV6)));
    const all = families.flat();
    // Each path takes a connection id, and while no packet comes back there are three: one that has an id comes first.
    const chosen = this.#decisions.isFleeing
      ? [all.find((path) => this.#session.paths.all.includes(path)) ?? next(all)]
      : families.map(next);
    const paths = chosen.filter((path) => path !== undefined);
    this.#forgetUdp(paths);
    this.#udp = paths;
    this.#silent = new Set(this.#udp.filter((path) => this.#add(path)));
    if (this.#silent.size === 0) this.#report((paths) => paths.udpSilent());
  }

  async #openWebSocket(): Promise<void> {
    this.#webSocket = null;
    this.#opening.abort();
    const opening = new AbortController();
    this.#opening = opening;
    const way = { timeout: OPEN_TIMEOUT, signal: opening.signal };
    const webSocket = await openWebSocket(this.#host, this.#station, this.#ways, way).catch(() => null);
    if (opening.signal.aborted) {
      if (webSocket !== null) void this.#host.sockets.unbind(webSocket);
      return;
    }
    if (webSocket === null) return this.#report((paths, now) => paths.webSocketFailed(now));
    this.#closeWebSockets();
    this.#webSockets.add(webSocket);
    this.#webSocket = webSocket;
    if (!this.#add(webSocket.path)) this.#report((paths, now) => paths.webSocketFailed(now));
  }

  /**
   * Challenges a path: one of the session as it is while fleeing, else added afresh.
   * @returns false when there is no room for it
   */
  #add(path: Path): boolean {
    const session = this.#session;
    if (this.#decisions.isFleeing && session.paths.all.includes(path)) return session.paths.probe(path);
    // A path that is known to answer would emit no event when it does.
    session.paths.remove(path);
    return session.paths.add(path);
  }

  #probed(path: Path, answered: boolean): void {
    // Also when the core has challenged it by itself, beside the path in use.
    if (this.#silent.has(path) || (answered && this.#udp.includes(path))) this.#udpProbed(path, answered);
    else if (path === this.#webSocket?.path && path !== this.#session.paths.active) this.#webSocketProbed(path, answered);
  }

  #webSocketProbed(path: Path, answered: boolean): void {
    if (this.#isActiveAlive()) this.#report((paths) => paths.activeAnswered());
    if (answered) this.#report((paths, now) => paths.webSocketAnswered(now));
    // Nothing was sent there: it waited for a connection id of the peer.
    else if (this.#sent(path) === 0) this.#report((paths, now) => paths.withoutIds(now));
    else this.#report((paths, now) => paths.webSocketFailed(now));
  }

  #udpProbed(path: Path, answered: boolean): void {
    this.#silent.delete(path);
    if (answered) {
      // The first one that answers is used.
      this.#silent.clear();
      for (const other of this.#udp) if (other !== path) this.#session.paths.remove(other);
      this.#udp = [path];
      this.#report((paths) => paths.udpAnswered());
      return;
    }
    // Each added path takes a connection id, and no new ones come while no packet does.
    if (!this.#decisions.isFleeing) this.#session.paths.remove(path);
    if (this.#silent.size === 0) this.#report((paths) => paths.udpSilent());
  }

  #migrate(to: Over): void {
    const path = to === 'udp' ? this.#udp[0] : this.#webSocket?.path;
    if (path !== undefined) this.#session.paths.migrate(path);
  }

  #migrated(path: Path): void {
    const over = overOf(path);
    const former = this.#decisions.over;
    if (over !== former) this.#ways.blockedHere().note(over === 'websocket');
    // Roaming reports a migration from one UDP socket to another.
    if (path !== this.#path && (over === 'websocket' || former === 'websocket')) this.#noteRouted();
    this.#path = path;
    this.#report((paths, now) => paths.migrated(over, now));
    if (over === 'udp') return;
    this.#closeWebSockets();
    this.#forgetUdp();
    if (this.#silent.size > 0) this.#report((paths) => paths.udpSilent());
    this.#silent.clear();
  }

  /** Sessions over the channel have other keep-alive, and their applications may want to know. */
  #noteRouted(): void {
    const host = this.#host;
    for (const session of host.sessions) if (host.routes.channelOf(session.paths.active) === this.#session) session.noteChannelMigrated();
  }

  #forgetUdp(except: readonly Path[] = []): void {
    for (const path of this.#udp) if (!except.includes(path)) this.#session.paths.remove(path);
  }

  /** Closes all WebSockets that are not in use. */
  #closeWebSockets(): void {
    for (const webSocket of this.#webSockets) if (webSocket.path !== this.#session.paths.active) this.#close(webSocket);
  }

  #close(webSocket: WebSocketSocket): void {
    this.#webSockets.delete(webSocket);
    this.#session.paths.remove(webSocket.path);
    void this.#host.sockets.unbind(webSocket);
    if (this.#webSocket !== webSocket) return;
    this.#webSocket = null;
    // A WebSocket that is being challenged will not answer any more.
    this.#report((paths, now) => paths.webSocketFailed(now));
  }

  #end(): void {
    this.#ended.abort();
    this.#opening.abort();
    this.#alarm.clear();
    this.#cancelAsking();
    for (const webSocket of this.#webSockets) void this.#host.sockets.unbind(webSocket);
  }
}

function overOf({ kind }: Path): Over {
  return kind === 'websocket' ? 'websocket' : 'udp';
}
