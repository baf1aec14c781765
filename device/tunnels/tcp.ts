/** The TCP side of a tunnel on a device: connects to the service, then carries bytes between it and the client's stream. */
import { connect, type Socket } from 'node:net';
import { pump } from '../../transport/node/index.ts';
import type { SessionStream } from '../../transport/session/index.ts';
import type { TcpTunnelService, TunnelConnection } from './tunnels.ts';

/** How long a service may take to accept, ms. */
const CONNECT_TIMEOUT = 10_000;
/** How long a connection is silent before the system asks whether the service's host still has it, ms: one that vanished resets the stream. */
const KEEP_ALIVE = 60_000;

/** Connects; the promise rejects with the system's error when nobody accepts within 10 s. */
export function connectTcp({ port }: Pick<TcpTunnelService, 'port'>, host: string): Promise<TunnelConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE });
    const timer = setTimeout(() => socket.destroy(new Error(`${host}:${port} does not accept a TCP connection`)), CONNECT_TIMEOUT);
    socket.once('close', () => clearTimeout(timer));
    socket.once('error', reject);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', reject);
      // Whatever comes before join must find its listeners, an immediate end above all.
      socket.pause();
      resolve(tcpConnection(socket));
    });
  });
}

function tcpConnection(socket: Socket): TunnelConnection {
  const aborted = new AbortController();
  const ignore = () => {};
  // Between connect and join nobody else listens.
  socket.on('error', ignore);
  return {
    async join(stream: SessionStream) {
      const pumping = pump(stream, socket, { signal: aborted.signal });
      socket.resume();
      const { error } = await pumping;
      if (error !== null && !aborted.signal.aborted) throw error;
    },
    abort() {
      aborted.abort();
      socket.destroy();
    },
  };
}
