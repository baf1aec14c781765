/** Migration of one session to another socket (RFC 9000 §9). */

import type { BoundSocket } from '../../platform/environment.ts';
import type { Path } from '../../protocol/path.ts';
import type { Session } from '../session/session.ts';

/**
 * Starts when constructed. Packets use `from` until the peer has answered on `to`, which has its own ids; a core that
 * finds `from` silent may choose another path meanwhile.
 */
export class Migration {
  readonly session: Session;
  readonly from: Path;
  readonly to: Path;
  #stops: (() => void)[] = [];
  #isOver = false;

  /**
   * @param onEnd called once, unless the migration ended within the constructor, was undone or was finished before: the
   *   session has migrated, or the attempt has failed
   */
  constructor(session: Session, socket: BoundSocket, onEnd: (migration: Migration) => void) {
    this.session = session;
    this.from = session.paths.active;
    this.to = socket.path(this.from.address, this.from.port);
    const end = (): void => {
      if (this.#isOver) return;
      this.#stop();
      onEnd(this);
    };
    this.#stops = [
      session.on('path', () => (this.hasMigrated || !session.paths.all.includes(this.to)) && end()),
      session.on('probed', ({ path, answered }) => path === this.to && !answered && end()),
      session.on('closed', end),
    ];
    if (!session.paths.migrate(this.to)) this.#stop();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get hasMigrated(): boolean {
    return this.session.paths.active === this.to;
  }

  /** Forgets the path that is not in use. */
  finish(): void {
    this.#stop();
    if (this.session.isOpen) this.session.paths.remove(this.hasMigrated ? this.from : this.to);
  }

  /** Returns to the old path: at once, as it was validated before. */
  undo(): void {
    this.#stop();
    const { session, from, to } = this;
    if (!session.isOpen) return;
    if (this.hasMigrated && session.paths.all.includes(from)) session.paths.migrate(from);
    else session.paths.remove(to);
  }

  #stop(): void {
    this.#isOver = true;
    for (const stop of this.#stops) stop();
    this.#stops = [];
  }
}
