/** What the connections of one client share to find direct paths: its host's STUN, what is known of its network, and how much it may send. */
import { clientLimits, HostBudget } from '../protocol/rendezvous/index.ts';
import type { Environment } from '../transport/environment.ts';
import type { Host } from '../transport/host/index.ts';
import {
  DirectSearch,
  Gatherer,
  idleReport,
  type PathsReport,
  type RendezvousHost,
  rendezvousHost,
  StunDispatcher,
  stationView,
} from '../transport/rendezvous/index.ts';
import type { Session } from '../transport/session/index.ts';

export class DirectPaths {
  readonly #environment: Environment;
  readonly #host: Host;
  readonly #rendezvousHost: RendezvousHost;
  readonly #dispatcher: StunDispatcher;
  readonly #gatherer: Gatherer;
  readonly #budget = new HostBudget(clientLimits);

  /** @param excluded interfaces whose addresses are not told to devices */
  constructor(environment: Environment, host: Host, excluded: readonly string[]) {
    this.#environment = environment;
    this.#host = host;
    this.#rendezvousHost = rendezvousHost(host);
    this.#dispatcher = new StunDispatcher(this.#rendezvousHost);
    this.#gatherer = new Gatherer({ host: this.#rendezvousHost, dispatcher: this.#dispatcher, excluded });
  }

  /** Begins to look for a direct path of a relayed connection. It ends with the session. */
  search(session: Session, hardNat: boolean): DirectSearch {
    const { clock, log } = this.#environment;
    return new DirectSearch({
      session,
      host: this.#rendezvousHost,
      dispatcher: this.#dispatcher,
      gatherer: this.#gatherer,
      budget: this.#budget,
      clock,
      log,
      hardNat,
      station: () => stationView(this.#channelOf(session)),
    });
  }

  /** The paths of a connection without a search. */
  report(session: Session): PathsReport {
    return idleReport(session, (address) => this.#gatherer.isNear(address));
  }

  close(): void {
    this.#dispatcher.close();
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
