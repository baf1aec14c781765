/** Events that a session emits. */
import type { ConnectionEvent, PathChange, PathProbe } from '../../protocol/connection/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';

/** Events of a session, with their values. */
export interface SessionEvents {
  /** Emitted once; null when this end closed the session, else why it ended. */
  closed: SvcError | null;
  /** Exchange of a peer's request that was answered with `observe: true` and is no longer observed. */
  cancelled: number;
  /** Packets use another path from now on: see `path`, `type` and `isLocal`. */
  path: { path: Path; reason: PathChange };
  /**
   * A path has answered a challenge, has failed to, or was forgotten: reported for paths that this end added or that
   * the peer used.
   */
  probed: PathProbe;
  /**
   * Of a session that we opened: the peer has challenged the path in use. It may see us at a different address.
   */
  challenged: undefined;
  /** Nothing has come back on the path in use for two probe timeouts or more, here or on a route over this session. */
  suspected: undefined;
  /**
   * Bytes that no application reads here leave so little memory that the peer's further streams get the least window;
   * false: that is over.
   */
  cramped: boolean;
  /** This host is in another network. */
  network: undefined;
  /**
   * The last path was lost, for this reason: the session waits for another one, and ends with CLOSED after a minute
   * without one.
   */
  resting: SvcError;
  /** The session has a path again. */
  resumed: undefined;
}

/** Events of a connection about the state of its path, which a session passes on. */
export type News = Extract<ConnectionEvent, { kind: 'suspected' | 'challenged' | 'resting' | 'resumed' }>;

export function isNews(event: ConnectionEvent): event is News {
  return event.kind === 'suspected' || event.kind === 'challenged' || event.kind === 'resting' || event.kind === 'resumed';
}
