/**
 * The paths of one connection: at most four, each a `Path` of the transport, and the indices by which the core knows
 * them.
 *
 * The core assigns the indices. A packet from an unknown address gets one only after it proved authentic, so no
 * attacker can fill the table. The core selects the active path as PROTOCOL.md §6 says. The application's requests are
 * handled here; the reasons for them are elsewhere.
 */
import { type CoreConnection, type CorePathStats, EventKind, PathReason, UNKNOWN_PATH, UNKNOWN_PORT } from '../../bindings/index.ts';
import { LocalError } from '../errors/index.ts';
import { type Path, packetCeiling, placeOfPeer } from '../path.ts';
import type { ConnectionEvent, PathChange } from './events.ts';
import type { ConnectionOwner } from './owner.ts';

/** Options of an additional path. */
export interface AddPathOptions {
  /** ms between challenges that keep it warm; 0, the default: none. */
  readonly keepInterval?: number;
}

const REASONS: Readonly<Record<number, PathChange>> = {
  [PathReason.MIGRATED]: 'migrated',
  [PathReason.FOLLOWED]: 'followed',
  [PathReason.REBOUND]: 'rebound',
  [PathReason.RETURNED]: 'returned',
  [PathReason.FAILED_OVER]: 'failed-over',
};

/** The paths of one connection. */
export class ConnectionPaths {
  /** The path that packets are sent on. */
  active: Path;
  /** The last active path on which the peer has proved to receive: the first, until another one is validated. */
  validated: Path;
  #activeIndex = 0;
  #hasIds = false;
  /** The active path no longer carries packets. */
  #isActiveLost = false;
  /** The active path replaced a lost one, and the peer has not been heard there yet. */
  #isReplaced = false;
  /** Replaced when it grows: an array that grows by push keeps room for 17 entries in V8. */
  #paths: (Path | null)[];
  readonly #core: CoreConnection;
  readonly #owner: ConnectionOwner;

  constructor(core: CoreConnection, first: Path, owner: ConnectionOwner) {
    this.active = first;
    this.validated = first;
    this.#paths = [first];
    this.#core = core;
    this.#owner = owner;
  }

  /** All paths, in no order. */
  get all(): readonly Path[] {
    return this.#paths.filter((path) => path !== null);
  }

