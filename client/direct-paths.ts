/**
 * State that the connections of one client share to find direct paths: the local end of the network, its sending
 * limits, and the keep-alive of its NAT.
 */

import type { Environment } from '../platform/environment.ts';
import { ClientPath, type SocketAddress } from '../protocol/control/index.ts';
import type { Path } from '../protocol/path.ts';
import { clientLimits, HostBudget } from '../protocol/rendezvous/index.ts';
import type { Host } from '../runtime/host/index.ts';
import { HostKeepAlive, type KeepAliveWish } from '../runtime/keep-alive/index.ts';
import {
  DirectSearch,
  idleReport,
  LocalEnd,
  type LocalEndOptions,
  type PathsReport,
  rendezvousHost,
  Searches,
  type SearchKind,
  stationReport,
  stationView,
} from '../runtime/rendezvous/index.ts';
import type { RoamingEvent } from '../runtime/roaming/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { askAddress } from '../runtime/station/index.ts';

const ask = (channel: Session): Promise<SocketAddress | null> => askAddress(channel, ClientPath.ADDRESS);

export interface SearchOptions {
  readonly hardNat: boolean;
  /** Host of the station's URL. */
  readonly stationName: string | null;
}

export class DirectPaths {
  readonly #host: Host;
  readonly #end: LocalEnd;
  readonly #shared: Searches;
  readonly #keepAlive: HostKeepAlive;
  /** Kind of the newest connection: the next one usually has the same. */
  #kind: (SearchKind & SearchOptions) | null = null;

  constructor({ clock, log }: Environment, host: Host, options: LocalEndOptions) {
    this.#host = host;
    this.#end = new LocalEnd(rendezvousHost(host), options);
    const { gatherer } = this.#end;
    this.#keepAlive = new HostKeepAlive({
      environment: host.environment,
      isNear: (address) => gatherer.isNear(address),
      onChange: (callback) => gatherer.onChange(callback),
      channelOf: (session) => this.channelOf(session),
      ask,
    });
    this.#shared = new Searches(this.#end, new HostBudget(clientLimits), { clock, log });
  }

  /**
   * Starts the search for a direct path of a relayed connection, whose owner reports each migration and the end of the
   * session.
   */
  search(session: Session, options: SearchOptions): DirectSearch {
    return new DirectSearch({ session, shared: this.#shared, kind: this.#kindOf(options) });
  }

  /** Reports the paths of a connection without a search. */
  report(session: Session): PathsReport {
    const { gatherer } = this.#end;
    return idleReport(
      session,
      (address) => gatherer.isNear(address),
      stationReport(stationView(this.channelOf(session), null, ask), gatherer),
      this.#keepAlive.report(session),
    );
  }

  /**
   * Keeps a connection, and the channel behind its route, alive as rarely as the options and the NAT allow. Call it
   * once for each connection.
   */
  keepAlive(session: Session, wish: KeepAliveWish): void {
    this.#keepAlive.follow(session, wish);
  }

  /** ms between keep-alives of a connection. */
  keepAliveInterval(session: Session): number {
    return this.#keepAlive.intervalOf(session);
  }

  /** ms between challenges that keep a route warm behind a direct path. */
  get warmInterval(): number {
    return this.#keepAlive.warmInterval;
  }

  /** Returns the channel to the base station, even while a path other than the route is in use. */
  channelOf(session: { readonly paths: { readonly all: readonly Path[] } }): Session | null {
    for (const path of session.paths.all) {
      const channel = this.#host.routes.channelOf(path);
      if (channel !== undefined) return channel;
    }
    return null;
  }

  /** Handles a change of network. `migrated`: the channel to the base station has migrated with this host. */
  networkEvent(event: RoamingEvent): void {
    if (event === 'migrated') this.#end.networkChanged();
    else if (event === 'changed' || event === 'reverted') this.#keepAlive.networkChanged();
    else this.#keepAlive.interrupted();
  }

  /** Stops STUN requests, and deletes the mappings as far as routers answer within a second. */
  close(): Promise<void> {
    this.#keepAlive.close();
    return this.#end.close();
  }

  #kindOf({ hardNat, stationName }: SearchOptions): SearchKind {
    if (this.#kind?.hardNat !== hardNat || this.#kind.stationName !== stationName) {
      this.#kind = {
        hardNat,
        stationName,
        stationOf: (session) => stationView(this.channelOf(session), stationName, ask),
        keepInterval: () => this.#keepAlive.warmInterval,
        keepAliveReport: (session) => this.#keepAlive.report(this.channelOf(session)),
      };
    }
    return this.#kind;
  }
}
