/**
 * A UDP socket with one peer in Node: the kernel passes on only datagrams from that peer, and reports when it is
 * unreachable.
 *
 * libuv queues datagrams that the kernel does not take at once; above `MAX_QUEUED` bytes, datagrams are dropped.
 */
import { createSocket, type Socket } from 'node:dgram';
import { LocalError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { ConnectedSocket, ConnectOptions } from '../environment.ts';
import { numericLookup } from './family-socket.ts';

/** Our constants, bytes: to be sent; and arrived, if granted: the system's default holds two of the largest. */
export const MAX_QUEUED = 65_536;
const RECEIVE_BUFFER = 1024 * 1024;

/** Errors of a datagram that concern the peer; others mean the loss of that datagram. */
const UNREACHABLE: readonly (string | undefined)[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'];

/** See Network.connect. */
export async function connectUdp({ address, port, receive, failed }: ConnectOptions): Promise<ConnectedSocket> {
  const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', lookup: numericLookup });
  let open = true;
  const close = (): void => {
    if (!open) return;
    open = false;
    socket.close();
  };
  try {
    await connected(socket, address, port);
  } catch (error) {
    close();
    throw new LocalError('UNKNOWN', `no UDP socket towards ${address} port ${port}: ${(error as Error).message}`, { cause: error });
  }
  orElse(() => socket.setRecvBufferSize(RECEIVE_BUFFER), undefined);
  const onError = (error: NodeJS.ErrnoException | null): void => {
    if (!open || error === null || !UNREACHABLE.includes(error.code)) return;
    close();
    failed(error);
  };
  socket.on('error', onError);
  socket.on('message', (datagram) => open && receive(datagram));
  return {
    send(datagram) {
      if (!open || socket.getSendQueueSize() > MAX_QUEUED) return false;
      socket.send(datagram, onError);
      return true;
    },
    unref: () => void socket.unref(),
    close,
  };
}

function connected(socket: Socket, address: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.connect(port, address, (error?: Error) => {
      socket.off('error', reject);
      if (error) reject(error);
      else resolve();
    });
  });
}
