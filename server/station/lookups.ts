/**
 * Queries the directory on behalf of clients, and holds the pending queries.
 *
 * - Bounded, for one client's address and in total. A slot is released when the directory settles, so a directory that
 *   settles late or never holds at most this many. A client gets its answer, or none, within the time limit.
 * - Current: if an answer names no open session and the device attached in the meantime, the directory is queried
 *   again; a client does not miss an attach and then wait for it.
 * - Cancelled with the client: when its session or its request ends (all sessions do when the base station stops), the
 *   directory is signalled to stop and its answer no longer counts.
 */
import type { Clock, Log } from '../../platform/environment.ts';
import type { Session } from '../../runtime/session/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { DeviceIds, Directory, Location } from './directory.ts';
import { type PendingConnect, PendingConnects } from './pending-connects.ts';
import { deviceName } from './presence.ts';

export interface LookupOptions {
  directory: Directory;
  clock: Clock;
  log: Log;
  /** For one address (IPv4) or /64 (IPv6), and in total. */
  limits: { perKey: number; total: number };
  /** ms that the directory may take. */
  timeout: number;
}

/**
 * location: where the device is attached, over an open session. busy: too many are pending. unanswered: the directory
 * failed, or took too long. cancelled: the client does not wait for the answer.
 */
export type LookupResult = { readonly location: Location | null } | { readonly failure: 'busy' | 'unanswered' | 'cancelled' };

const CANCELLED: LookupResult = { failure: 'cancelled' };

interface Lookup extends PendingConnect {
  /** Creates its signal when a directory reads it: one that answers at once does not pay for it. */
  readonly controller: AbortController;
  /** Whether the device has attached since the directory was queried. */
  attached: boolean;
  /** The client's result; the first one counts. */
  result: LookupResult | null;
  /** Called with the result of a lookup that is pending. */
  onResult: ((result: LookupResult) => void) | null;
}

/** All queries of a base station to its directory. */
export class Lookups {
  readonly #options: LookupOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #pending = new PendingConnects<Lookup>();
  /** Number of attaches so far. */
  #attaches = 0;

  constructor(options: LookupOptions) {
    this.#options = options;
    this.#limit = new ConcurrencyLimit(options.limits);
  }

  /** Number of queries that the directory has not settled. */
  get size(): number {
    return this.#limit.size;
  }

  /** Finds the device of a connect. Never rejects. @param address of the client, as `addressKey` returns it */
  async locate(connect: PendingConnect, address: string): Promise<LookupResult> {
    if (!connect.session.isOpen) return CANCELLED;
    const release = this.#limit.acquire(address);
    if (release === null) return { failure: 'busy' };
    const { device, session, exchange } = connect;
    const lookup: Lookup = { device, session, exchange, controller: new AbortController(), attached: false, result: null, onResult: null };
    const attaches = this.#attaches;
    void this.#ask(lookup).finally(release);
    // The directory of this process answers within one turn of the microtasks, without timer and index.
    await null;
    if (lookup.result !== null) return lookup.result;
    // The session may have ended in that turn, when `removeSession` could not find the lookup yet.
    if (!session.isOpen) {
      this.#giveUp(lookup, CANCELLED);
      return CANCELLED;
    }
    lookup.attached = attaches !== this.#attaches;
    return this.#pend(lookup);
  }

  /** Notes that a device attached: pending answers for it may be out of date. */
  attached(device: DeviceIds): void {
    this.#attaches++;
    for (const lookup of this.#pending.ofDevice(device)) lookup.attached = true;
  }

  /** Cancels the lookups of an ended session. */
  removeSession(session: Session): void {
    this.#cancel([...this.#pending.ofSession(session)]);
  }

  /** Cancels the lookup of a cancelled request. */
  removeExchange(session: Session, exchange: number): void {
    this.#cancel(this.#pending.ofExchange(session, exchange));
  }

  #pend(lookup: Lookup): Promise<LookupResult> {
    const { clock, timeout } = this.#options;
    return new Promise((resolve) => {
      this.#pending.add(lookup);
      const cancelTimer = clock.schedule(timeout, () => this.#giveUp(lookup, this.#unanswered(lookup, 'no answer in time')));
      lookup.onResult = (result) => {
        this.#pending.remove(lookup);
        cancelTimer();
        resolve(result);
      };
    });
  }

  async #ask(lookup: Lookup): Promise<void> {
    try {
      let location: Location | null;
      do {
        lookup.attached = false;
        location = await this.#options.directory.locate(lookup.device, lookup.controller);
        if (location?.session.isOpen !== true) location = null;
      } while (location === null && lookup.attached && lookup.result === null);
      this.#settle(lookup, { location });
    } catch (error) {
      if (lookup.result === null) this.#settle(lookup, this.#unanswered(lookup, String(error)));
    }
  }

  #settle(lookup: Lookup, result: LookupResult): void {
    if (lookup.result !== null) return;
    lookup.result = result;
    lookup.onResult?.(result);
  }

  #unanswered({ device }: PendingConnect, reason: string): LookupResult {
    this.#options.log.warn('the directory cannot locate a device', { device: deviceName(device), reason });
    return { failure: 'unanswered' };
  }

  #cancel(lookups: readonly Lookup[]): void {
    for (const lookup of lookups) this.#giveUp(lookup, CANCELLED);
  }

  #giveUp(lookup: Lookup, result: LookupResult): void {
    this.#settle(lookup, result);
    lookup.controller.abort();
  }
}
