/** The TCP side of a tunnel on a client in Node: a server on 127.0.0.1 whose connections are carried over streams. */
import { setMaxListeners } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';
import { pump } from '../../transport/node/index.ts';
import type { SessionStream } from '../../transport/session/index.ts';
import type { TunnelListener } from '../host.ts';

/** See ListenTunnel. */
export async function listenTunnel(port: number, startStream: () => SessionStream): Promise<TunnelListener> {
  const closing = new AbortController();
  // Each connection listens for the end; their number is the device's to bound.
  setMaxListeners(0, closing.signal);
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) =>
    carry(socket, startStream, closing.signal),
  );
  await listen(server, port);
  // A connection that cannot be accepted, for want of descriptors above all, is lost; the next one may be taken again.
  server.on('error', () => {});
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close() {
      closing.abort();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** One TCP connection: its first bytes travel with the opening of the stream, and it is reset when the device does not take that. */
function carry(socket: Socket, startStream: () => SessionStream, signal: AbortSignal): void {
  try {
    void pump(startStream(), socket, { signal });
  } catch {
    // The session has just ended.
    socket.on('error', () => {});
    socket.resetAndDestroy();
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, port)));
    server.listen({ host: '127.0.0.1', port }, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, port: number): LocalError {
  if (error.code === 'EADDRINUSE') return new PortInUseError('TCP', port, { cause: error });
  if (error.code === 'EACCES') {
    const message = `this user may not open TCP port ${port}: choose a port of 1024 or above, or 0 for a free one`;
    return new LocalError('PRIVILEGED_PORT', message, { cause: error });
  }
  return new LocalError('UNKNOWN', error.message, { cause: error });
}
