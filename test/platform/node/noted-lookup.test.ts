/** Names for which the resolver does not answer: https, proxies and WebSockets say so, and do not blame the server. */
import dns from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { getHttps } from '../../../platform/node/https.ts';
import { openWebSocket } from '../../../platform/node/websocket.ts';

beforeEach(() => void vi.spyOn(dns, 'lookup').mockImplementation((() => {}) as never));
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const ask = (url: string) => getHttps({ url, timeout: 20, limit: 100 });
const open = (url: string) =>
  openWebSocket({ url, protocol: 'svc', timeout: 20, receive: () => {}, closed: () => {} } as Parameters<typeof openWebSocket>[0], 0);

test.each<[string, () => Promise<unknown>]>([
  ['https', () => ask('https://lost.example/')],
  ['a secure WebSocket', () => open('wss://lost.example/')],
  ['a plain WebSocket', () => open('ws://lost.example/')],
])('%s', async (_, run) => {
  await expect(run()).rejects.toMatchObject({
    code: 'DNS',
    message: "the resolver does not answer for lost.example: check the name and this host's DNS",
  });
});

test('a proxy', async () => {
  vi.stubEnv('HTTPS_PROXY', 'http://proxy.example:3128');
  await expect(ask('https://station.example/')).rejects.toMatchObject({
    code: 'DNS',
    message: expect.stringContaining('for proxy.example'),
  });
});

test('a server that does not answer is a TIMEOUT, when its name has an address', async () => {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answer = (_: string, __: unknown, done: (...found: unknown[]) => void) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  vi.spyOn(dns, 'lookup').mockImplementation(answer as never);
  await expect(ask(`https://silent.example:${port}/`)).rejects.toMatchObject({ code: 'TIMEOUT' });
  server.close();
});
