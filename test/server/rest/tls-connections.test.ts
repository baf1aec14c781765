/** Connections to HTTP over TLS that never become a request: each frees its slot. Real sockets. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { silentLog } from '../../../platform/environment.ts';
import { clientError } from '../../../server/rest/errors.ts';
import { listen } from '../../../server/rest/listen.ts';
import { restApp } from '../../../server/rest/server.ts';
import type { Store } from '../../../server/storage/store.ts';

const pem = (name: string): string => readFileSync(new URL(`../fixtures/localhost.${name}.pem`, import.meta.url), 'utf8');

/** The first bytes of a ClientHello that announces 512 more (RFC 8446 §4.1.2). */
const HALF_HELLO = Buffer.from('1603010200010001fc0303', 'hex');

let app: FastifyInstance;
let port: number;
const clients: Socket[] = [];

async function listening(requestTimeout: number): Promise<void> {
  const times = { requestTimeout, closingTime: 10 };
  app = restApp({ store: {} as Store, log: silentLog, tls: { cert: pem('cert'), key: pem('key') }, ...times });
  port = await listen(app, '127.0.0.1', 0);
}
beforeAll(() => listening(30));
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});
afterAll(() => app.close());

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

test('a client that does not read the answer to broken HTTP is disconnected after a time', () => {
  const socket = new Socket();
  const timeout = vi.spyOn(socket, 'setTimeout');
  clientError(new Error('broken'), socket, 10);
  const [[time, expire] = []] = timeout.mock.calls;
  expect([time, socket.destroyed]).toEqual([10, false]);
  expire!();
  expect(socket.destroyed).toBe(true);
});

test.each<[string, (socket: Socket) => void]>([
  ['says nothing', () => {}],
  ['stops in the middle of its ClientHello', (socket) => void socket.write(HALF_HELLO)],
  ['speaks HTTP without TLS', (socket) => void socket.write('GET / HTTP/1.1\r\n\r\n')],
  ['sends no HTTP over TLS, and keeps its end open', (socket) => connectTls({ socket, rejectUnauthorized: false }).write('BAD\r\n\r\n')],
])('a client that %s is disconnected', async (_, begin) => {
  const socket = await connected(begin);
  if (!socket.destroyed) await once(socket, 'close');
  expect(socket.destroyed).toBe(true);
});

test('a server that closes does not wait for handshakes', async () => {
  await app.close();
  await listening(3_600_000);
  const socket = await connected(() => {});
  await app.close();
  expect(socket.destroyed).toBe(true);
});
