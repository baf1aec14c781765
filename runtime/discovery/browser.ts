/**
 * Looks for services on the local network: one browser per client, however many listeners it has. It opens the sockets
 * with the first listener and keeps them for some seconds after the last: a connect after the other needs them, and
 * joining the groups costs more than the rest of a connect. Listeners keep the process alive, the sockets do not. Each
 * listener has its own stream: known services arrive as ADD.
 */

import type { Cancel, Environment } from '../../platform/environment.ts';
import type { MdnsNetwork } from '../../platform/mdns.ts';
import {
  browsedName,
  type DiscoveredService,
  FoundServices,
  MAX_INSTANCES,
  Scanner,
  type ServiceChange,
  type ServiceEvent,
  ServiceStream,
} from '../../protocol/discovery/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { guarded } from '../emitter.ts';
import { MdnsLinks } from './links.ts';

/** ms for which the sockets stay open without a listener. */
const LINGER = 10_000;

/** Receives each change. It may end its own listening, and that of others. */
export type ServiceListener = (change: ServiceChange) => void;

interface Subscription {
  readonly stream: ServiceStream;
  readonly listener: ServiceListener;
}

/** What is sought, by name in lower case, and its number of listeners. */
type Names = Map<string, { readonly name: string; listeners: number }>;

export class MdnsBrowser {
  readonly environment: Environment;
  readonly #subscriptions = new Set<Subscription>();
  readonly #browsed: Names = new Map();
  readonly #sought: Names = new Map();
  /** Each connect starts afresh and would log the same failure again. */
  readonly #failed = new Set<string>();
  #links: MdnsLinks<Scanner, ServiceEvent> | null = null;
  #found = new FoundServices();
  #closing: Promise<void> = Promise.resolve();
  #closed = false;
  #cancelLinger: Cancel = () => {};
  /** Releases the process. */
  #release: () => void = () => {};

  constructor(environment: Environment) {
    this.environment = environment;
  }

  /**
   * Listens for the services of the type, or of a subtype if it is neither null nor ''. A service is reported once its
   * port, address and TXT record are known.
   * @returns a function that ends it
   * @throws LocalError NOT_IMPLEMENTED where the environment has no multicast DNS; INVALID_ARGUMENT for an invalid
   *   subtype; STOPPED after close
   */
  browse(subtype: string | null, listener: ServiceListener): () => void {
    const name = browsedName(subtype);
    const key = name.toLowerCase();
    return this.#subscribe(this.#browsed, name, listener, ({ listed, txt }) => listed.includes(key) && txt !== null);
  }

  /**
   * Asks for one instance by its name, at once, and listens for it: it is reported once its port and address are known.
   * @returns a function that ends it
   * @throws LocalError as browse
   */
  find(instance: string, listener: ServiceListener): () => void {
    const key = instance.toLowerCase();
    return this.#subscribe(this.#sought, instance, listener, ({ name }) => name.toLowerCase() === key);
  }

  /** @throws LocalError as browse */
  check(subtype: string | null): void {
    this.#requireNetwork();
    browsedName(subtype);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Ends all listening. Resolves when the sockets are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#subscriptions.size > 0) this.#release();
    this.#subscriptions.clear();
    this.#end();
    await this.#closing;
  }

  #subscribe(wanted: Names, name: string, listener: ServiceListener, selects: (service: DiscoveredService) => boolean): () => void {
    const network = this.#requireNetwork();
    const subscription = { stream: new ServiceStream(selects), listener };
    this.#cancelLinger();
    if (this.#subscriptions.size === 0) this.#release = this.environment.keepProcess?.() ?? (() => {});
    this.#subscriptions.add(subscription);
    const known = wanted.get(name.toLowerCase());
    if (known === undefined) wanted.set(name.toLowerCase(), { name, listeners: 1 });
    else known.listeners++;
    if (this.#links === null) this.#begin(network);
    else this.#ask(wanted, name, known === undefined);
    // Not before the caller has received the function that ends it.
    this.environment.clock.soon(() => {
      for (const service of this.#found.all()) this.#emit(subscription, service.name);
    });
    return () => this.#unsubscribe(subscription, wanted, name);
  }

  #requireNetwork(): MdnsNetwork {
    if (this.#closed) throw new LocalError('STOPPED', 'the client is stopped');
    const { mdns } = this.environment;
    if (mdns !== undefined) return mdns;
    throw new LocalError(
      'NOT_IMPLEMENTED',
      'there is no multicast DNS where this client runs, as in a browser: connect through a base station, or give the address of the device',
    );
  }

  #unsubscribe(subscription: Subscription, wanted: Names, name: string): void {
    if (!this.#subscriptions.delete(subscription)) return;
    if (--wanted.get(name.toLowerCase())!.listeners === 0) {
      wanted.delete(name.toLowerCase());
      this.#askNoMore(wanted, name);
    }
    if (this.#subscriptions.size > 0) return;
    this.#release();
    this.#cancelLinger = this.environment.clock.schedule(LINGER, () => this.#end());
  }

  #begin(network: MdnsNetwork): void {
    const { clock } = this.environment;
    const links: MdnsLinks<Scanner, ServiceEvent> = new MdnsLinks({
      environment: this.environment,
      network,
      failed: this.#failed,
      begin: (_link, random) => this.#askAll(new Scanner(random, MAX_INSTANCES)),
      // It may be another network: what was heard on the old one ends with its TTL.
      changed: (scanner) => void this.#askAll(scanner),
      event: ({ name, service }, link) => {
        this.#found.set(link, name, service);
        this.#emitAll(name);
      },
      ended: ({ name }) => {
        if (this.#links === links) for (const each of this.#found.removeLink(name)) this.#emitAll(each);
      },
    });
    this.#links = links;
    // As above; listeners that start at the same time share the first questions.
    clock.soon(() => {
      if (this.#links === links) links.start();
    });
  }

  #end(): void {
    this.#cancelLinger();
    const links = this.#links;
    this.#links = null;
    this.#found = new FoundServices();
    this.#browsed.clear();
    this.#sought.clear();
    if (links !== null) this.#closing = Promise.all([this.#closing, links.close()]).then(() => {});
  }

  #askAll(scanner: Scanner): Scanner {
    const now = this.environment.clock.now();
    for (const { name } of this.#browsed.values()) scanner.browse(name, now);
    for (const { name } of this.#sought.values()) scanner.find(name, now);
    return scanner;
  }

  /** Continues to browse a known name; asks again for a sought instance, as a new listener waits for it now. */
  #ask(wanted: Names, name: string, isNew: boolean): void {
    const now = this.environment.clock.now();
    if (wanted === this.#sought) this.#links?.each((scanner) => scanner.find(name, now));
    else if (isNew) this.#links?.each((scanner) => scanner.browse(name, now));
  }

  #askNoMore(wanted: Names, name: string): void {
    const now = this.environment.clock.now();
    this.#links?.each((scanner) => (wanted === this.#sought ? scanner.endFind(name, now) : scanner.endBrowse(name)));
  }

  #emitAll(name: string): void {
    for (const subscription of [...this.#subscriptions]) this.#emit(subscription, name);
  }

  #emit(subscription: Subscription, name: string): void {
    if (!this.#subscriptions.has(subscription)) return;
    const change = subscription.stream.update(name, this.#found.get(name));
    if (change !== null) guarded(this.environment.log, 'the mDNS listener', () => subscription.listener(change));
  }
}
