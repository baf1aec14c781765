/**
 * Mapping a port by UPnP, with the package `@achingbrain/nat-port-mapper`: a peer dependency that is optional and loaded when this starts.
 *
 * UPnP finds routers by multicast and trusts every answer. So a router counts here only when a default route of this host leads to its address; but the package
 * fetches a description from wherever a neighbour says, before that can be looked at. Therefore this is used only where a person asked for it.
 *
 * The package knows routers of version 2 alone. It renews what it maps. Version 4.0 names no protocol when it deletes, which routers do not understand, so a
 * mapping may stay until its hour is over.
 */

import type { SocketAddress } from '../../protocol/control/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Log, Network } from '../environment.ts';
import { gatewaysWithOwn, type UpnpMapper } from '../port-mapping/index.ts';

/** ms: how long routers may take to answer. */
const SEARCH = 10_000;
/** ms for each request, and for those at the end. */
const REQUEST = 5_000;
const CLOSE = 1_000;
/** ms between two looks at a router's external address. */
const LOOK_AGAIN = 900_000;
/** Routers that are asked, and hosts that may call themselves one before the search ends. */
const MOST_ROUTERS = 2;
const MOST_FOUND = 32;
const DESCRIPTION = 'svc-connect';

/** What is used of the package. */
interface Router {
  readonly host: string;
  map(port: number, host: string, options: { protocol: 'udp'; signal: AbortSignal }): Promise<{ externalPort: number }>;
  externalIp(options: { signal: AbortSignal }): Promise<string>;
  stop(options: { signal: AbortSignal }): Promise<void>;
}

export interface UpnpPackage {
  upnpNat(options: { description: string }): { findGateways(options: { signal: AbortSignal }): AsyncIterable<Router> };
}

export interface NodeUpnpOptions {
  readonly network: Pick<Network, 'gateways' | 'interfaces'>;
  readonly log: Log;
  /** For tests. */
  readonly load?: () => Promise<UpnpPackage>;
}

/** Maps ports by UPnP. @throws nothing: what fails is logged */
export function nodeUpnp(options: NodeUpnpOptions): UpnpMapper {
  return new NodeUpnp(options);
}

class NodeUpnp implements UpnpMapper {
  readonly #options: NodeUpnpOptions;
  readonly #closing = new AbortController();
  readonly #mapped = new Map<Router, SocketAddress>();
  #onChange: (mapped: readonly SocketAddress[]) => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;

  constructor(options: NodeUpnpOptions) {
    this.#options = options;
  }

  start(port: number, onChange: (mapped: readonly SocketAddress[]) => void): void {
    if (this.#work !== undefined || this.#isClosed) return;
    this.#onChange = onChange;
    this.#work = this.#mapAll(port).catch((error) => this.#failed(error));
    this.#timer = setInterval(() => void this.#lookAgain(), LOOK_AGAIN);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#closing.abort();
    clearInterval(this.#timer);
    await this.#work;
    const signal = AbortSignal.timeout(CLOSE);
    await Promise.all([...this.#mapped.keys()].map((router) => router.stop({ signal }).catch((error) => this.#failed(error))));
    this.#mapped.clear();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #mapAll(port: number): Promise<void> {
    const { upnpNat } = await (this.#options.load ?? load)();
    let found = 0;
    for await (const router of upnpNat({ description: DESCRIPTION }).findGateways({ signal: this.#within(SEARCH) })) {
      const own = gatewaysWithOwn(this.#options.network).find(({ address }) => address === router.host)?.own;
      if (own === undefined || own === null) this.#options.log.debug('UPnP: not our router', { host: router.host });
      else await this.#map(router, port, own).catch((error) => this.#failed(error));
      if (++found >= MOST_FOUND || this.#mapped.size >= MOST_ROUTERS || this.#isClosed) return;
    }
  }

  async #map(router: Router, port: number, own: string): Promise<void> {
    const { externalPort } = await router.map(port, own, { protocol: 'udp', signal: this.#within(REQUEST) });
    // Noted before the address is known: what is mapped is deleted in the end.
    this.#mapped.set(router, { address: '', port: externalPort });
    await this.#look(router);
  }

  async #lookAgain(): Promise<void> {
    for (const router of [...this.#mapped.keys()]) await this.#look(router).catch((error) => this.#failed(error));
  }

  async #look(router: Router): Promise<void> {
    const address = await router.externalIp({ signal: this.#within(REQUEST) });
    const mapped = this.#mapped.get(router);
    if (this.#isClosed || mapped === undefined || mapped.address === address) return;
    this.#mapped.set(router, { address, port: mapped.port });
    this.#onChange([...this.#mapped.values()].filter((one) => one.address !== ''));
  }

  #within(time: number): AbortSignal {
    return AbortSignal.any([this.#closing.signal, AbortSignal.timeout(time)]);
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const { log } = this.#options;
    if (error instanceof LocalError) log.warn(error.message);
    else log.debug('no port mapping by UPnP', { error: (error as Error).message });
  }
}

/** @throws LocalError NOT_IMPLEMENTED when the package is not installed */
async function load(): Promise<UpnpPackage> {
  try {
    return (await import('@achingbrain/nat-port-mapper')) as UpnpPackage;
  } catch (error) {
    throw new LocalError('NOT_IMPLEMENTED', 'UPnP needs the package @achingbrain/nat-port-mapper: install it beside svc-connect', {
      cause: error,
    });
  }
}
