/** The REST interface: reading an API key, one form of all errors, and bounds on a real socket. */
import { readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../../platform/environment.ts';
import { listen } from '../../../server/rest/listen.ts';
import { restApp } from '../../../server/rest/server.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { ApiKey, Store } from '../../../server/storage/store.ts';

const created = '2026-01-02T03:04:05.678Z';
const plain: ApiKey = {
  organizationId: 'or-a',
  apikeyId: 'ak-plain',
  name: 'plain key',
  enforceIpWhitelist: false,
  isAdmin: false,
  actions: ['svc:write'],
  ipWhiteList: [],
  created,
};
const keys: ApiKey[] = [
  plain,
  { ...plain, apikeyId: 'ak-admin', name: 'same organization', isAdmin: true, actions: [] },
  { ...plain, apikeyId: 'ak-b', organizationId: 'or-b' },
  { ...plain, apikeyId: 'ak-loopback', enforceIpWhitelist: true, ipWhiteList: [{ ip: '127.0.0.0/8', name: 'here' }, { ip: '::1' }] },
  { ...plain, apikeyId: 'ak-elsewhere', enforceIpWhitelist: true, ipWhiteList: [{ ip: '192.0.2.0/24' }] },
  { ...plain, apikeyId: 'ak-nowhere', enforceIpWhitelist: true },
  { ...plain, apikeyId: 'ak-unenforced', ipWhiteList: [{ ip: '192.0.2.1' }] },
  { ...plain, apikeyId: 'ak-reader', actions: ['svc:write', 'svc:read'] },
  { ...plain, apikeyId: 'ak-admin-b', organizationId: 'or-b', isAdmin: true, actions: ['svc:read'] },
  // Neither the word alone nor a pattern is the action.
  { ...plain, apikeyId: 'ak-nearly', actions: ['svc:readall', 'svc:*', 'SVC:READ', 'svc:write'] },
];

let store: Store;
let app: FastifyInstance;

beforeAll(async () => {
  store = await openSqliteStore(':memory:');
  for (const organizationId of ['or-a', 'or-b']) await store.addOrganization({ organizationId, name: null, created });
  for (const key of keys) await store.addApiKey(key, hashSecret(`${key.apikeyId}.secret`));
  app = restApp({ store, log: silentLog });
});

afterAll(async () => {
  await app.close();
  await store.close();
});

const path = (organization: string, key: string): string => `/v1/organizations/${organization}/apikeys/${key}`;

function get(url: string, key?: string, options: { remoteAddress?: string; headers?: Record<string, string> } = {}) {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}.secret` };
  return app.inject({
    method: 'GET',
    url,
    headers: { ...authorization, ...options.headers },
    remoteAddress: options.remoteAddress ?? '127.0.0.1',
  });
}

type Answer = { statusCode: number; headers: Record<string, unknown>; json(): unknown; payload: string };

function expectError(response: Answer, status: number, type: string): void {
  expect(response.statusCode).toBe(status);
  expect(response.headers['www-authenticate']).toBe(status === 401 ? 'Bearer realm="svc"' : undefined);
  expect(response.json()).toEqual({ error: { type, message: expect.any(String) } });
  expect(response.payload).not.toMatch(/node_modules|\.ts:|at .*\(/);
}

describe('GET /v1/organizations/:organizationId/apikeys/:keyId', () => {
  test('gives the record of the key itself', { tags: ['slow'] }, async () => {
    const response = await get(path('or-a', 'ak-plain'), 'ak-plain');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.json()).toEqual(plain);
    expect(response.json().created).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('gives the records of the same organization, names of entries only where there is one', async () => {
    expect((await get(path('or-a', 'ak-loopback'), 'ak-reader')).json()).toEqual(keys[3]);
    expect((await get(path('or-a', 'ak-admin'), 'ak-reader')).json()).toEqual(keys[1]);
  });

  test.each<[string, string, string, number]>([
    ['its own record, without rights', 'ak-plain', 'ak-plain', 200],
    ['another record, with isAdmin', 'ak-admin', 'ak-plain', 200],
    ['another record, with the action svc:read', 'ak-reader', 'ak-plain', 200],
    ['another record, with other actions only', 'ak-plain', 'ak-admin', 403],
    ['another record, with actions that resemble svc:read', 'ak-nearly', 'ak-plain', 403],
    ['a record that does not exist, without rights', 'ak-plain', 'ak-x', 403],
    ['the record of a key of another organization, without rights', 'ak-plain', 'ak-b', 403],
  ])('%s', async (_what, caller, key, status) => {
    const response = await get(path('or-a', key), caller);
    expect(response.statusCode).toBe(status);
    if (status === 200) expect(response.json()).toEqual(keys.find(({ apikeyId }) => apikeyId === key));
    else expectError(response, status, 'forbidden');
  });

  test('does not reveal to a key without rights which other keys exist', async () => {
    const [existing, missing] = await Promise.all([get(path('or-a', 'ak-admin'), 'ak-plain'), get(path('or-a', 'ak-x'), 'ak-plain')]);
    expect(existing.payload).toBe(missing.payload);
  });

  test.each<[string, string | undefined, string, number, string]>([
    ['no key', undefined, path('or-a', 'ak-plain'), 401, 'authentication_error'],
    ['a key that does not exist', 'ak-x', path('or-a', 'ak-plain'), 401, 'authentication_error'],
    ['another organization', 'ak-plain', path('or-b', 'ak-b'), 403, 'forbidden'],
    ['another organization, with all rights in its own', 'ak-admin-b', path('or-a', 'ak-plain'), 403, 'forbidden'],
    ['an organization that does not exist', 'ak-plain', path('or-x', 'ak-b'), 403, 'forbidden'],
    ['a key of another organization under the own one', 'ak-admin', path('or-a', 'ak-b'), 404, 'invalid_request_error'],
    ['an unknown id', 'ak-admin', path('or-a', 'ak-x'), 404, 'invalid_request_error'],
    ['an id with strange characters', 'ak-admin', path('or-a', '%00%F0%9F%98%80..'), 404, 'invalid_request_error'],
    ['an address that is not on the list', 'ak-elsewhere', path('or-a', 'ak-plain'), 403, 'forbidden'],
    ['an empty list that is enforced', 'ak-nowhere', path('or-a', 'ak-plain'), 403, 'forbidden'],
    ['an id that is too long', 'ak-plain', path('or-a', 'a'.repeat(101)), 414, 'invalid_request_error'],
  ])('refuses %s', async (_what, key, url, status, type) => {
    expectError(await get(url, key), status, type);
  });

  test.each([
    '',
    'Bearer',
    'Bearer ',
    'Bearer ak-plain',
    'Bearer ak-plain.',
    'Bearer ak-plain.secrets',
    'Bearer .secret',
    'Bearer ak-plain.Secret',
    'Basic ak-plain.secret',
    'ak-plain.secret',
    'Bearer ak-plain.secret extra',
    `Bearer ${'x'.repeat(600)}`,
  ])('refuses the header %j', async (authorization) => {
    expectError(await get(path('or-a', 'ak-plain'), undefined, { headers: { authorization } }), 401, 'authentication_error');
  });

  test('ignores a forwarded address, and admits every address when the list is not enforced', async () => {
    expectError(await get(path('or-a', 'ak-plain'), 'ak-elsewhere', { headers: { 'x-forwarded-for': '192.0.2.7' } }), 403, 'forbidden');
    expect((await get(path('or-a', 'ak-unenforced'), 'ak-unenforced')).statusCode).toBe(200);
  });

  test('uses the peer address of the socket', async () => {
    expect((await get(path('or-a', 'ak-elsewhere'), 'ak-elsewhere', { remoteAddress: '::ffff:192.0.2.200' })).statusCode).toBe(200);
    expect((await get(path('or-a', 'ak-loopback'), 'ak-loopback', { remoteAddress: '::1' })).statusCode).toBe(200);
  });

  test('refuses a removed key from the next request on', async () => {
    await store.addApiKey({ ...plain, apikeyId: 'ak-short' }, hashSecret('ak-short.secret'));
    expect((await get(path('or-a', 'ak-short'), 'ak-short')).statusCode).toBe(200);
    await store.removeApiKey('ak-short');
    expectError(await get(path('or-a', 'ak-plain'), 'ak-short'), 401, 'authentication_error');
  });
});

describe('errors have one form', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/v1'],
    ['GET', '/v2/organizations/or-a/apikeys/ak-plain'],
    ['GET', '/v1/organizations/or-a/apikeys'],
    ['GET', '/v1/organizations/or-a/apikeys/ak-plain/more'],
    ['POST', '/v1/organizations/or-a/apikeys/ak-plain'],
    ['DELETE', '/v1/organizations/or-a/apikeys/ak-plain'],
    ['PUT', '/health'],
  ] as const)('%s %s is 404', async (method, url) => {
    expectError(await app.inject({ method, url, headers: { authorization: 'Bearer ak-plain.secret' } }), 404, 'invalid_request_error');
  });

  test('a malformed URL is 400', async () => {
    expectError(await app.inject({ method: 'GET', url: '/v1/organizations/%zz/apikeys/x' }), 400, 'invalid_request_error');
  });

  test('a failing store is 500 without the reason', async () => {
    const broken = restApp({
      store: {
        ...store,
        ping: () => Promise.reject(new Error('disk I/O error at /secret/path')),
        apiKeyHash: () => Promise.reject(new Error('boom')),
      } as Store,
      log: silentLog,
    });
    const response = await broken.inject({ url: path('or-a', 'ak-plain'), headers: { authorization: 'Bearer ak-plain.secret' } });
    expectError(response, 500, 'api_error');
    expect(response.json().error.message).toBe('internal error');
    const health = await broken.inject('/health');
    expect([health.statusCode, health.json()]).toEqual([503, { status: 'failed', storage: 'failed' }]);
  });
});

test('GET /health is 503 while the storage takes no writes', async () => {
  let storageFailed = true;
  const half = restApp({ store, storageFailed: () => storageFailed, log: silentLog });
  const failed = await half.inject('/health');
  expect([failed.statusCode, failed.json()]).toEqual([503, { status: 'failed', storage: 'failed' }]);
  storageFailed = false;
  expect((await half.inject('/health')).statusCode).toBe(200);
});

test('GET /health needs no key', async () => {
  const response = await app.inject('/health');
  expect(response.statusCode).toBe(200);
  expect(response.json()).toEqual({ status: 'ok' });
});

describe('on a real socket', () => {
  const pem = (name: string): string => readFileSync(new URL(`../fixtures/localhost.${name}.pem`, import.meta.url), 'utf8');

  test('a client that trusts the certificate is answered over TLS', { tags: ['slow'] }, async () => {
    const tls = restApp({ store, log: silentLog, tls: { cert: pem('cert'), key: pem('key') } });
    const port = await listen(tls, '127.0.0.1', 0);
    try {
      const answer = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
        const options = {
          host: 'localhost',
          family: 4,
          port,
          path: path('or-a', 'ak-plain'),
          ca: pem('cert'),
          headers: { authorization: 'Bearer ak-reader.secret' },
        };
        const outgoing = httpsRequest(options, (response) => {
          let body = '';
          response.on('data', (chunk) => (body += chunk)).on('end', () => resolve({ status: response.statusCode, body }));
        });
        outgoing.on('error', reject).end();
      });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body)).toEqual(plain);
    } finally {
      await tls.close();
    }
  });

  test('bytes that are not HTTP, and too large headers, get the same form of error', async () => {
    const clear = restApp({ store, log: silentLog });
    const port = await listen(clear, '127.0.0.1', 0);
    try {
      expect(await exchange(port, 'this is no HTTP\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\n\{"error":\{"type":"syntax_error"/);
      expect(await exchange(port, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 431 [\s\S]*"syntax_error"/,
      );
    } finally {
      await clear.close();
    }
  });

  test('a port in use and an address of another host are refused with one line', { tags: ['slow'] }, async () => {
    const first = restApp({ store, log: silentLog });
    const port = await listen(first, '127.0.0.1', 0);
    const second = restApp({ store, log: silentLog });
    await expect(listen(second, '127.0.0.1', port)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    await expect(listen(restApp({ store, log: silentLog }), '192.0.2.1', 0)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await first.close();
    await second.close();
  });
});

function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket
      .on('data', (chunk) => (answer += chunk))
      .on('error', reject)
      .on('close', () => resolve(answer));
  });
}
