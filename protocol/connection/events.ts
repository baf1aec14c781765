/** The events that a connection emits to its owner. */
import { EventKind } from '../../bindings/index.ts';
import type { SvcError } from '../errors/index.ts';
import type { Path } from '../path.ts';

/**
 * Why the active path changed: this end chose it; the peer chose it; the peer's address changed; the previous path
 * answers after all; the previous path no longer answered.
 */
export type PathChange = 'migrated' | 'followed' | 'rebound' | 'returned' | 'failed-over';

/** The outcome of a challenge on a path. */
export interface PathProbe {
  readonly path: Path;
  /**
   * The path has answered a challenge, for the first time or again: it may be chosen. False: it did not answer in time,
   * or was forgotten.
   */
  readonly answered: boolean;
  /**
   * The connection no longer has the path: this end did not add it and it did not answer, or it was left a while ago.
   */
  readonly forgotten: boolean;
}

/** An event of `Connection.nextEvent`. */
export type ConnectionEvent =
  /** The handshake that we started is complete; data may flow. */
  | { readonly kind: 'opened' }
  /** The handshake that we started has failed; nothing else follows. */
  | { readonly kind: 'failed'; readonly error: SvcError }
  /**
   * The end; nothing else follows. `error` is null when this end closed; `code` is a CloseCode or one of RFC 9000
   * §20.1.
   */
  | { readonly kind: 'closed'; readonly error: SvcError | null; readonly code: number; readonly reason: string }
  | { readonly kind: 'message'; readonly data: Uint8Array }
  /** sendMessage has room again. */
  | { readonly kind: 'messages-writable' }
  /** The peer opened a byte stream: accept or refuse it. */
  | { readonly kind: 'stream'; readonly id: number; readonly port: number }
  /** The peer accepted the byte stream that we opened. */
  | { readonly kind: 'accepted'; readonly id: number }
  /** Bytes or the end are available: read until 0 or -1. */
  | { readonly kind: 'readable'; readonly id: number }
  /** The stream takes bytes again after a short write. */
  | { readonly kind: 'writable'; readonly id: number }
  /** All that we wrote, and the end, is acknowledged. */
  | { readonly kind: 'finished'; readonly id: number }
  /** The peer reset its direction. Before 'accepted' it means that the stream was refused. */
  | { readonly kind: 'reset'; readonly id: number; readonly code: number }
  /** The peer takes no further bytes of this stream. */
  | { readonly kind: 'stopped'; readonly id: number; readonly code: number }
  /** openStream has room again. */
  | { readonly kind: 'streams-available' }
  /**
   * Bytes that no application reads leave so little memory that the peer's further streams get the least window; false:
   * that is over.
   */
  | { readonly kind: 'cramped'; readonly cramped: boolean }
  | { readonly kind: 'datagram'; readonly data: Uint8Array }
  /** At least two consecutive ack-eliciting packets were not acknowledged: the active path may be dead. */
  | { readonly kind: 'suspected' }
  /** At the end that opened it: the peer has challenged the active path, as it does when it sees our address change. */
  | { readonly kind: 'challenged' }
  /**
   * No path carries packets any longer: the connection rests, and ends if that lasts too long. `reason`: why the last
   * one was lost.
   */
  | { readonly kind: 'resting'; readonly reason: SvcError }
  /** The peer has been heard on a path: the rest is over. */
  | { readonly kind: 'resumed' }
  /** From now on packets use another path. */
  | { readonly kind: 'path'; readonly path: Path; readonly reason: PathChange }
  | ({ readonly kind: 'probed' } & PathProbe);

/** The events of the core that carry nothing. */
export const SIGNALS: Readonly<Record<number, ConnectionEvent>> = {
  [EventKind.PATH_SUSPECTED]: { kind: 'suspected' },
  [EventKind.PATH_CHALLENGED]: { kind: 'challenged' },
  [EventKind.MESSAGES_WRITABLE]: { kind: 'messages-writable' },
  [EventKind.STREAMS_AVAILABLE]: { kind: 'streams-available' },
};
