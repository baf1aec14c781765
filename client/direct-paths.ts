/** What the connections of one client share to find direct paths: its host's STUN, what is known of its network, and how much it may send. */
import { clientLimits, HostBudget } from '../protocol/rendezvous/index.ts';
import type { Environment } from '../transport/environment.ts';
import type { Host } from '../transport/host/index.ts';
import { DirectSearch, Gatherer, type RendezvousHost, rendezvousHost, StunDispatcher, stationView } from '../transport/rendezvous/index.ts';
import type { Session } from '../transport/session/index.ts';

export interface SearchOptions {
  /** The option Rendezvous; false: only the report works. */
  readonly enabled: boolean;
  readonly hardNat: boolean;
}

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

  /** Begins to look for a direct path of a connection, as far as it may. It ends with the session. */
  search(session: Session, { enabled, hardNat }: SearchOptions): DirectSearch {
    const { clock, log } = this.#environment;
    return new DirectSearch({
      session,
      host: this.#rendezvousHost,
      dispatcher: this.#dispatcher,
      gatherer: this.#gatherer,
      budget: this.#budget,
      clock,
      log,
      enabled: enabled && session.type === 'RELAY',
      hardNat,
      station: () => stationView(this.#channelOf(session)),
    });
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
