/** What a stream of a session needs of it, and what the connection reports about a stream. */
import type { Connection } from '../../protocol/connection/index.ts';

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
