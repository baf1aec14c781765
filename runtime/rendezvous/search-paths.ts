/**
 * The direct paths of one search: the one that is being validated, the sockets that the host adopted for paths, and the
 * room for a new one. Listens to `probed` only while there is a path that a probe may concern.
 */
import type { BoundSocket, Cancel } from '../../platform/environment.ts';
import type { PathProbe } from '../../protocol/connection/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { RendezvousHost } from './rendezvous-host.ts';
import type { MigratingSession } from './sessions.ts';

export class SearchPaths {
  /** The path that is being validated. */
  trying: Path | null = null;
  readonly #session: MigratingSession;
  readonly #host: Pick<RendezvousHost, 'release'>;
  readonly #search: { probed(probe: PathProbe): void };
  /** Sockets that the host adopted for a path. */
  #adopted: Map<Path, BoundSocket> | null = null;
  #stopProbed: Cancel | null = null;

  /** @param search notified of each probe, after a forgotten path was released */
  constructor(session: MigratingSession, host: Pick<RendezvousHost, 'release'>, search: { probed(probe: PathProbe): void }) {
    this.#session = session;
    this.#host = host;
    this.#search = search;
  }

  /**
   * Migrates to a path once it is validated, and keeps the relay warm behind it.
   * @param adopted the socket that the host adopted for it
   * @param keepInterval ms between challenges of the relay
   * @returns false when there is no room for it
   */
  try(path: Path, adopted: BoundSocket | null, keepInterval: number): boolean {
    const { paths } = this.#session;
    if (adopted !== null) {
      this.#adopted ??= new Map();
      this.#adopted.set(path, adopted);
    }
    this.makeRoom(path);
    if (paths.active.kind === 'route') paths.keep(paths.active, keepInterval);
    this.trying = path;
    this.#stopProbed ??= this.#session.on('probed', (probe) => {
      if (probe.forgotten) this.#forget(probe.path);
      this.#search.probed(probe);
    });
    if (paths.migrate(path)) return true;
    this.drop(path);
    return false;
  }

  /** Drops inactive direct paths to make room for a new one. */
  makeRoom(coming: Path | null = null): void {
    const { paths } = this.#session;
    for (const path of paths.all) if (path.kind === 'udp' && path !== paths.active && path !== coming) this.drop(path);
  }

  drop(path: Path): void {
    if (this.trying === path) this.trying = null;
    this.#session.paths.remove(path);
    this.#forget(path);
  }

  /** Drops the path that is being validated, unless it is this one. */
  dropOther(path: Path | null = null): void {
    if (this.trying !== null && this.trying !== path) this.drop(this.trying);
  }

  /** Releases the sockets of paths that the session no longer has. */
  releaseLost(): void {
    for (const path of [...(this.#adopted?.keys() ?? [])]) if (!this.#session.paths.all.includes(path)) this.#forget(path);
  }

  /** Stops listening when no path is left that a probe could concern. @returns whether nothing is left */
  rest(): boolean {
    if (this.trying !== null || this.#adopted !== null) return false;
    this.#stopProbed?.();
    this.#stopProbed = null;
    return true;
  }

  /** The session has ended: releases all sockets. */
  stop(): void {
    for (const socket of this.#adopted?.values() ?? []) this.#host.release(socket);
    this.#adopted = null;
    this.trying = null;
    this.rest();
  }

  #forget(path: Path): void {
    const adopted = this.#adopted?.get(path);
    if (adopted !== undefined) {
      this.#adopted?.delete(path);
      if (this.#adopted?.size === 0) this.#adopted = null;
      this.#host.release(adopted);
    }
    this.rest();
  }
}
