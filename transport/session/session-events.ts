/** What a session tells those who listen to it. */
import type { ConnectionEvent, PathChange, PathProbe } from '../../protocol/connection/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';

/** Events of a session with what they carry. */
export interface SessionEvents {
  /** Once; null when this end closed, else why it ended. */
  closed: SvcError | null;
  /** Exchange of a request of the peer that was answered with `observe: true` and is not observed any more. */
  cancelled: number;
  /** Packets go another way from now on: `path`, `type` and `isLocal` say which. */
  path: { path: Path; reason: PathChange };
  /** A path has answered a challenge or has not, or is forgotten: what the core says of paths that were added or that the peer came in on. */
  probed: PathProbe;
  /** Of a session that we opened: the peer has asked whether we are still on the path in use. It may see us at another address than before. */
  challenged: undefined;
  /** Nothing has come back on the path in use for two probe timeouts, or more; or on a route over this session. */
  suspected: undefined;
  /** This host is in another network. */
  network: undefined;
  /** No path carries anything any more, for this reason: the session waits for another one, and ends with CLOSED after a minute without. */
  resting: SvcError;
  /** It goes on. */
  resumed: undefined;
}

/** Events of a connection about whether its path carries, which a session passes on. */
export type News = Extract<ConnectionEvent, { kind: 'suspected' | 'challenged' | 'resting' | 'resumed' }>;

export function isNews(event: ConnectionEvent): event is News {
  return event.kind === 'suspected' || event.kind === 'challenged' || event.kind === 'resting' || event.kind === 'resumed';
}
