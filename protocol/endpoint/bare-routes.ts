/**
 * Routes without a handshake, for existing connections (PROTOCOL.md §6): the peer that opened the connection has
 * requested one and continues on it.
 *
 *   offered   for one of our ids that a connection has; one per connection at a time, the newest: earlier requests may
 *             have been abandoned, and an attacker that knows the id can block no other
 *   taken     a packet under the connection's keys came in on it: from then on it is an ordinary path
 *   dropped   no packet came within 30 s, the route ended, or the connection did
 *
 * So strangers cannot fill the table: an entry needs an id with a valid hash, and there are no more entries than
 * connections.
 */
import { RemoteError } from '../errors/index.ts';
import { ID_LENGTH } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { RouteOptions } from './config.ts';
import { HalfOpen } from './half-open.ts';
import type { Ids } from './ids.ts';
import type { Slot } from './registry.ts';
import type { Routes } from './routes.ts';

/** Lifetime of an offer, ms (PROTOCOL.md §9). */
export const BARE_ROUTE_TIME = 30_000;

interface Offer {
  readonly slot: Slot;
  readonly until: number;
}

export class BareRoutes {
  readonly #ids: Pick<Ids<Slot | HalfOpen>, 'owner'>;
  readonly #routes: Routes;
  /** In order of expiry. */
  readonly #offers = new Map<Path, Offer>();
  readonly #bySlot = new Map<Slot, Path>();

  constructor(ids: Pick<Ids<Slot | HalfOpen>, 'owner'>, routes: Routes) {
    this.#ids = ids;
    this.#routes = routes;
  }

  /**
   * Keeps the route for the connection that has this id.
   * @returns the route that it replaces, unless something else uses that one
   * @throws RemoteError NOT_FOUND: no connection has the id; BAD_REQUEST for a route that is in use, or offered already
   */
  offer(id: Uint8Array, path: Path, { routeResetToken }: RouteOptions, now: number): Path | null {
    const owner = id.length === ID_LENGTH ? this.#ids.owner(id) : undefined;
    if (owner === undefined || owner instanceof HalfOpen || owner.connection.state !== 'open')
      throw new RemoteError('NOT_FOUND', 'there is no connection with this id');
    if (this.#routes.has(path) && !isLostBy(owner, path)) throw new RemoteError('BAD_REQUEST', 'the route is in use');
    const before = this.dropOf(owner);
    this.#routes.add(path, routeResetToken);
    this.#offers.set(path, { slot: owner, until: now + BARE_ROUTE_TIME });
    this.#bySlot.set(owner, path);
    return before;
  }

  /**
   * Drops an offer: a connection has the path now, or the route ended.
   * @returns true when it was offered and nothing else uses the route
   */
  drop(path: Path): boolean {
    const offer = this.#offers.get(path);
    if (offer === undefined) return false;
    this.#offers.delete(path);
    this.#bySlot.delete(offer.slot);
    return this.#routes.remove(path);
  }

  /**
   * Drops the offer of a connection that is gone or gets another one.
   * @returns the offered route, unless something else uses it
   */
  dropOf(slot: Slot): Path | null {
    const path = this.#bySlot.get(slot);
    return path !== undefined && this.drop(path) ? path : null;
  }

  nextTimeout(): number {
    for (const { until } of this.#offers.values()) return until;
    return Number.POSITIVE_INFINITY;
  }

  /** @returns the routes that no packet arrived on */
  handleTimeout(now: number): Path[] {
    const over: Path[] = [];
    for (const [path, { until }] of this.#offers) {
      if (until > now) break;
      if (this.drop(path)) over.push(path);
    }
    return over;
  }
}

/** Returns whether the connection rests and had that route. */
function isLostBy({ connection }: Slot, path: Path): boolean {
  return connection.restReason !== null && connection.paths.includes(path);
}
