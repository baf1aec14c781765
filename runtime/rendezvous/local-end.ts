/**
 * State shared by all rendezvous of one host: its STUN, its knowledge of the network, and the port that its routers
 * map. Used by a client's host and by a device's.
 */

import type { Cancel } from '../../platform/environment.ts';
import { isLoopback, parseAddress } from '../../protocol/address.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import { PortMapper } from '../port-mapping/index.ts';
import { Gatherer } from './gatherer.ts';
import type { RendezvousHost } from './rendezvous-host.ts';
import type { StationView } from './station-view.ts';
import { StunDispatcher } from './stun-dispatcher.ts';

export interface LocalEndOptions {
  /** Addresses that a person stated, such as a forwarded port. */
  readonly stated?: readonly SocketAddress[];
  /** Interfaces that are not named to peers. */
  readonly excluded?: readonly string[];
  /** False: routers are not asked to map a port. */
  readonly mapsPort: boolean;
}

export class LocalEnd {
  readonly host: RendezvousHost;
  readonly dispatcher: StunDispatcher;
  readonly gatherer: Gatherer;
  readonly #options: LocalEndOptions;
  #mapper: PortMapper | null = null;
  #isMapping = false;
  #stopWatching: Cancel | null = null;
  #closed = false;

  constructor(host: RendezvousHost, options: LocalEndOptions) {
    const { stated = [], excluded = [] } = options;
    this.host = host;
    this.#options = options;
    this.dispatcher = new StunDispatcher(this.host);
    this.#mapper = this.#newMapper();
    this.gatherer = new Gatherer({
      host: this.host,
      dispatcher: this.dispatcher,
      stated,
      excluded,
      mapped: () => this.#mapper?.mapped ?? [],
    });
  }

  /**
   * Asks the routers to map the port from now on; the result counts from the next list. Harmless to call twice. If the
   * station is on this host, no peer comes from outside, and no router is asked.
   */
  mapPort(station: StationView | null): void {
    const at = station === null ? null : parseAddress(station.at.address);
    if (this.#closed || at === null || isLoopback(at)) return;
    this.gatherer.refresh();
    this.#isMapping = true;
    if (this.#mapper === null) return;
    this.#mapper.start();
    this.#stopWatching ??= this.gatherer.onChange(() => this.#mapper?.refresh());
  }

  /** This host is in another network, perhaps with another socket: notifies the watchers. */
  networkChanged(): void {
    if (this.#closed) return;
    if (this.#mapper !== null && this.#mapper.port !== this.host.socket.port) {
      void this.#mapper.close();
      this.#mapper = this.#newMapper();
      if (this.#isMapping) this.#mapper?.start();
    }
    this.gatherer.changed();
  }

  #newMapper(): PortMapper | null {
    const { environment, socket } = this.host;
    return this.#options.mapsPort ? new PortMapper({ environment, port: socket.port }) : null;
  }

  /** Deletes the mappings, as far as the routers answer within a second. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopWatching?.();
    this.gatherer.close();
    this.dispatcher.close();
    await this.#mapper?.close();
  }
}
