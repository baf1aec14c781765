/**
 * The routes that end at this endpoint: paths of kind `route`, found by the 8-byte route id of a Route packet and the
 * channel it came in on. A route id is valid only on its channel; elsewhere it is unknown.
 */
import { equalBytes } from '../identity/index.ts';
import { packed, unpacked } from '../packed-bytes.ts';
import { u32 } from '../packet/index.ts';
import type { Path } from '../path.ts';

interface Entry {
  readonly path: Path;
  readonly low: number;
  /** Token with which the station may end the route, packed; empty: none. */
  resetToken: string;
  /** Number of handshakes and connections on it. */
  users: number;
}

export class Routes {
  /** By the upper half of the id; entries that share it are in one list. */
  readonly #entries = new Map<number, Entry[]>();

  /** Adds a user of a path; ignores paths of other kinds. */
  add(path: Path, resetToken?: Uint8Array): void {
    if (path.route === undefined) return;
    const entry = this.#entry(path) ?? this.#insert(path, path.route);
    entry.users++;
    if (resetToken !== undefined) entry.resetToken = packed(resetToken);
  }

  /** Removes a user. @returns true when it was the last one */
  remove(path: Path): boolean {
    if (path.route === undefined) return false;
    const entry = this.#entry(path);
    if (entry === undefined || --entry.users > 0) return false;
    const high = u32(path.route, 0);
    const rest = this.#entries.get(high)!.filter((other) => other !== entry);
    if (rest.length === 0) this.#entries.delete(high);
    else this.#entries.set(high, rest);
    return true;
  }

  /** Returns whether the path has a user. */
  has(path: Path): boolean {
    return path.route !== undefined && this.#entry(path) !== undefined;
  }

  /** Returns the path of a route id, given as its halves, on the channel that a packet came in on. */
  find(high: number, low: number, channel: Path): Path | undefined {
    const list = this.#entries.get(high);
    if (list === undefined) return undefined;
    for (const entry of list) if (entry.low === low && onChannel(entry.path, channel)) return entry.path;
    return undefined;
  }

  /** Returns the path that a Reset with this route id and token ends. */
  resetBy(id: Uint8Array, token: Uint8Array, channel: Path): Path | undefined {
    const path = this.find(u32(id, 0), u32(id, 4), channel);
    const known = (path && this.#entry(path)?.resetToken) ?? '';
    return known !== '' && equalBytes(unpacked(known), token) ? path : undefined;
  }

  #entry(path: Path): Entry | undefined {
    return this.#entries.get(u32(path.route!, 0))?.find((entry) => entry.path === path);
  }

  #insert(path: Path, route: Uint8Array): Entry {
    const entry: Entry = { path, low: u32(route, 4), resetToken: '', users: 0 };
    const high = u32(route, 0);
    this.#entries.set(high, [...(this.#entries.get(high) ?? []), entry]);
    return entry;
  }
}

/**
 * Returns whether the route's packets travel on this channel. A WebSocket has one peer, whose address may be unknown.
 */
function onChannel(route: Path, channel: Path): boolean {
  if (channel.kind === 'websocket') return route.socket === channel.socket;
  return route.socket === channel.socket && route.port === channel.port && route.address === channel.address;
}
