/**
 * Routes without a handshake, for existing connections (PROTOCOL.md §6): the peer that opened the connection has
 * requested one and continues on it. To that peer a connection exists once its Complete has left; here it may still be
 * a half-open handshake, which the Complete ends on the offered route.
 *
 *   offered   for one of our ids that a connection has; one per connection at a time, the newest: earlier requests may
 *             have been abandoned, and an attacker that knows the id can block no other
 *   taken     a packet under the connection's keys, or its Complete, came in on it: from then on it is an ordinary path
 *   dropped   no packet came within 30 s, the route ended, or the connection did
 *
 * So strangers cannot fill the table: an entry needs an id with a valid hash, and there are no more entries than
 * connections and half-open handshakes. A stranger that knows the id of a handshake gains nothing: its own route stays
 * valid beside the offered one, and the Complete chooses.
 */
import { RemoteError } from '../errors/index.ts';
import { ID_LENGTH } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { RouteOptions } from './config.ts';
import type { HalfOpen } from './half-open.ts';
import type { Ids } from './ids.ts';
import { Slot } from './registry.ts';
import type { Routes } from './routes.ts';

/** Lifetime of an offer, ms (PROTOCOL.md §9). */
export const BARE_ROUTE_TIME = 30_000;

type Owner = Slot | HalfOpen;

interface Offer {
  readonly owner: Owner;
  readonly until: number;
}

export class BareRoutes {
  readonly #ids: Pick<Ids<Owner>, 'owner'>;
  readonly #routes: Routes;
  /** In order of expiry. */
  readonly #offers = new Map<Path, Offer>();
  readonly #byOwner = new Map<Owner, Path>();

  constructor(ids: Pick<Ids<Owner>, 'owner'>, routes: Routes) {
    this.#ids = ids;
    this.#routes = routes;
  }

  /**
   * Keeps the route for the connection or half-open handshake that has this id.
   * @returns the route that it replaces, unless something else uses that one
   * @throws RemoteError NOT_FOUND: nothing has the id; BAD_REQUEST for a route that is in use, or offered already
   */
  offer(id: Uint8Array, path: Path, { routeResetToken }: RouteOptions, now: number): Path | null {
    const owner = id.length === ID_LENGTH ? this.#ids.owner(id) : undefined;
    if (owner === undefined || (owner instanceof Slot && owner.connection.state !== 'open'))
      throw new RemoteError('NOT_FOUND', 'there is no connection with this id');
    if (this.#routes.has(path) && !isLostBy(owner, path)) throw new RemoteError('BAD_REQUEST', 'the route is in use');
    const before = this.dropOf(owner);
    this.#routes.add(path, routeResetToken);
    this.#offers.set(path, { owner, until: now + BARE_ROUTE_TIME });
    this.#byOwner.set(owner, path);
    return before;
  }

  /** Returns whether the route is offered to the handshake. */
  isOffered(path: Path, entry: HalfOpen): boolean {
    return this.#byOwner.get(entry) === path;
  }

  /** The handshake became a connection: its offer is that connection's. */
  handOver(entry: HalfOpen, slot: Slot): void {
    const path = this.#byOwner.get(entry);
    if (path === undefined) return;
    this.#byOwner.delete(entry);
    this.#byOwner.set(slot, path);
    this.#offers.set(path, { ...this.#offers.get(path)!, owner: slot });
  }

  /**
   * Drops an offer: a connection has the path now, or the route ended.
   * @returns true when it was offered and nothing else uses the route
   */
  drop(path: Path): boolean {
    const offer = this.#offers.get(path);
    if (offer === undefined) return false;
    this.#offers.delete(path);
    this.#byOwner.delete(offer.owner);
    return this.#routes.remove(path);
  }

  /**
   * Drops the offer of a connection or handshake that is gone or gets another one.
   * @returns the offered route, unless something else uses it
   */
  dropOf(owner: Owner): Path | null {
    const path = this.#byOwner.get(owner);
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

/** Returns whether it is a connection that rests and had that route. */
function isLostBy(owner: Owner, path: Path): boolean {
  return owner instanceof Slot && owner.connection.restReason !== null && owner.connection.allPaths.includes(path);
}
