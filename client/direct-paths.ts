/** What the connections of one client share to find direct paths: its end of the network, and how much it may send. */
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
  stationReport,
  stationView,
} from '../transport/rendezvous/index.ts';
import type { Session } from '../transport/session/index.ts';

export interface SearchOptions {
  readonly hardNat: boolean;
  /** Host of the station's URL. */
  readonly stationName: string | null;
}

export class DirectPaths {
  readonly #environment: Environment;
  readonly #host: Host;
  readonly #end: LocalEnd;
  readonly #budget = new HostBudget(clientLimits);

  constructor(environment: Environment, host: Host, options: LocalEndOptions) {
    this.#environment = environment;
    this.#host = host;
    this.#end = new LocalEnd(rendezvousHost(host), options);
  }

  /** Begins to look for a direct path of a relayed connection. It ends with the session. */
  search(session: Session, { hardNat, stationName }: SearchOptions): DirectSearch {
    const { clock, log } = this.#environment;
    return new DirectSearch({
      session,
      end: this.#end,
      budget: this.#budget,
      clock,
      log,
      hardNat,
      station: () => stationView(this.#channelOf(session), stationName),
    });
  }

  /** The paths of a connection without a search. */
  report(session: Session): PathsReport {
    const { gatherer } = this.#end;
    return idleReport(session, (address) => gatherer.isNear(address), stationReport(stationView(this.#channelOf(session), null), gatherer));
  }

  close(): Promise<void> {
    return this.#end.close();
  }

  /** Also while another path than the route is in use. */
  #channelOf(session: Session): Session | null {
    for (const path of session.paths) {
      const channel = this.#host.channelOf(path);
      if (channel !== undefined) return channel;
    }
    return null;
  }
}
