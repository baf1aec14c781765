/**
 * How many TCP connections the HTTP server holds: a share for each address, and a total. A connection above the share is closed at once; above the total
 * the oldest one goes, which is a slow one: requests are answered in milliseconds.
 */
import type { Server, Socket } from 'node:net';
import { networkOf } from '../../protocol/address.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';

/** Connections of one address (IPv4) or /64 (IPv6), and of all. */
const PER_ADDRESS = 64;
const TOTAL = 1_024;

/**
 * Keeps the connections of a server within the limits.
 * @returns what closes all, those in a TLS handshake, too, of which the server knows nothing, and those that still come
 */
export function limitConnections(server: Server, { perAddress = PER_ADDRESS, total = TOTAL } = {}): () => void {
  const limit = new ConcurrencyLimit({ perKey: perAddress });
  const open = new Set<Socket>();
  let closing = false;
  server.on('connection', (socket: Socket) => {
    const release = closing ? null : limit.acquire(networkOf(socket.remoteAddress ?? ''));
    if (release === null) {
      socket.destroy();
      return;
    }
    const [oldest] = open;
    if (open.size >= total && oldest !== undefined) {
      open.delete(oldest);
      oldest.destroy();
    }
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      release();
    });
  });
  return () => {
    closing = true;
    for (const socket of open) socket.destroy();
  };
}
