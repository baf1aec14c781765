/**
 * Slow HTTP connections of strangers, and then another client. On Linux every address of 127.0.0.0/8 belongs to this
 * machine.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limitConnections } from '../../../server/rest/connection-limits.ts';

const limits = { perAddress: 8, total: 40 };

let server: Server;
let port: number;
let slow: Socket[];

beforeEach(async () => {
  slow = [];
  server = createServer((_, response) => response.end('here'));
  limitConnections(server, limits);
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});

afterEach(() => {
  for (const socket of slow) socket.destroy();
  server.closeAllConnections();
  server.close();
});

/** Opens a connection that sends half a request. Resolves when the server has it, or has closed it. */
async function slowFrom(localAddress: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  slow.push(socket);
  socket.on('error', () => {});
  const arrived = once(server, 'connection');
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\n');
  await arrived;
}

async function answerTo(localAddress: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes));
  await once(socket, 'close');
  return answer;
}

const open = (): Promise<number> => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));

test('one address is limited to its share, and another one is answered', async () => {
  for (let count = 0; count < 3 * limits.perAddress; count++) await slowFrom('127.0.0.2');
  expect(await open()).toBe(limits.perAddress);
  expect(await answerTo('127.0.0.2')).toBe('');
  expect(await answerTo('127.0.0.3')).toMatch(/^HTTP\/1\.1 200 .*here$/s);
});

test('a connection that ends frees its slot', async () => {
  for (let count = 0; count < limits.perAddress; count++) await slowFrom('127.0.0.2');
  const closed = once(slow[0]!, 'close');
  slow[0]!.destroy();
  await closed;
  while ((await open()) === limits.perAddress) await new Promise((resolve) => setImmediate(resolve));
  expect(await answerTo('127.0.0.2')).toMatch(/here$/);
});

test('with many addresses the oldest connection is closed for the next one, which is answered', async () => {
  for (let count = 0; count < 2 * limits.total; count++) await slowFrom(`127.0.1.${1 + (count >> 2)}`);
  expect(await open()).toBeLessThanOrEqual(limits.total);
  expect(await answerTo('127.0.0.3')).toMatch(/here$/);
});
