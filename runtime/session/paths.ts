/**
 * The paths of a session: which it has, and how to add, try and remove one. Which path is active is decided below
 * (PROTOCOL.md §6); when to try which is decided by the rendezvous, roaming and the channel's migration. The session
 * emits what becomes of them: `path`, `probed`, `resumed`.
 */
import type { CorePathStats } from '../../bindings/index.ts';
import type { AddPathOptions } from '../../protocol/connection/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { SessionOwner } from './owner.ts';

export class SessionPaths {
  readonly #owner: SessionOwner;

  constructor(owner: SessionOwner) {
    this.#owner = owner;
  }

  /** The path now in use; it may change, so do not keep it. */
  get active(): Path {
    return this.#owner.connection.path;
  }

  /** The last validated active path: a station sends the routes of this channel there (PROTOCOL.md §6.13). */
  get validated(): Path {
    return this.#owner.connection.validatedPath;
  }

  /** The active path and all others that are known, in no order. */
  get all(): readonly Path[] {
    return this.#owner.connection.allPaths;
  }

  /** The active path is local, and the peer has proved to be on it (PROTOCOL.md §6.12). Evaluated at each read. */
  get isLocal(): boolean {
    const { kind, local } = this.active;
    return kind === 'udp' && local && this.#owner.connection.paths.isPeerThere;
  }

  get type(): 'RELAY' | 'DIRECT' {
    return this.active.kind === 'route' ? 'RELAY' : 'DIRECT';
  }

  /** Smoothed round trip on the active path, ms; null before the first measurement. */
  get rtt(): number | null {
    const { rtt = 0, minimumRtt = 0 } = this.stats(this.active) ?? {};
    return minimumRtt > 0 ? rtt : null;
  }

  /** Figures of one path; null for a path that it does not have, and when the session is over. */
  stats(path: Path): CorePathStats | null {
    return this.#owner.whileOpen(() => this.#owner.connection.paths.stats(path), null);
  }

  /**
   * Adds a path, which is validated (event `probed`) and kept until `remove`; see `ConnectionPaths.add`.
   * @returns false when there is no room for it, or the session is over
   */
  add(path: Path, options: AddPathOptions = {}): boolean {
    return this.#change((now) => this.#owner.connection.paths.add(path, now, options));
  }

  /** Keeps an inactive path, challenged every `interval` ms; see `ConnectionPaths.keep`. @returns as add */
  keep(path: Path, interval: number): boolean {
    return this.#change((now) => this.#owner.connection.paths.keep(path, interval, now));
  }

  /** Challenges a path: event `probed`. @returns as add */
  probe(path: Path): boolean {
    return this.#change((now) => this.#owner.connection.paths.probe(path, now));
  }

  /** Makes a path active once it is validated: event `path`. Only for the session's opener. @returns as add */
  migrate(path: Path): boolean {
    return this.#change((now) => this.#owner.connection.paths.migrate(path, now));
  }

  /**
   * Resumes a resting session on this path once the peer has been heard there (event `resumed`; `probed` if it has
   * not).
   * @returns false when the session does not rest
   */
  resume(path: Path): boolean {
    return this.#change((now) => this.#owner.connection.paths.resume(path, now));
  }

  /** Forgets a path. Does nothing for the active one, or one that the session does not have. */
  remove(path: Path): void {
    if (path !== this.active && this.all.includes(path)) this.#change(() => this.#owner.connection.paths.remove(path));
  }

  /**
   * For the host: the path no longer carries packets.
   * @returns false when the session has no other path, and may not rest
   */
  lost(path: Path, reason: SvcError): boolean {
    const { clock, connection, isOpen } = this.#owner;
    return !isOpen || this.#owner.whileOpen(() => connection.pathLost(path, clock.now(), reason), false);
  }

  /** Supplies connection ids in advance: a new path can be used a round trip earlier. 1 KiB at each end. */
  supplyIds(): void {
    this.#change(() => this.#owner.connection.paths.supplyIds());
  }

  /** @param change returns false when there is no room for it */
  #change(change: (now: number) => unknown): boolean {
    return this.#owner.whileOpen(() => change(this.#owner.clock.now()), false) !== false;
  }
}
