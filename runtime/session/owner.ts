/** What the parts of a session need of it. */
import type { Clock, Log } from '../../platform/environment.ts';
import type { Connection } from '../../protocol/connection/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';

export interface SessionOwner {
  readonly connection: Connection;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  readonly isOpen: boolean;
  /** @throws LocalError NOT_CONNECTED when the session is over */
  assertOpen(): void;
  /**
   * Returns the result of `call`, or `instead` when the session is over, or its connection is (or its core failed): the
   * event that ends everything on it is on its way, so this call need not fail.
   */
  whileOpen<T>(call: () => T, instead: T): T;
}

/** The rule of `whileOpen` for a caller with its own catch, which needs no closure. */
export function unlessOver<T>(error: unknown, instead: T): T {
  if (error instanceof LocalError && overCodes.has(error.code)) return instead;
  throw error;
}

const overCodes: ReadonlySet<string> = new Set(['CLOSED', 'NOT_CONNECTED', 'CORE_FAILED']);
