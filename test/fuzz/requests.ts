/**
 * What strangers ask of the REST interface of a base station: damaged requests to each route, in the handlers of a
 * connection's socket, where fastify routes, validates and answers them.
 */
import { duplexPair } from 'node:stream';
import { silentLog } from '../../platform/environment.ts';
import { ClientAddresses } from '../../server/client-address.ts';
import { restApp } from '../../server/rest/server.ts';
import { hashSecret } from '../../server/storage/secrets.ts';
import type { Random } from '../../testing/random.ts';
import { MemoryStore } from '../server/storage/memory-store.ts';
import { below, chance, hostile, joined } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 4;
/** Turns of the event loop in which what one connection sends has been answered. */
const TURNS = 12;
const PROXY = '192.0.2.1';
const created = '2026-01-02T03:04:05.678Z';
const utf8 = new TextEncoder();

const own = '/v1/organizations/or-a/apikeys/ak-a';
const authorized = 'Host: a\r\nAuthorization: Bearer ak-a.secret\r\nX-Forwarded-For: 198.51.100.7, 192.0.2.9\r\n';
const intact = utf8.encode(`GET ${own} HTTP/1.1\r\n${authorized}\r\n`);
const requests = [
  intact,
  utf8.encode(`GET /v1/organizations/or%2Da/apikeys/%61k-b?x=1#y HTTP/1.1\r\n${authorized}\r\n`),
  utf8.encode(`HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /.well-known/svc HTTP/1.1\r\nHost: a\r\n\r\n`),
  utf8.encode(`POST ${own} HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"__proto__":`),
  utf8.encode('PUT /health HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'),
  utf8.encode('OPTIONS * HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nAccept-Encoding: gzip\r\nRange: bytes=0-\r\n\r\n'),
];

const failures: unknown[] = [];
let started: ReturnType<typeof start> | undefined;

/** The application, without a port. */
async function start() {
  const store = new MemoryStore();
  await store.addOrganization({ organizationId: 'or-a', name: null, created });
  for (const [apikeyId, ip] of [
    ['ak-a', '198.51.100.0/24'],
    ['ak-b', '203.0.113.1'],
  ] as const)
    await store.addApiKey(
      { organizationId: 'or-a', apikeyId, name: 'a', enforceIpWhitelist: true, isAdmin: true, actions: [], ipWhiteList: [{ ip }], created },
      hashSecret(`${apikeyId}.secret`),
    );
  const log = { ...silentLog, error: (_: string, fields?: unknown) => void failures.push(fields) };
  const addresses = new ClientAddresses({ trusted: ['192.0.2.0/24'], header: 'x-forwarded-for', log });
  const app = restApp({ store, log, addresses, station: () => ({ fingerprint: '00'.repeat(32), port: 4433 }), wallTime: () => 0 });
  await app.ready();
  return app;
}

async function converse(random: Random): Promise<void> {
  started ??= start();
  const { server } = await started;
  const [peer, socket] = duplexPair();
  let answer = '';
  peer.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  for (const side of [peer, socket]) side.on('error', () => {});
  const calls = { setNoDelay: () => socket, setKeepAlive: () => socket, setTimeout: () => socket };
  server.emit('connection', Object.assign(socket, { ...calls, remoteAddress: PROXY, remotePort: 1 }));
  const isIntact = chance(random, 0.2);
  // Node answers requests that arrive with damaged ones by 400 alone, so an intact one is sent alone.
  const damaged = Array.from({ length: 1 + below(random, 3) }, () => hostile(random, requests));
  const sent = isIntact ? intact : joined(...damaged);
  const cut = below(random, sent.length);
  for (const part of [sent.subarray(0, cut), sent.subarray(cut)]) if (part.length > 0) peer.write(part);
  for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
  peer.destroy();
  socket.destroy();
  if (failures.length > 0) throw new Error(`a request is our fault: ${JSON.stringify(failures)}`);
  if (/^HTTP\/1\.1 5/m.test(answer)) throw new Error(`a request is answered with ${answer}`);
  if (isIntact && !answer.startsWith('HTTP/1.1 200 ')) throw new Error(`an intact request is answered with ${answer.slice(0, 200)}`);
  if (/node_modules|\.ts:|secret/.test(answer)) throw new Error(`an answer shows what only we may know: ${answer}`);
}

const routes: Target = {
  name: 'http-requests',
  async iterate(random) {
    for (let i = 0; i < INPUTS; i++) await converse(random);
  },
};

export const requestTargets: readonly Target[] = [routes];
