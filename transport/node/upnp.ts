/**
 * Maps a port by UPnP, with the package `@achingbrain/nat-port-mapper`: an optional peer dependency, loaded when this
 * starts.
 *
 * UPnP finds routers by multicast and trusts every answer. So a router counts here only when a default route of this
 * host leads to its address; but the package fetches a description from any URL that a neighbour names, before that can
 * be checked. Therefore this is used only if an operator enabled it.
 *
 * The package knows routers of version 2 only. It renews its mappings. Version 4.0 names no protocol when it deletes,
 * which routers do not understand, so a mapping may stay until its hour is over.
 *
 * In another network, mappings at routers that are gone are deleted, as far as they still answer, and the search begins
 * again.
 */

import type { SocketAddress } from '../../protocol/control/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Log, Network } from '../environment.ts';
import { type Gateway, gatewaysWithOwn, type UpnpMapper } from '../port-mapping/index.ts';

/** ms: time for routers to answer. */
const SEARCH = 10_000;
/** ms for each request, and for the final ones. */
const REQUEST = 5_000;
const CLOSE = 1_000;
/** ms between two checks of a router's external address. */
const LOOK_AGAIN = 900_000;
/** Routers that are asked for a mapping, and hosts that may claim to be one before the search ends. */
const MOST_ROUTERS = 2;
const MOST_FOUND = 32;
const DESCRIPTION = 'svc-connect';

/** The part of the package in use. */
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

/** Maps ports by UPnP. Never throws: failures are logged. */
export function nodeUpnp(options: NodeUpnpOptions): UpnpMapper {
  return new NodeUpnp(options);
}

/** A router that was asked for a mapping. */
interface Asked {
  /** Our address that it maps to. */
  readonly own: string;
  /** Null until it has confirmed; without an address until that is known. */
  readonly mapped: SocketAddress | null;
}

class NodeUpnp implements UpnpMapper {
  readonly #options: NodeUpnpOptions;
  readonly #closing = new AbortController();
  /** Aborted when the gateways change: ends work in progress. */
  #network = new AbortController();
  /**
   * Entered before they are asked: one whose answer is lost may have mapped the port, and the package would renew that.
   */
  readonly #routers = new Map<Router, Asked>();
  /** Routers to be stopped. */
  readonly #left: Router[] = [];
  /** Gateways, with our addresses there, of the current search. */
  #gateways = '';
  /** 0 before the start. */
  #port = 0;
  #isStale = false;
  #onChange: (mapped: readonly SocketAddress[]) => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;

  constructor(options: NodeUpnpOptions) {
    this.#options = options;
  }

  start(port: number, onChange: (mapped: readonly SocketAddress[]) => void): void {
    if (this.#port !== 0 || this.#isClosed) return;
    this.#port = port;
    this.#onChange = onChange;
    this.#gateways = keyOf(this.#currentGateways);
    this.#search();
    this.#timer = setInterval(() => void this.#lookAgain(), LOOK_AGAIN);
    this.#timer.unref();
  }

  refresh(): void {
    if (this.#port === 0 || this.#isClosed) return;
    const gateways = this.#currentGateways;
    if (keyOf(gateways) === this.#gateways) return;
    this.#gateways = keyOf(gateways);
    this.#network.abort();
    this.#network = new AbortController();
    const isGone = ([{ host }, { own }]: [Router, Asked]): boolean => !gateways.some((each) => each.address === host && each.own === own);
    const gone = [...this.#routers].filter(isGone);
    for (const [router] of gone) this.#leave(router);
    if (gone.some(([, { mapped }]) => mapped !== null)) this.#report();
    this.#search();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#closing.abort();
    clearInterval(this.#timer);
    await this.#work;
    for (const router of [...this.#routers.keys()]) this.#leave(router);
    await this.#stopLeft();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  get #currentGateways(): readonly Gateway[] {
    return gatewaysWithOwn(this.#options.network);
  }

  /** Searches; during a search, schedules one more. */
  #search(): void {
    this.#isStale = true;
    this.#work ??= this.#searchAll();
  }

  async #searchAll(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      await this.#stopLeft();
      await this.#mapAll().catch((error) => this.#failed(error));
    }
    this.#work = undefined;
  }

  async #mapAll(): Promise<void> {
    const { upnpNat } = await (this.#options.load ?? load)();
    const signal = this.#timeoutSignal(SEARCH);
    let found = 0;
    for await (const router of upnpNat({ description: DESCRIPTION }).findGateways({ signal })) {
      if (signal.aborted) return;
      await this.#consider(router).catch((error) => this.#failed(error));
      if (++found >= MOST_FOUND || this.#routers.size >= MOST_ROUTERS || signal.aborted) return;
    }
  }

  async #consider(router: Router): Promise<void> {
    const own = this.#currentGateways.find(({ address }) => address === router.host)?.own;
    if (own === undefined || own === null) this.#options.log.debug('UPnP: not our router', { host: router.host });
    else if ([...this.#routers.keys()].every(({ host }) => host !== router.host)) await this.#map(router, own);
  }

  async #map(router: Router, own: string): Promise<void> {
    this.#routers.set(router, { own, mapped: null });
    try {
      const { externalPort } = await router.map(this.#port, own, { protocol: 'udp', signal: this.#timeoutSignal(REQUEST) });
      // It may have been removed meanwhile.
      if (this.#routers.has(router)) this.#routers.set(router, { own, mapped: { address: '', port: externalPort } });
    } catch (error) {
      this.#leave(router);
      await this.#stopLeft();
      throw error;
    }
    await this.#look(router);
  }

  /** The router is no longer ours, or has not confirmed a mapping: its mappings are deleted when it is stopped. */
  #leave(router: Router): void {
    if (this.#routers.delete(router)) this.#left.push(router);
  }

  async #stopLeft(): Promise<void> {
    const signal = AbortSignal.timeout(CLOSE);
    await Promise.all(this.#left.splice(0).map((router) => router.stop({ signal }).catch((error) => this.#failed(error))));
  }

  async #lookAgain(): Promise<void> {
    for (const router of [...this.#routers.keys()]) await this.#look(router).catch((error) => this.#failed(error));
  }

  async #look(router: Router): Promise<void> {
    if (this.#routers.get(router)?.mapped == null) return;
    const address = await router.externalIp({ signal: this.#timeoutSignal(REQUEST) });
    const asked = this.#routers.get(router);
    if (this.#isClosed || asked?.mapped == null || asked.mapped.address === address) return;
    this.#routers.set(router, { own: asked.own, mapped: { address, port: asked.mapped.port } });
    this.#report();
  }

  #report(): void {
    this.#onChange([...this.#routers.values()].flatMap(({ mapped }) => (mapped === null || mapped.address === '' ? [] : mapped)));
  }

  #timeoutSignal(time: number): AbortSignal {
    return AbortSignal.any([this.#closing.signal, this.#network.signal, AbortSignal.timeout(time)]);
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const { log } = this.#options;
    if (error instanceof LocalError) log.warn(error.message);
    else log.debug('no port mapping by UPnP', { error: (error as Error).message });
  }
}

function keyOf(gateways: readonly Gateway[]): string {
  return gateways.map(({ address, own }) => `${address} ${own}`).join();
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
