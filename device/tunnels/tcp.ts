/**
 * The TCP side of a tunnel on a device: connects to the service, then carries bytes between it and the client's stream.
 */
import { connect, type Socket } from 'node:net';
import { pump } from '../../platform/node/index.ts';
import { StreamCode } from '../../protocol/errors/index.ts';
import type { Stream } from '../../runtime/session/index.ts';
import { StreamRefusal } from '../streams.ts';
import type { PinnedAddresses } from './pinned-address.ts';
import type { TcpTunnelService, TunnelConnection } from './tunnels.ts';

/** Time for a service to accept, ms, at all of its addresses. */
const CONNECT_TIMEOUT = 10_000;
/** System errors for a host or port that does not answer. */
const UNREACHABLE: readonly (string | undefined)[] = ['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EHOSTDOWN'];

/**
 * Connects, to one address after the other.
 * @throws StreamRefusal when none accepts within 10 s in all: with the reason of the last, or that the service refuses
 */
export async function connectTcp({ port }: Pick<TcpTunnelService, 'port'>, addresses: PinnedAddresses): Promise<TunnelConnection> {
  const all = await addresses.all();
  let refusal: unknown;
  for (const address of all) {
    try {
      const connection = await connectTo(address, port, CONNECT_TIMEOUT / all.length);
      addresses.worked(address);
      return connection;
    } catch (error) {
      if (!(refusal instanceof StreamRefusal && refusal.streamCode === StreamCode.SERVICE_REFUSED)) refusal = error;
    }
  }
  throw refusal;
}

function connectTo(host: string, port: number, timeout: number): Promise<TunnelConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const timer = setTimeout(() => socket.destroy(timedOut(host, port)), timeout);
    const fail = (error: Error): void => reject(serviceRefusal(error));
    socket.once('close', () => clearTimeout(timer));
    socket.once('error', fail);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', fail);
      // Paused so that everything before join, above all an immediate end, reaches its listeners.
      socket.pause();
      resolve(tcpConnection(socket));
    });
  });
}

function timedOut(host: string, port: number): Error {
  return Object.assign(new Error(`${host}:${port} does not accept a TCP connection`), { code: 'ETIMEDOUT' });
}

/** Maps a system error to the refusal that the client sees. */
export function serviceRefusal(error: NodeJS.ErrnoException): StreamRefusal {
  if (error.code === 'ECONNREFUSED') return new StreamRefusal(StreamCode.SERVICE_REFUSED, error);
  return new StreamRefusal(UNREACHABLE.includes(error.code) ? StreamCode.SERVICE_UNREACHABLE : StreamCode.SERVICE_FAILED, error);
}

function tcpConnection(socket: Socket): TunnelConnection {
  const aborted = new AbortController();
  const ignore = () => {};
  // The only listener between connect and join.
  socket.on('error', ignore);
  return {
    async join(stream: Stream) {
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
