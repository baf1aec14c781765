/**
 * The routes through base stations that end at this host. Each has a path that sessions use like any other, bound to
 * the session that carries it (its channel). When the channel migrates, the route follows it, here as at the station.
 * When the channel ends, so do the sessions on its routes: nothing can reach them any more.
 */
import { hex } from '@scure/base';
import type { Clock } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/address.ts';
import type { Endpoint, RouteOptions as EndpointRouteOptions } from '../../protocol/endpoint/index.ts';
import { packed, unpacked } from '../../protocol/packed-bytes.ts';
import { ETHERNET_PAYLOAD, type Path } from '../../protocol/path.ts';
import type { Session } from '../session/session.ts';

/** One route that ends at this host. */
export interface Route {
  readonly path: Path;
  readonly channel: Session;
  /** 16 bytes that the station's Reset for this route carries. */
  readonly resetToken: Uint8Array | undefined;
  readonly since: number;
  /**
   * Address of the peer at the far end of the route, as the station reported it; only for clients that requested a
   * direct path.
   */
  readonly peerAddress: SocketAddress | undefined;
  /**
   * Called once when nothing of this host uses the route any more, while the channel is open: the station may free it.
   * Routes share one function: a closure for each would retain the state of its connect.
   */
  readonly onUnused: ((channel: Session, id: Uint8Array) => void) | undefined;
}

/** Optional properties of a route. */
export type RouteOptions = { readonly [K in 'resetToken' | 'peerAddress' | 'onUnused']?: Route[K] };

/** One for each relayed connection, also while that is direct, so the token is stored packed. */
class Entry implements Route {
  readonly path: RoutePath;
  readonly channel: Session;
  readonly since: number;
  readonly peerAddress: SocketAddress | undefined;
  readonly onUnused: Route['onUnused'];

  constructor(channel: Session, id: Uint8Array, { resetToken, peerAddress, onUnused }: RouteOptions, now: number) {
    this.path = new RoutePath(channel, id, resetToken);
    this.channel = channel;
    this.since = now;
    this.peerAddress = peerAddress;
    this.onUnused = onUnused;
  }

  get resetToken(): Uint8Array | undefined {
    return this.path.resetToken;
  }
}

/** ms that a route may stay unused before it is forgotten: longer than any connect takes. */
export const MAX_UNUSED = 120_000;
/** Routes above which the oldest unused ones are dropped at once, so that a base station cannot fill our memory. */
export const MAX_ROUTES = 1024;

/** The path of a route: through the station that is the peer of a channel, wherever the channel migrates. */
class RoutePath implements Path {
  readonly kind = 'route';
  readonly key: string;
  readonly local = false;
  readonly maxUdpPayload: number;
  /** Packed. */
  readonly #id: string;
  readonly #channel: Session;
  readonly #resetToken: string | null;

  constructor(channel: Session, id: Uint8Array, resetToken: Uint8Array | undefined) {
    const { key, maxUdpPayload = ETHERNET_PAYLOAD } = channel.connection.validatedPath;
    this.key = `route:${hex.encode(id)}@${key}`;
    this.#id = packed(id);
    // The link beyond the station is unknown, whatever the link to the station is.
    this.maxUdpPayload = Math.min(maxUdpPayload, ETHERNET_PAYLOAD);
    this.#channel = channel;
    this.#resetToken = resetToken === undefined ? null : packed(resetToken);
  }

  get resetToken(): Uint8Array | undefined {
    return this.#resetToken === null ? undefined : unpacked(this.#resetToken);
  }

  get route(): Uint8Array {
    return unpacked(this.#id);
  }

  /** Returns whether the route has this id on this channel. */
  is(packedId: string, channel: Session): boolean {
    return this.#id === packedId && this.#channel === channel;
  }

  get address(): string {
    return this.#channel.connection.validatedPath.address;
  }

  get port(): number {
    return this.#channel.connection.validatedPath.port;
  }

  get socket(): number {
    return this.#channel.connection.validatedPath.socket;
  }
}

export interface RoutesOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Null while the core restarts: then no route is used. */
  readonly endpoint: () => Pick<Endpoint, 'accept' | 'offerRoute' | 'usesRoute' | 'withdrawRoute'> | null;
  /** @throws LocalError STOPPED when the host is closed, CORE_FAILED while the core restarts */
  readonly openEndpoint: () => Pick<Endpoint, 'accept' | 'offerRoute'>;
  /** Wakes the driver. */
  readonly wake: () => void;
}

