/**
 * Queries the directory on behalf of connects (`connects.ts`).
 *
 * - Bounded, for one client's address and in total. A slot is released when the directory settles, so a directory that
 *   settles late or never holds at most this many. A client gets its answer, or none, within the time limit.
 * - Current: if an answer names no open session and the device attached in the meantime, the directory is queried
 *   again; a client does not miss an attach and then wait for it.
 * - Cancelled with the connect: when its session or its request ends (all sessions do when the base station stops), the
 *   directory is signalled to stop and its answer no longer counts.
 */
import type { Clock, Log } from '../../platform/environment.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { Connect } from './connects.ts';
import type { Directory, Location } from './directory.ts';
import { addressKey } from './rates.ts';

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
 * location: where the device is attached, over an open session; null when nowhere, or when the connect is done. busy:
 * too many are pending. unanswered: the directory failed, or took too long.
 */
export type LookupResult = { readonly location: Location | null } | { readonly failure: 'busy' | 'unanswered' };

/** All queries of a base station to its directory. */
export class Lookups {
  readonly #options: LookupOptions;
  readonly #limit: ConcurrencyLimit;

  constructor(options: LookupOptions) {
    this.#options = options;
    this.#limit = new ConcurrencyLimit(options.limits);
  }

  /** Number of queries that the directory has not settled. */
  get size(): number {
    return this.#limit.size;
  }

  /** Finds the device of a connect. Never rejects. */
  async locate(connect: Connect): Promise<LookupResult> {
    const { clock, timeout } = this.#options;
    const release = this.#limit.acquire(addressKey(connect.session.paths.active));
    if (release === null) return { failure: 'busy' };
    // Creates its signal when a directory reads it: one that answers at once does not pay for it.
    const controller = new AbortController();
    return new Promise((resolve) => {
      const settle = (result: LookupResult): void => {
        cancelTimer();
        connect.abort = null;
        resolve(result);
      };
      const giveUp = (result: LookupResult): void => {
        settle(result);
        controller.abort();
      };
      const cancelTimer = clock.schedule(timeout, () => giveUp(this.#unanswered(connect, 'no answer in time')));
      connect.abort = () => giveUp({ location: null });
      void this.#query(connect, controller).finally(release).then(settle);
    });
  }

  async #query(connect: Connect, controller: AbortController): Promise<LookupResult> {
    const { device, request } = connect;
    try {
      let location: Location | null;
      let attaches: number;
      do {
        attaches = device.attaches;
        location = await this.#options.directory.locate(request, controller);
        if (location?.session.isOpen !== true) location = null;
      } while (location === null && attaches !== device.attaches && !controller.signal.aborted);
      return { location };
    } catch (error) {
      return controller.signal.aborted ? { location: null } : this.#unanswered(connect, String(error));
    }
  }

  #unanswered({ device }: Connect, reason: string): LookupResult {
    this.#options.log.warn('the directory cannot locate a device', { device: device.name, reason });
    return { failure: 'unanswered' };
  }
}
