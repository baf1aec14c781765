/** Requests of the base station to misbehaving servers. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { nodeGet, nodePost } from '../../../server/outbound/http.ts';
import { serverPair } from '../../support/certificates.ts';
import { httpsServer } from '../../support/https-server.ts';

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(null) : server.close(resolve)));
  server = undefined;
});

const port = (): number => (server?.address() as AddressInfo | undefined)?.port ?? 0;

async function post(listener: RequestListener, limit: number) {
  const listening = createServer(listener);
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${port()}/`);
  return nodePost({ url, headers: {}, body: '', timeout: 10_000, limit });
}

test('an endless body is read up to the limit, and the connection is closed', async () => {
  let closed = () => {};
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const answer = await post((_request, response) => {
    response.on('close', closed);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(1000)));
    };
    response.on('drain', more);
    more();
  }, 5000);
  expect([answer.status, answer.cut, answer.body.length]).toEqual([200, true, 5000]);
  await isClosed;
});

test.each([
  [5000, false],
  [5001, true],
])('a body of %d bytes with a limit of 5,000 is cut: %s', async (length, cut) => {
  const answer = await post((_request, response) => response.end('x'.repeat(length)), 5000);
  expect([answer.cut, answer.body.length]).toEqual([cut, 5000]);
});

test('a GET has no body and no Content-Length', async () => {
  let seen: unknown[] = [];
  await post((request, response) => {
    seen = [request.method, request.headers['content-length']];
    response.end();
  }, 100);
  expect(seen).toEqual(['POST', '0']);
  const url = new URL(`http://127.0.0.1:${port()}/`);
  await nodeGet({ url, headers: { accept: 'application/json' }, timeout: 10_000, limit: 100 });
  expect(seen).toEqual(['GET', undefined]);
});

test('a server that TLS does not authenticate is refused, whatever the environment variables say', async () => {
  const secure = await httpsServer(await serverPair(undefined), (_, response) => response.end('{}'));
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  try {
    const url = new URL(`https://localhost:${secure.port}/`);
    await expect(nodeGet({ url, headers: {}, timeout: 10_000, limit: 100 })).rejects.toThrow(/DEPTH_ZERO_SELF_SIGNED_CERT/);
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    await secure.close();
  }
});