/** All routes of a host. */
export class Routes {
  readonly #options: RoutesOptions;
  readonly #routes = new Map<Path, Entry>();

  constructor(options: RoutesOptions) {
    this.#options = options;
  }

  /**
   * Returns the path through the base station that is the peer of `channel`, for our own route id (8 bytes). Same
   * arguments, same object. Sessions on it end with CLOSED when the channel ends, or when the station sends a Reset
   * with `resetToken` (16 bytes). `onUnused` is called when the route is no longer used, unless the channel has ended.
   */
  path(channel: Session, id: Uint8Array, options: RouteOptions = {}): Path {
    this.#prune();
    const packedId = packed(id);
    for (const { path } of this.#routes.values()) if (path.is(packedId, channel)) return path;
    const entry = new Entry(channel, id, options, this.#options.clock.now());
    this.#routes.set(entry.path, entry);
    return entry.path;
  }

  /**
   * Accepts a relayed Initiate (device: POST /p2p/connect) and returns the Respond packet for the answer. The session
   * appears in onSession when the Complete arrives on `path`.
   * @throws RemoteError when it is refused
   */
  accept(initiate: Uint8Array, path: Path): Uint8Array {
    const { clock, openEndpoint, wake } = this.#options;
    const respond = openEndpoint().accept(initiate, path, clock.now(), this.optionsOf(path));
    wake();
    return respond;
  }

  /**
   * Offers a route to an open session (device: POST /p2p/connect without Initiate): the session whose peer sends to our
   * connection id `id` takes it when a packet of that peer arrives there.
   * @throws RemoteError NOT_FOUND: no session has the id
   */
  offer(id: Uint8Array, channel: Session, routeId: Uint8Array, options: RouteOptions): void {
    const { clock, openEndpoint, wake } = this.#options;
    const endpoint = openEndpoint();
    const path = this.path(channel, routeId, options);
    const isNew = !this.#isUsed(path);
    try {
      endpoint.offerRoute(id, path, clock.now(), this.optionsOf(path));
    } catch (error) {
      // The refusal tells the station from its side.
      if (isNew) this.#routes.delete(path);
      throw error;
    }
    wake();
  }

  /** The address of a route's far end, an unverified claim of the station; undefined without one. */
  peerAddress(path: Path): SocketAddress | undefined {
    return this.#routes.get(path)?.peerAddress;
  }

  /** Returns the channel to the station behind a route; undefined for a path that is not a route of this host. */
  channelOf(path: Path): Session | undefined {
    return this.#routes.get(path)?.channel;
  }

  /** For the endpoint: what it must know of a path. */
  optionsOf(path: Path): EndpointRouteOptions {
    const routeResetToken = this.#routes.get(path)?.resetToken;
    return routeResetToken === undefined ? {} : { routeResetToken };
  }

  /** Removes a route that is no longer used. */
  unused(path: Path): void {
    const route = this.#routes.get(path);
    if (route === undefined) return;
    this.#routes.delete(path);
    if (route.channel.isOpen) route.onUnused?.(route.channel, route.path.route);
  }

  /** Removes the routes of a channel and returns their paths. */
  removeOf(channel: Session): Path[] {
    const paths: Path[] = [];
    for (const [path, route] of this.#routes) if (route.channel === channel) paths.push(path);
    for (const path of paths) {
      this.#routes.delete(path);
      this.#options.endpoint()?.withdrawRoute(path);
    }
    return paths;
  }

  get size(): number {
    return this.#routes.size;
  }

  /** Forgets routes whose connect never completed. */
  #prune(): void {
    const now = this.#options.clock.now();
    for (const [path, route] of this.#routes) {
      const due = now - route.since > MAX_UNUSED || this.#routes.size >= MAX_ROUTES;
      if (due && !this.#isUsed(path)) this.unused(path);
    }
  }

  #isUsed(path: Path): boolean {
    return this.#options.endpoint()?.usesRoute(path) ?? false;
  }
}
