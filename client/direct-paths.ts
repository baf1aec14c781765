/** What the connections of one client share to find direct paths: its end of the network, and how much it may send. */
import { ClientPath, type SocketAddress } from '../protocol/control/index.ts';
import { clientLimits, HostBudget } from '../protocol/rendezvous/index.ts';
import type { Environment } from '../transport/environment.ts';
import type { Host } from '../transport/host/index.ts';
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
} from '../transport/rendezvous/index.ts';
import type { Session } from '../transport/session/index.ts';
import { askAddress } from '../transport/station/index.ts';

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
  /** Of the newest connection: the next one mostly has the same. */
  #kind: (SearchKind & SearchOptions) | null = null;

  constructor({ clock, log }: Environment, host: Host, options: LocalEndOptions) {
    this.#host = host;
    this.#end = new LocalEnd(rendezvousHost(host), options);
    this.#shared = new Searches({ end: this.#end, budget: new HostBudget(clientLimits), clock, log });
  }

  /** Begins to look for a direct path of a relayed connection, whose owner tells it of each move and of the end of the session. */
  search(session: Session, options: SearchOptions): DirectSearch {
    return new DirectSearch({ session, shared: this.#shared, kind: this.#kindOf(options) });
  }

  /** The paths of a connection without a search. */
  report(session: Session): PathsReport {
    const { gatherer } = this.#end;
    return idleReport(
      session,
      (address) => gatherer.isNear(address),
      stationReport(stationView(this.#channelOf(session), null, ask), gatherer),
    );
  }

  /** This host is in another network, and so is the channel to the base station. */
  networkChanged(): void {
    this.#end.networkChanged();
  }

  /** Stops asking STUN, and has the mappings deleted, as far as the routers answer within a second. */
  close(): Promise<void> {
    return this.#end.close();
  }

  #kindOf({ hardNat, stationName }: SearchOptions): SearchKind {
    if (this.#kind?.hardNat !== hardNat || this.#kind.stationName !== stationName) {
      this.#kind = { hardNat, stationName, stationOf: (session) => stationView(this.#channelOf(session), stationName, ask) };
    }
    return this.#kind;
  }

  /** Also while another path than the route is in use. */
  #channelOf(session: Pick<Session, 'paths'>): Session | null {
    for (const path of session.paths) {
      const channel = this.#host.channelOf(path);
      if (channel !== undefined) return channel;
    }
    return null;
  }
}
