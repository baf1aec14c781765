/** Connections to HTTP over TLS that never become a request: each frees its slot. Real sockets. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen } from '../../../server/rest/listen.ts';
import { restApp } from '../../../server/rest/server.ts';
import type { Store } from '../../../server/storage/store.ts';
import { silentLog } from '../../../transport/environment.ts';
import { authority, serverPair } from '../../support/certificates.ts';

/** The first bytes of a ClientHello that announces 512 more (RFC 8446 §4.1.2). */
const HALF_HELLO = Buffer.from('1603010200010001fc0303', 'hex');

let app: FastifyInstance;
let port: number;
let clients: Socket[];

beforeEach(() => {
  clients = [];
});

async function listening(requestTimeout: number): Promise<void> {
  const times = { requestTimeout, closingTime: 30 };
  app = restApp({ store: {} as Store, log: silentLog, tls: await serverPair(await authority('Root')), ...times });
  port = await listen(app, '127.0.0.1', 0);
}
afterEach(async () => {
  for (const client of clients) client.destroy();
  await app.close();
});

/** The server's end of a connection whose client keeps its direction open. */
async function connected(begin: (socket: Socket) => void): Promise<Socket> {
  const arrived = once(app.server, 'connection');
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  clients.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  begin(socket.resume());
  return ((await arrived) as [Socket])[0];
}

test.each<[string, (socket: Socket) => void]>([
  ['says nothing', () => {}],
  ['stops in the middle of its ClientHello', (socket) => void socket.write(HALF_HELLO)],
  ['speaks HTTP without TLS', (socket) => void socket.write('GET / HTTP/1.1\r\n\r\n')],
  ['sends no HTTP over TLS, and keeps its end open', (socket) => connectTls({ socket, rejectUnauthorized: false }).write('BAD\r\n\r\n')],
])('a client that %s is disconnected', { tags: ['slow'] }, async (_, begin) => {
  await listening(30);
  const socket = await connected(begin);
  if (!socket.destroyed) await once(socket, 'close');
  expect(socket.destroyed).toBe(true);
});

test('a server that closes does not wait for handshakes', async () => {
  await listening(3_600_000);
  const socket = await connected(() => {});
  await app.close();
  expect(socket.destroyed).toBe(true);
});
