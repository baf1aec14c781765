/** Service invocation against real HTTP servers on loopback: forms of answers, signature, time, size, addresses. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { type HttpPost, nodePost } from '../../../server/outbound/http.ts';
import { ServiceInvoker } from '../../../server/services/invoker.ts';
import { newServiceSecret } from '../../../server/services/signature.ts';
import { Sealer, serviceRecord } from '../../../server/storage/sealing.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';

const created = '2026-01-02T03:04:05.678Z';
const device = { productId: 'pr-1', deviceId: 'de-1' };
const sealer = new Sealer(new Uint8Array(32));
const secret = newServiceSecret((length) => new Uint8Array(length).fill(7));
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

interface Received {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let store: Store;
let server: Server;
let received: Received[];
let reply: (response: ServerResponse) => void;
const stop = new AbortController();

beforeEach(async () => {
  received = [];
  reply = (response) => response.end();
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      received.push({ method: request.method ?? '', headers: request.headers, body });
      reply(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  store = await openSqliteStore(':memory:');
  await store.addOrganization({ organizationId: 'or-a', name: null, created });
  for (const productId of ['pr-1', 'pr-2']) await store.addProduct({ productId, organizationId: 'or-a', name: null, created });
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await store.close();
});

const url = (host = '127.0.0.1'): string => `http://${host}:${(server.address() as AddressInfo).port}/hook?x=1`;

async function add({ allowPrivate = true, timeout = 5_000, address = url(), serviceId = 'se-1' } = {}): Promise<void> {
  const service = { serviceId, organizationId: 'or-a', name: null, url: address, timeout, allowPrivate, created };
  await store.outbound.addService({ ...service, sealedSecret: sealer.seal(secret, serviceRecord(service)) }, ['pr-1']);
}

function invoke(message = 'hello', from = device, resolve?: (host: string) => Promise<string[]>) {
  const environment = nodeEnvironment();
  const invoker = new ServiceInvoker({
    environment: resolve ? { ...environment, network: { ...environment.network, resolve } } : environment,
    store,
    sealer,
    post: nodePost,
    signal: stop.signal,
  });
  return invoker.invoke(from, { serviceId: 'se-1', message: new TextEncoder().encode(message) });
}

test('the service gets ids and message, and can verify the signature with only the secret', async () => {
  await add();
  const before = Math.floor(Date.now() / 1000);
  await invoke('€5');
  const [{ method, headers, body }] = received as [Received];
  expect(method).toBe('POST');
  expect(headers['content-type']).toBe('application/json');
  expect(JSON.parse(body)).toEqual({ ...device, message: Buffer.from('€5').toString('base64') });
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  const at = Number(headers['webhook-timestamp']);
  expect(at).toBeGreaterThanOrEqual(before);
  expect(at).toBeLessThanOrEqual(Date.now() / 1000);
});

test('the request has the time that the resolver did not use', async () => {
  await add({ timeout: 5_000 });
  const timeouts: number[] = [];
  let now = 0;
  const environment = nodeEnvironment();
  const clock = { ...environment.clock, now: () => now, schedule: () => () => {}, wallTime: () => 0 };
  const resolve = async () => {
    now += 1_200;
    return ['127.0.0.1'];
  };
  const post: HttpPost = async ({ timeout }) => {
    timeouts.push(timeout);
    return { status: 204, headers: {}, body: new Uint8Array(0), cut: false };
  };
  const network = { ...environment.network, resolve };
  const invoker = new ServiceInvoker({ environment: { ...environment, clock, network }, store, sealer, post, signal: stop.signal });
  await invoker.invoke(device, { serviceId: 'se-1', message: new Uint8Array(0) });
  expect(timeouts).toEqual([3_800]);
});

describe('answers', () => {
  const answering = (status: number, type: string | null, body: string | Uint8Array, headers: Record<string, string> = {}) => {
    reply = (response) => response.writeHead(status, { ...(type === null ? {} : { 'content-type': type }), ...headers }).end(body);
  };

  test.each<[string, number, string | null, string | Uint8Array, string, string]>([
    ['JSON with base64', 200, 'application/json', '{"message":"aGVsbG8="}', 'BINARY', 'hello'],
    ['with charset, unpadded', 200, 'application/json; charset=utf-8', '{"message":"aGVsbG8","more":1}', 'BINARY', 'hello'],
    ['an empty message', 200, 'application/json', '{"message":""}', 'BINARY', ''],
    ['no body', 204, null, '', 'NONE', ''],
    ['no body with a type', 200, 'image/png', '', 'NONE', ''],
    ['text', 200, 'text/plain', 'grüß', 'TEXT', 'grüß'],
    ['any text', 500, 'text/html; charset="UTF-8"', '<p>', 'TEXT', '<p>'],
    ['text in Latin-1', 200, 'text/plain; charset=iso-8859-1', Uint8Array.of(0xfc), 'TEXT', 'ü'],
  ])('%s', async (_, status, type, body, messageFormat, message) => {
    await add();
    answering(status, type, body);
    const answer = await invoke();
    expect({ ...answer, message: text(answer.message) }).toEqual({ statusCode: status, messageFormat, message });
  });

  test.each<[string, string | null, string | Uint8Array, Record<string, string>]>([
    ['no content type', null, 'x', {}],
    ['another content type', 'application/xml', '<a/>', {}],
    ['text that is not UTF-8', 'text/plain', Uint8Array.of(0xff), {}],
    ['an unknown character set', 'text/plain; charset=klingon', 'x', {}],
    ['broken JSON', 'application/json', '{', {}],
    ['null', 'application/json', 'null', {}],
    ['no message', 'application/json', '{}', {}],
    ['a message that is not text', 'application/json', '{"message":1}', {}],
    ['a message that is not base64', 'application/json', '{"message":"a*b"}', {}],
    ['a message with one digit too many', 'application/json', '{"message":"aGVsbG8AA"}', {}],
    ['compressed', 'text/plain', 'x', { 'content-encoding': 'gzip' }],
    ['a text over 64 KiB', 'text/plain', 'x'.repeat(65_537), {}],
    ['a message over 64 KiB', 'application/json', `{"message":"${Buffer.alloc(65_537).toString('base64')}"}`, {}],
    ['a body without end', 'text/plain', 'x'.repeat(1_000_000), {}],
  ])('%s is a bad answer', async (_, type, body, headers) => {
    await add();
    answering(200, type, body, headers);
    await expect(invoke()).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  });

  test('may have 64 KiB, as may requests', async () => {
    await add();
    answering(200, 'application/json', `{"message":"${Buffer.alloc(65_536, 7).toString('base64')}"}`);
    const answer = await invoke('y'.repeat(65_536));
    expect(answer.message).toEqual(new Uint8Array(65_536).fill(7));
    expect(Buffer.from((JSON.parse(received[0]!.body) as { message: string }).message, 'base64').length).toBe(65_536);
  });

  test('that redirect are not followed', async () => {
    await add();
    answering(302, null, '', { location: url() });
    expect(await invoke()).toMatchObject({ statusCode: 302, messageFormat: 'NONE' });
    expect(received.length).toBe(1);
  });
});

test('a service that does not answer in time is a timeout', { tags: ['slow'] }, async () => {
  await add({ timeout: 100 });
  reply = () => {};
  await expect(invoke()).rejects.toMatchObject({ code: 'TIMEOUT' });
});

test('a service that trickles its answer gets no more time', { tags: ['slow'] }, async () => {
  await add({ timeout: 150 });
  reply = (response) => void response.writeHead(200, { 'content-type': 'text/plain' }).write('x');
  await expect(invoke()).rejects.toMatchObject({ code: 'TIMEOUT' });
});

test('a service that hangs up, or at a closed port, is a bad gateway', async () => {
  await add();
  reply = (response) => void response.destroy();
  await expect(invoke()).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  await store.outbound.removeService('se-1');
  await add({ address: 'http://127.0.0.1:1/' });
  await expect(invoke()).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
});

test('a service that switches to another protocol frees its slot at once', async () => {
  await add();
  server.on('connection', (socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'));
  });
  reply = () => {};
  await expect(invoke()).rejects.toMatchObject({ code: 'BAD_RESPONSE', message: expect.stringContaining('another protocol') });
});

test('unknown services, and those of other products, are not found', async () => {
  await expect(invoke()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await add();
  await expect(invoke('x', { ...device, productId: 'pr-2' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await store.outbound.detachService('se-1', 'pr-1');
  await expect(invoke()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(received).toEqual([]);
});

describe('addresses', () => {
  test.each(['127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', 'localhost'])(
    'http://%s is refused unless private addresses are allowed',
    async (host) => {
      await add({ allowPrivate: false, address: url(host) });
      await expect(invoke()).rejects.toMatchObject({ code: 'BAD_RESPONSE', message: 'the host is not at an address that is allowed' });
      expect(received).toEqual([]);
    },
  );

  test('a name is resolved once, so a second address is not used', async () => {
    await add({ address: url('service.invalid') });
    const answers = [['127.0.0.1'], ['169.254.169.254']];
    let asked = 0;
    await invoke('x', device, async () => answers[asked++]!);
    expect(asked).toBe(1);
    expect(received[0]!.headers.host).toMatch(/^service\.invalid:/);
  });

  test('a private address among public ones is refused', async () => {
    await add({ allowPrivate: false, address: url('service.invalid') });
    await expect(invoke('x', device, async () => ['8.8.8.8', '127.0.0.1'])).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  });
});
