import type { Connection } from '../../protocol/connection/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Deferred } from '../deferred.ts';
import type { Session } from '../session/session.ts';
import type { ConnectTarget } from './config.ts';

/** A connect under way. */
export interface Dial {
  readonly target: ConnectTarget;
  readonly connection: Connection;
  /** Null while a prepared one waits for its Respond. */
  path: Path | null;
  readonly result: Deferred<Session>;
}
