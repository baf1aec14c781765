/** The TCP side of a tunnel on a client in Node: a server whose connections are carried over streams. */
import { setMaxListeners } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { pump, resetSocket } from '../../platform/node/index.ts';
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';
import type { Stream } from '../../runtime/session/index.ts';
import type { TunnelListener } from '../platform.ts';

/** See ListenTunnel. */
export function listenTunnel(port: number, startStream: () => Stream): Promise<TunnelListener> {
  return listenTcp({ port, address: '127.0.0.1' }, (socket, signal) => carry(socket, startStream, signal));
}

/**
 * Listens on a numeric address; port 0 takes a free one. `take` receives each TCP connection, unread, and the signal
 * that closes the listener.
 * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (an address that this host does not have)
 */
export async function listenTcp(
  { port, address }: { readonly port: number; readonly address: string },
  take: (socket: Socket, signal: AbortSignal) => void,
): Promise<TunnelListener> {
  const closing = new AbortController();
  // Each connection listens for the end; the device limits their number.
  setMaxListeners(0, closing.signal);
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) => take(socket, closing.signal));
  await listen(server, address, port);
  // A connection that cannot be accepted, usually for lack of descriptors, is lost; a later one may be accepted.
  server.on('error', () => {});
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    close() {
      closing.abort();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/**
 * Carries one TCP connection: its first bytes travel with the opening of the stream, and it is reset when the device
 * refuses.
 */
function carry(socket: Socket, startStream: () => Stream, signal: AbortSignal): void {
  try {
    void pump(startStream(), socket, { signal });
  } catch {
    // The session has just ended.
    socket.on('error', () => {});
    resetSocket(socket);
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host, port }, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): LocalError {
  if (error.code === 'EADDRINUSE') return new PortInUseError('TCP', port, { cause: error });
  if (error.code === 'EACCES') {
    const message = `this user may not open TCP port ${port}: choose a port of 1024 or above, or 0 for a free one`;
    return new LocalError('PRIVILEGED_PORT', message, { cause: error });
  }
  if (error.code === 'EADDRNOTAVAIL')
    return new LocalError('INVALID_ARGUMENT', `${host} is not an address of this host: listen on one of its addresses`, { cause: error });
  return new LocalError('UNKNOWN', error.message, { cause: error });
}
