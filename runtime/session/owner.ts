/** What the parts of a session need of it, and what the connection reports about a stream. */
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

/** The session of a stream. @typeParam Stream a stream of the session */
export interface StreamOwner<Stream> {
  readonly connection: StreamCarrier;
  /** As `SessionOwner.whileOpen`. */
  whileOpen<T>(call: () => T, instead: T): T;
  /** Both directions are over: the stream needs no further events. */
  ended(stream: Stream): void;
}

/** The part of a connection that carries streams. */
export interface StreamCarrier {
  readonly streams: Pick<Connection['streams'], 'take' | 'read' | 'write' | 'finish' | 'reset' | 'stop' | 'setWeight' | 'stats'>;
}

/** Events that the connection reports about a stream. */
export type StreamEvent =
  | { kind: 'accepted' }
  | { kind: 'readable' }
  | { kind: 'writable' }
  | { kind: 'finished' }
  | { kind: 'reset'; code: number }
  | { kind: 'stopped'; code: number };
