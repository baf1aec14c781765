/** What a connection tells its owner. */
import type { SvcError } from '../errors/index.ts';
import type { Path } from '../path.ts';

/**
 * Why the active path changed: this end chose it; the peer chose it; the peer's address has changed; the path before still answers after all; the
 * path before did not answer any more.
 */
export type PathChange = 'migrated' | 'followed' | 'rebound' | 'returned' | 'failed-over';

/** What became of a path that was asked. */
export interface PathProbe {
  readonly path: Path;
  /** It has answered a challenge, for the first time or again: it may be chosen. False: it did not answer in time, or it is forgotten. */
  readonly answered: boolean;
  /** The connection no longer has the path: one that this end has not added did not answer, or was left a while ago. */
  readonly forgotten: boolean;
}

/** An event of `Connection.nextEvent`. */
export type ConnectionEvent =
  /** The handshake we began is complete; data may flow. */
  | { readonly kind: 'opened' }
  /** The handshake we began has failed; nothing else follows. */
  | { readonly kind: 'failed'; readonly error: SvcError }
  /** The end. `error` is null when this end closed; `code` is a CloseCode or a number of RFC 9000 §20.1. Nothing else follows. */
  | { readonly kind: 'closed'; readonly error: SvcError | null; readonly code: number; readonly reason: string }
  | { readonly kind: 'message'; readonly data: Uint8Array }
  /** sendMessage has room again. */
  | { readonly kind: 'messages-writable' }
  /** The other end opened a byte stream: accept or refuse it. */
  | { readonly kind: 'stream'; readonly id: number; readonly port: number }
  /** The other end accepted the byte stream we opened. */
  | { readonly kind: 'accepted'; readonly id: number }
  /** Bytes or the end can be read: read until 0 or -1. */
  | { readonly kind: 'readable'; readonly id: number }
  /** Takes bytes again after a short write. */
  | { readonly kind: 'writable'; readonly id: number }
  /** All we wrote, with the end, is acknowledged. */
  | { readonly kind: 'finished'; readonly id: number }
  /** The other end reset its direction. Before 'accepted' it means that the stream was refused. */
  | { readonly kind: 'reset'; readonly id: number; readonly code: number }
  /** The other end takes no more bytes of ours. */
  | { readonly kind: 'stopped'; readonly id: number; readonly code: number }
  /** openStream has room again. */
  | { readonly kind: 'streams-available' }
  | { readonly kind: 'datagram'; readonly data: Uint8Array }
  /** The second packet in a row, or a further one, that asked for an acknowledgement has got none: the active path may be dead. */
  | { readonly kind: 'suspected' }
  /** At the end that opened it: the other end has challenged the active path, as it does when it sees us at another address than before. */
  | { readonly kind: 'challenged' }
  /** No path carries anything any more: the connection rests, and ends if that lasts too long. `reason`: why the last one was lost. */
  | { readonly kind: 'resting'; readonly reason: SvcError }
  /** The other end was heard on a path: the rest is over. */
  | { readonly kind: 'resumed' }
  /** Packets go to another path from now on. */
  | { readonly kind: 'path'; readonly path: Path; readonly reason: PathChange }
  | ({ readonly kind: 'probed' } & PathProbe);
