/**
 * The routes through base stations that this host is an end of: for each a path that sessions use like any other, bound to the session it was made
 * over (its channel). When the channel ends, so do the sessions on its routes: nothing could reach them any more.
 */
import { hex } from '@scure/base';
import { ETHERNET_PAYLOAD, type Path } from '../../protocol/path.ts';
import type { Session } from './session.ts';

/** One route that this host is an end of. */
export interface Route {
  readonly path: Path;
  readonly channel: Session;
  /** 16 bytes a Reset of the station for this route carries. */
  readonly resetToken: Uint8Array | undefined;
  readonly since: number;
}

/** ms a route may stay without a session before it is forgotten: longer than any connect takes. */
const MAX_UNUSED = 120_000;
/** Routes above which the oldest without a session go at once: a base station may not fill our memory with them. */
const MAX_ROUTES = 1024;

/** All routes of a host. */
export class Routes {
  readonly #routes = new Map<string, Route>();

  /** The route with this id over this channel; same arguments, same path object. */
  add(channel: Session, id: Uint8Array, resetToken: Uint8Array | undefined, now: number): Route {
    const { key, address, port, socket, maxUdpPayload = ETHERNET_PAYLOAD } = channel.path;
    const name = `route:${hex.encode(id)}@${key}`;
    const known = this.#routes.get(name);
    if (known !== undefined && known.channel === channel) return known;
    const path: Path = {
      kind: 'route',
      key: name,
      address,
      port,
      socket,
      // Nothing is known of the link behind the station, whatever the one in front of it is.
      maxUdpPayload: Math.min(maxUdpPayload, ETHERNET_PAYLOAD),
      local: false,
      route: id.slice(),
    };
    const route: Route = { path, channel, resetToken: resetToken?.slice(), since: now };
    this.#routes.set(name, route);
    return route;
  }

  find(path: Path): Route | undefined {
    const route = this.#routes.get(path.key);
    return route?.path === path ? route : undefined;
  }

  remove(path: Path): void {
    if (this.find(path) !== undefined) this.#routes.delete(path.key);
  }

  /** Takes out the routes of a channel. */
  removeOf(channel: Session): Path[] {
    const paths: Path[] = [];
    for (const route of this.#routes.values()) if (route.channel === channel) paths.push(route.path);
    for (const path of paths) this.#routes.delete(path.key);
    return paths;
  }

  get size(): number {
    return this.#routes.size;
  }

  /** Forgets routes whose connect never came to anything. @param used paths of sessions and of connects under way */
  prune(used: ReadonlySet<Path>, now: number): void {
    for (const [key, route] of this.#routes) {
      const due = now - route.since > MAX_UNUSED || this.#routes.size >= MAX_ROUTES;
      if (due && !used.has(route.path)) this.#routes.delete(key);
    }
  }
}
