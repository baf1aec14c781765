/**
 * The paths of one connection: at most four, each a `Path` of the transport, and the indices by which the core knows
 * them.
 *
 * The core assigns the indices. A packet from an unknown address gets one only after it proved authentic, so no
 * attacker can fill the table. The core selects the active path as PROTOCOL.md §6 says. The application's requests are
 * handled here; the reasons for them are elsewhere.
 */
import {
  type CoreConnection,
  type CorePathStats,
  type CorePaths,
  EventKind,
  PathReason,
  UNKNOWN_PATH,
  UNKNOWN_PORT,
} from '../../bindings/index.ts';
import { isCoreFailure, LocalError } from '../errors/index.ts';
import { type Path, packetCeiling, placeOfPeer } from '../path.ts';
import type { ConnectionEvent, PathChange } from './events.ts';
import type { Lifecycle } from './lifecycle.ts';

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

/**
 * The part `paths` of a connection. Requests throw LocalError NOT_CONNECTED during the handshake, CLOSED after the end.
 */
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
  readonly #life: Lifecycle;

  constructor(first: Path, life: Lifecycle) {
    this.active = first;
    this.validated = first;
    this.#paths = [first];
    this.#life = life;
  }

  /** True when there is only the first path, and nothing to remember about it: another instance may take over. */
  get isIdle(): boolean {
    const isFirst = this.#activeIndex === 0 && this.#paths.every((path, index) => index === 0 || path === null);
    return isFirst && this.validated === this.active && !this.#isActiveLost && !this.#isReplaced;
  }

  /** The active path and all other known ones, in no order. */
  get all(): readonly Path[] {
    return this.#paths.filter((path) => path !== null);
  }

  /** Returns whether one of them uses the socket. */
  isOn(socket: number): boolean {
    for (const path of this.#paths) if (path?.socket === socket) return true;
    return false;
  }

  /**
   * True when the peer has answered on the active path and sends from it. False for a moment after a packet of it came
   * from another address. Check it for decisions that depend on where the peer is.
   */
  get isPeerThere(): boolean {
    try {
      return this.#life.core?.paths.isThere(this.#activeIndex) ?? false;
    } catch (error) {
      if (isCoreFailure(error)) return false;
      throw error;
    }
  }

  /**
   * Gives the peer further connection ids, and requests some: the path can then change at once, and observers cannot
   * link it to this connection. Adding a path does this too.
   */
  supplyIds(): void {
    this.#enableIds(this.#request());
  }

  /**
   * Adds and validates a path, until it is removed: event `probed` follows. Returns false when there is no room.
   * @throws LocalError INVALID_ARGUMENT for a path it has
   */
  add(path: Path, now: number, { keepInterval = 0 }: AddPathOptions = {}): boolean {
    const core = this.#request();
    if (this.#paths.includes(path)) throw new LocalError('INVALID_ARGUMENT', `the connection has the path to ${placeOfPeer(path)} already`);
    this.#enableIds(core);
    const index = core.add({ route: path.route, portOnly: differsByPort(path, this.active), keepInterval }, now);
    if (index < 0) return false;
    this.#set(index, path);
    return true;
  }

  /** Keeps a path, even when no longer active; challenged each `interval` ms, 0 = never. */
  keep(path: Path, interval: number, now: number): void {
    this.#request().keep(this.#known(path), interval, now);
  }

  /** Challenges a path of the connection. */
  probe(path: Path, now: number): void {
    this.#request().probe(this.#known(path), now);
  }

  /**
   * Makes a path active once it has answered a challenge: event `path`. Adds an unknown one; false without room.
   * @throws LocalError INVALID_STATE at the end that did not open the connection
   */
  migrate(path: Path, now: number): boolean {
    const core = this.#request();
    if (path === this.active) return true;
    if (!this.#paths.includes(path) && !this.add(path, now)) return false;
    if (!core.migrate(this.#known(path), now))
      throw new LocalError('INVALID_STATE', 'only the end that opened the connection chooses its path');
    return true;
  }

  /** Forgets a path. @throws LocalError INVALID_STATE for the active one */
  remove(path: Path): void {
    const core = this.#request();
    if (path === this.active) throw new LocalError('INVALID_STATE', 'the active path cannot be removed');
    this.#drop(core, this.#known(path));
  }

  /**
   * At rest: `path` replaces the lost one and is challenged; `resumed` or `probed` follows.
   * @returns false when the connection does not rest
   */
  resume(path: Path, now: number): boolean {
    if (!this.#request().replace(path.route, packetCeiling(path), now)) return false;
    this.#set(this.#activeIndex, path);
    this.active = path;
    this.#isReplaced = true;
    return true;
  }

  /** Returns the figures of a path, null for one it does not have. */
  stats(path: Path): CorePathStats | null {
    const index = this.#paths.indexOf(path);
    return index < 0 ? null : (this.#life.core?.paths.stats(index) ?? null);
  }

  /** Returns the peer's id for our packets on the active path, 8 bytes. */
  remoteId(): Uint8Array {
    return this.#life.data().paths.remoteId();
  }

  // For the connection.

  /** The path of the packets that the core wrote last. */
  get transmitPath(): Path {
    const { core } = this.#life;
    return (core && this.#paths[core.transmitPath]) ?? this.active;
  }

  /** Returns true when the packet is authentic. */
  receive(core: CoreConnection, datagram: Uint8Array, start: number, path: Path, now: number): boolean {
    const index = path === this.active ? this.#activeIndex : this.#indexOf(path);
    if (!core.receive(datagram, start, now, index)) return false;
    const received = core.receivedPath;
    if (path !== this.active && received !== UNKNOWN_PATH) {
      this.#set(received, path);
      // Also for an index that it had: the core may have forgotten the path meanwhile.
      if (path.route !== undefined) core.paths.setRouteOf(received, path.route);
    }
    // Checked with each packet until it is validated, since no event reports the answer that validates the address
    // (paths/validation.ts in the core).
    if (this.validated !== this.active) this.#noteValidated(core.paths);
    return true;
  }

  /**
   * Call when a path no longer carries packets, such as a route that ended. From the active one the initiator migrates
   * immediately to the best of those that answered; the responder waits until the peer comes in on one.
   * @returns false when there is no other
   */
  lost(path: Path, now: number): boolean {
    const core = this.#request();
    if (!this.#paths.includes(path)) return true;
    if (path !== this.active) {
      this.remove(path);
      return !this.isWithoutPath;
    }
    this.#isActiveLost = true;
    if (this.isWithoutPath) return false;
    const best = this.#bestOther(core);
    if (best < 0 || !core.migrate(best, now)) core.probe(this.#activeIndex, now);
    return true;
  }

  /** True when the active path is lost and there is no other. */
  get isWithoutPath(): boolean {
    return this.#isActiveLost && this.all.length === 1;
  }

  /** Notes that the peer was heard. @returns whether that is on a path that replaced another one */
  noteResumed(): boolean {
    const isReplaced = this.#isReplaced;
    this.#isReplaced = false;
    this.#isActiveLost = false;
    return isReplaced;
  }

  /** Handles an event of the core about paths and ids; returns the event for the connection's owner, or null. */
  translate(core: CoreConnection, kind: number, index: number, value: number): ConnectionEvent | null {
    if (kind === EventKind.IDS) {
      this.#enableIds(core.paths);
      const ids = core.paths.ids();
      if (ids !== null) this.#life.owner.idsChanged(ids, core);
      return null;
    }
    const path = this.#paths[index] ?? null;
    if (path === null) return null;
    if (kind === EventKind.PATH_CHANGED) {
      const isLeftLost = this.#isActiveLost && this.active !== path;
      if (isLeftLost) this.#drop(core.paths, this.#activeIndex);
      this.active = path;
      this.#activeIndex = index;
      this.#isActiveLost = false;
      this.#isReplaced = false;
      core.paths.allowPacketSize(packetCeiling(path));
      this.#noteValidated(core.paths);
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

  /** For a request: returns the core's paths. It may cause packets and, as ids are exchanged, events. */
  #request(): CorePaths {
    const { paths } = this.#life.request();
    this.#life.owner.eventful();
    return paths;
  }

  #enableIds(core: CorePaths): void {
    if (!this.#hasIds) this.#hasIds = core.enableIds();
  }

  #drop(core: CorePaths, index: number): void {
    core.remove(index);
    this.#forget(index);
  }

  /** Returns the index of the other path with the shortest round trip among those that have answered, -1 for none. */
  #bestOther(core: CorePaths): number {
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    for (const [index, path] of this.#paths.entries()) {
      if (path === null || index === this.#activeIndex) continue;
      const stats = core.stats(index);
      if (stats?.validated !== true || stats.rtt >= least) continue;
      best = index;
      least = stats.rtt;
    }
    return best;
  }

  #noteValidated(core: CorePaths): void {
    if (core.stats(this.#activeIndex)?.validated === true) this.validated = this.active;
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
    this.#life.owner.pathAdded(path);
    if (index < this.#paths.length) this.#forget(index);
    else this.#paths = Array.from({ length: index + 1 }, (_, i) => this.#paths[i] ?? null);
    this.#paths[index] = path;
  }

  #forget(index: number): void {
    const path = this.#paths[index] ?? null;
    this.#paths[index] = null;
    if (path !== null) this.#life.owner.pathRemoved(path);
  }
}

/** Returns whether only the peer's port differs: measurements of the path then stay valid (RFC 9000 §9.4). */
function differsByPort(path: Path, other: Path): boolean {
  return path.kind === 'udp' && other.kind === 'udp' && path.socket === other.socket && path.address === other.address;
}
