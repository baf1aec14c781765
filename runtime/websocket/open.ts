/**
 * Opens a WebSocket to a base station as a socket that keeps packets lent until they have left: the client's and the
 * device's end.
 */

import type { Environment, WebSocketOptions } from '../../platform/environment.ts';
import { LocalError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { WebSocketSocket } from './socket.ts';

/** The only subprotocol (PROTOCOL.md §2). */
export const SUBPROTOCOL = 'svc.1';

export interface OpenWebSocketOptions extends Pick<WebSocketOptions, 'url' | 'verifyCertificate' | 'rootCerts' | 'timeout' | 'signal'> {
  /** Receives each packet, lent as in `BindOptions.receive`: what `Sockets.adopt` returns. Must not throw. */
  readonly receive: (datagram: Uint8Array, path: Path) => void;
  /** Called once when it has ended, unless this end closed it: call `Host.drop` then. Not called when opening fails. */
  readonly closed: (error: SvcError, socket: WebSocketSocket) => void;
}

/** @throws as `Network.openWebSocket`; LocalError NOT_IMPLEMENTED where the platform has no WebSockets */
export async function openWebSocketSocket(
  { clock, network }: Pick<Environment, 'clock' | 'network'>,
  { receive, closed, ...options }: OpenWebSocketOptions,
): Promise<WebSocketSocket> {
  if (network.openWebSocket === undefined) throw new LocalError('NOT_IMPLEMENTED', 'this host has no WebSockets');
  // It may end, or receive, before the caller's promise resolves.
  let early: SvcError | null = null;
  let socket: WebSocketSocket | null = null;
  const pipe = await network.openWebSocket({
    ...options,
    protocol: SUBPROTOCOL,
    receive: (message) => socket?.deliver(message),
    closed: (error) => {
      if (socket === null) early = error;
      else socket.ended(error);
    },
  });
  if (early !== null) throw early;
  const opened: WebSocketSocket = new WebSocketSocket(pipe, { clock, receive, closed: (error) => closed(error, opened) });
  socket = opened;
  return opened;
}