  /** Returns whether one of them uses the socket. */
  isOn(socket: number): boolean {
    for (const path of this.#paths) if (path?.socket === socket) return true;
    return false;
  }

  /** True when the peer has proved to receive on the active path and its packets come from there. */
  get isPeerThere(): boolean {
    return this.#core.paths.isThere(this.#activeIndex);
  }

  /** The path of the packets that the core wrote last. */
  get transmitPath(): Path {
    return this.#paths[this.#core.transmitPath] ?? this.active;
  }

  /** Returns true when the packet is authentic. */
  receive(datagram: Uint8Array, start: number, path: Path, now: number): boolean {
    const index = path === this.active ? this.#activeIndex : this.#indexOf(path);
    if (!this.#core.receive(datagram, start, now, index)) return false;
    const received = this.#core.receivedPath;
    if (path !== this.active && received !== UNKNOWN_PATH) {
      this.#set(received, path);
      // Also for an index that it had: the core may have forgotten the path meanwhile.
      if (path.route !== undefined) this.#core.paths.setRouteOf(received, path.route);
    }
    // Checked with each packet until it is validated, since no event reports the answer that validates the address
    // (paths/validation.ts in the core).
    if (this.validated !== this.active) this.#noteValidated();
    return true;
  }

  /** Exchanges ids with the peer from now on, so that the path can change without being recognized. */
  supplyIds(): void {
    if (!this.#hasIds) this.#hasIds = this.#core.paths.enableIds();
  }

  /** @returns false when there is no room for another path. @throws LocalError INVALID_ARGUMENT for one it has */
  add(path: Path, options: AddPathOptions, now: number): boolean {
    if (this.#paths.includes(path)) throw new LocalError('INVALID_ARGUMENT', `the connection has the path to ${placeOfPeer(path)} already`);
    this.supplyIds();
    const index = this.#core.paths.add(
      { route: path.route, portOnly: differsByPort(path, this.active), keepInterval: options.keepInterval ?? 0 },
      now,
    );
    if (index < 0) return false;
    this.#set(index, path);
    return true;
  }

  keep(path: Path, interval: number, now: number): void {
    this.#core.paths.keep(this.#known(path), interval, now);
  }

  probe(path: Path, now: number): void {
    this.#core.paths.probe(this.#known(path), now);
  }

  /** @returns false when there is no room for the path. @throws LocalError INVALID_STATE at the responder */
  migrate(path: Path, now: number): boolean {
    if (path === this.active) return true;
    if (!this.#paths.includes(path) && !this.add(path, {}, now)) return false;
    if (!this.#core.paths.migrate(this.#known(path), now))
      throw new LocalError('INVALID_STATE', 'only the end that opened the connection chooses its path');
    return true;
  }

  /** @throws LocalError INVALID_STATE for the active path */
  remove(path: Path): void {
    if (path === this.active) throw new LocalError('INVALID_STATE', 'the active path cannot be removed');
    const index = this.#known(path);
    this.#core.paths.remove(index);
    this.#forget(index);
  }

  /**
   * Call when a path no longer carries packets, such as a route that ended. From the active one the initiator migrates
   * immediately to the best of those that answered; the responder waits until the peer comes in on one.
   * @returns false when there is no other
   */
  lost(path: Path, now: number): boolean {
    if (!this.#paths.includes(path)) return true;
    if (path !== this.active) {
      this.remove(path);
      return !this.isWithoutPath;
    }
    this.#isActiveLost = true;
    if (this.isWithoutPath) return false;
    const best = this.#bestOther();
    if (best < 0 || !this.#core.paths.migrate(best, now)) this.#core.paths.probe(this.#activeIndex, now);
    return true;
  }

  /** True when the active path is lost and there is no other. */
  get isWithoutPath(): boolean {
    return this.#isActiveLost && this.all.length === 1;
  }

  /** At rest: `path` replaces the lost one. @returns false when the connection does not rest */
  replaceActive(path: Path, now: number): boolean {
    if (!this.#core.paths.replace(path.route, packetCeiling(path), now)) return false;
    this.#set(this.#activeIndex, path);
    this.active = path;
    this.#isReplaced = true;
    return true;
  }

  /** Notes that the peer was heard. @returns whether that is on a path that replaced another one */
  noteResumed(): boolean {
    const isReplaced = this.#isReplaced;
    this.#isReplaced = false;
    this.#isActiveLost = false;
    return isReplaced;
  }

  /** Returns the figures of one path, null for a path it does not have. */
  stats(path: Path): CorePathStats | null {
    const index = this.#paths.indexOf(path);
    return index < 0 ? null : this.#core.paths.stats(index);
  }

  /** Handles an event of the core about paths and ids; returns the event for the connection's owner, or null. */
  translate(kind: number, index: number, value: number): ConnectionEvent | null {
    if (kind === EventKind.IDS) {
      this.supplyIds();
      const ids = this.#core.paths.ids();
      if (ids !== null) this.#owner.idsChanged(ids, this.#core);
      return null;
    }
    const path = this.#paths[index] ?? null;
    if (path === null) return null;
    if (kind === EventKind.PATH_CHANGED) {
      const isLeftLost = this.#isActiveLost && this.active !== path;
      if (isLeftLost) this.#dropLost(this.#activeIndex);
      this.active = path;
      this.#activeIndex = index;
      this.#isActiveLost = false;
      this.#isReplaced = false;
      this.#core.paths.allowPacketSize(packetCeiling(path));
      this.#noteValidated();
      return { kind: 'path', path, reason: isLeftLost ? 'failed-over' : (REASONS[value] ?? 'rebound') };
    }
    const forgotten = kind === EventKind.PATH_FAILED && value === 1;
    if (forgotten) this.#forget(index);
    return { kind: 'probed', path, answered: kind === EventKind.PATH_VALIDATED, forgotten };
  }

  /** Forgets all paths. */
  clear(): void {
    for (let index = 0; index < this.#paths.length; index++) this.#forget(index);
  }

  /** Removes a lost path that packets no longer use. */
  #dropLost(index: number): void {
    this.#core.paths.remove(index);
    this.#forget(index);
  }

  /** Returns the index of the other path with the shortest round trip among those that have answered, -1 for none. */
  #bestOther(): number {
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (const [index, path] of this.#paths.entries()) {
      if (path === null || index === this.#activeIndex) continue;
      const stats = this.#core.paths.stats(index);
      if (stats?.validated !== true || stats.rtt >= least) continue;
      best = index;
      least = stats.rtt;
    }
    return best;
  }

  #noteValidated(): void {
    if (this.#core.paths.stats(this.#activeIndex)?.validated === true) this.validated = this.active;
  }

  /** Returns the index of a path, or the core's marker for one that has none. */
  #indexOf(path: Path): number {
    const index = this.#paths.indexOf(path);
    if (index >= 0) return index;
    return differsByPort(path, this.active) ? UNKNOWN_PORT : UNKNOWN_PATH;
  }

  #known(path: Path): number {
    const index = this.#paths.indexOf(path);
    if (index < 0) throw new LocalError('INVALID_ARGUMENT', `the connection has no path to ${placeOfPeer(path)}`);
    return index;
  }

  #set(index: number, path: Path): void {
    if (this.#paths[index] === path) return;
    this.#owner.pathAdded(path);
    if (index < this.#paths.length) this.#forget(index);
    else this.#paths = Array.from({ length: index + 1 }, (_, i) => this.#paths[i] ?? null);
    this.#paths[index] = path;
  }

  #forget(index: number): void {
    const path = this.#paths[index] ?? null;
    this.#paths[index] = null;
    if (path !== null) this.#owner.pathRemoved(path);
  }
}

/** Returns whether only the peer's port differs: measurements of the path then stay valid (RFC 9000 §9.4). */
function differsByPort(path: Path, other: Path): boolean {
  return path.kind === 'udp' && other.kind === 'udp' && path.socket === other.socket && path.address === other.address;
}
