/**
 * From an attached device to the provider's emulator and back: over real HTTP, and in virtual time for everything that
 * waits.
 */
import { createSign, generateKeyPairSync } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PushEmulator } from '../../../cli/dev/push-emulator.ts';
import { type PushError, pushError, pushErrors } from '../../../cli/dev/push-errors.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { DevicePath, decodePushAnswer, encodePushRequest } from '../../../protocol/control/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import type { HttpAnswer, HttpPost, HttpRequest } from '../../../server/index.ts';
import { nodePost } from '../../../server/outbound/http.ts';
import { parseServiceAccount, signAssertion } from '../../../server/push/account.ts';
import { type PushEvent, PushRelay } from '../../../server/push/relay.ts';
import { credentialRecord, Sealer } from '../../../server/storage/sealing.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

const created = '2026-01-02T03:04:05.678Z';
const sealer = new Sealer(new Uint8Array(32));
const { privateKey: pem } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});

function credential(
  organizationId: string,
  {
    projectId = 'demo-project',
    privateKey = pem,
    tokenUrl = 'https://p.example/token',
    baseUrl = 'https://p.example',
    clientEmail = 'a@b',
    keyId = null as string | null,
  } = {},
) {
  const record = { organizationId, projectId, clientEmail, keyId, tokenUrl, baseUrl, created };
  return { ...record, sealedKey: sealer.seal(privateKey, credentialRecord(record)) };
}

const message = (token: string): string => JSON.stringify({ message: { token, notification: { title: 'Hot', body: '90 °C' } } });
const device = { productId: 'pr-1', deviceId: 'de-1' };

describe('over HTTP, with the emulator', () => {
  let emulator: PushEmulator;
  let store: Store;
  let relay: PushRelay;
  let events: PushEvent[];
  const stop = new AbortController();

  beforeAll(async () => {
    emulator = await PushEmulator.start({ projectId: 'demo-project' });
  });
  afterAll(() => emulator.close());
  afterEach(() => store.close());

  async function prepare(change: Parameters<typeof credential>[1] = {}): Promise<void> {
    store = await openSqliteStore(':memory:');
    events = [];
    await store.addOrganization({ organizationId: 'or-a', name: null, created });
    await store.addProduct({ productId: 'pr-1', organizationId: 'or-a', name: null, created });
    const account = parseServiceAccount(emulator.account);
    await store.outbound.addPushCredential(credential('or-a', { ...account, baseUrl: emulator.url, ...change }));
    const onEvent = (event: PushEvent): void => void events.push(event);
    relay = new PushRelay({
      environment: nodeEnvironment(),
      store,
      sealer,
      post: nodePost,
      sign: signAssertion,
      signal: stop.signal,
      onEvent,
    });
  }

  const push = (body: string, projectId = 'demo-project') => relay.send(device, { projectId, body });

  test('a notification arrives unchanged, with an idempotency key, and the answer names it', async () => {
    await prepare();
    const before = emulator.received.length;
    const { statusCode, body } = await push(message('abc'));
    const received = emulator.received.at(-1);
    expect(emulator.received.length).toBe(before + 1);
    expect(statusCode).toBe(200);
    expect(JSON.parse(body)).toEqual({ name: received?.name });
    expect(received?.message).toEqual({ token: 'abc', notification: { title: 'Hot', body: '90 °C' } });
    expect(received?.idempotencyKey).toMatch(/^"[0-9a-f]{32}"$/);
  });

  test('one access token serves many notifications, also in parallel', async () => {
    await prepare();
    const before = emulator.requests.token;
    await Promise.all([push(message('a')), push(message('b')), push(message('c'))]);
    await push(message('d'));
    expect(emulator.requests.token - before).toBe(1);
  });

  test.each<[PushError, number]>([
    ['UNREGISTERED', 404],
    ['INVALID_ARGUMENT', 400],
    ['SENDER_ID_MISMATCH', 403],
  ])('%s is returned unchanged and at once', async (error, status) => {
    await prepare();
    const before = emulator.requests.send;
    const { statusCode, body } = await push(message(error));
    expect(statusCode).toBe(status);
    expect(JSON.parse(body)).toEqual(pushError(error).body);
    expect(emulator.requests.send - before).toBe(1);
    expect(events).toEqual(
      error === 'UNREGISTERED' ? [{ kind: 'push-token-unregistered', ...device, projectId: 'demo-project', token: error }] : [],
    );
  });

  test('an invalid document is left to the provider to refuse', async () => {
    await prepare();
    for (const body of ['{', '{}', '{"message":{}}', '{"message":{"token":"a","topic":"b"}}', '{"message":{"token":"a","colour":"red"}}']) {
      expect((await push(body)).statusCode).toBe(400);
    }
  });

  test('after a 401 the next notification has a new access token', async () => {
    await prepare();
    expect((await push(message('a'))).statusCode).toBe(200);
    emulator.revokeTokens();
    expect((await push(message('a'))).statusCode).toBe(401);
    expect((await push(message('a'))).statusCode).toBe(200);
  });

  test.each(['/v1/projects/%zz/messages:send', '//', '/v1/projects/a%2Fb/messages:send'])(
    'the emulator answers %s with 404',
    async (path) => {
      await prepare();
      expect((await fetch(`${emulator.url}${path}`, { method: 'POST', body: message('a') })).status).toBe(404);
      await expect(push(message('a'))).resolves.toMatchObject({ statusCode: 200 });
    },
  );

  test('the emulator refuses a document nested deeper than a program can print, and continues', async () => {
    await prepare();
    const before = emulator.received.length;
    const nested = (levels: number) => `{"message":{"token":"a","android":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}}`;
    expect((await push(nested(98))).statusCode).toBe(200);
    expect((await push(nested(99))).statusCode).toBe(400);
    expect((await push(nested(10_000))).statusCode).toBe(400);
    expect(emulator.received.slice(before).map((each) => JSON.stringify(each))).toHaveLength(1);
  });

  test('a project without a credential in the organization is forbidden', async () => {
    await prepare();
    await expect(push(message('a'), 'other-project')).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await store.addOrganization({ organizationId: 'or-b', name: null, created });
    await store.addProduct({ productId: 'pr-b', organizationId: 'or-b', name: null, created });
    const foreign = relay.send({ productId: 'pr-b', deviceId: 'de-1' }, { projectId: 'demo-project', body: message('a') });
    await expect(foreign).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  test.each<[string, Parameters<typeof credential>[1]]>([
    ['another key', { privateKey: pem }],
    ['another issuer', { clientEmail: 'somebody@else.example' }],
    ['another key id', { keyId: 'another' }],
  ])('the emulator issues no token for %s, and the device gets that error', async (_, change) => {
    await prepare(change);
    const before = emulator.requests.send;
    await expect(push(message('a'))).rejects.toMatchObject({
      code: 'BAD_RESPONSE',
      message: 'the push provider returns no access token (HTTP 400)',
    });
    expect(emulator.requests.send).toBe(before);
  });

  /** Signed by hand with the emulator's own key: only the claims differ from a valid one. */
  test.each<[string, (now: number) => object, string]>([
    ['a valid one', () => ({}), ''],
    ['another audience', () => ({ aud: 'https://elsewhere.example/token' }), 'invalid_grant'],
    ['expired', (now) => ({ iat: now - 7_200, exp: now - 3_600 }), 'invalid_grant'],
    ['issued in the future', (now) => ({ iat: now + 3_000, exp: now + 3_600 }), 'invalid_grant'],
    ['valid for two hours', (now) => ({ exp: now + 7_200 }), 'invalid_grant'],
    ['without expiry', () => ({ exp: undefined }), 'invalid_grant'],
    ['another scope', () => ({ scope: 'email' }), 'invalid_scope'],
  ])('an assertion at the token endpoint: %s', async (_, claims, error) => {
    await prepare();
    const { account } = emulator;
    const now = Math.floor(Date.now() / 1000);
    const good = {
      iss: account.client_email,
      aud: account.token_uri,
      iat: now,
      exp: now + 3_600,
      scope: 'https://www.googleapis.com/auth/firebase.messaging',
    };
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ ...good, ...claims(now) })}`;
    const assertion = `${signed}.${createSign('RSA-SHA256').update(signed).sign(account.private_key).toString('base64url')}`;
    const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion });
    const answer = (await (await fetch(account.token_uri, { method: 'POST', body })).json()) as { error?: string; access_token?: string };
    expect(answer.error ?? '').toBe(error);
    expect(typeof answer.access_token).toBe(error === '' ? 'string' : 'undefined');
  });
});

describe('in virtual time', () => {
  let fixture: ProductFixture;
  let station: StationUnderTest;

  /** Plays answers of messages:send in turn, then repeats the last one. Records the requests and their times. */
  async function pushed(answers: (Partial<HttpAnswer> | RemoteError)[]) {
    const sent: { request: HttpRequest; at: number }[] = [];
    const post: HttpPost = async (request) => {
      if (request.url.pathname === '/token') return answer({ body: '{"access_token":"secret","expires_in":3600}' });
      sent.push({ request, at: fixture.sim.now });
      const next = answers[Math.min(sent.length, answers.length) - 1]!;
      if (next instanceof RemoteError) throw next;
      return answer(next as { status?: number });
    };
    fixture = new ProductFixture();
    station = await fixture.station();
    // Real signatures take real time, in which virtual time would continue.
    station.outbound = { post, sign: async () => 'assertion' };
    station.kill();
    await station.start();
    await station.store.outbound.addPushCredential({
      ...credential('or-a'),
      sealedKey: station.sealer.seal(pem, credentialRecord({ organizationId: 'or-a', projectId: 'demo-project' })),
    });
    const party = await fixture.raw.attached();
    const began = fixture.sim.now;
    const response = await party.request(
      'POST',
      DevicePath.PUSH_SEND,
      encodePushRequest({ projectId: 'demo-project', body: message('a') }),
    );
    return { sent, response, took: fixture.sim.now - began };
  }

  function answer({
    status = 200,
    headers = {},
    body = '{}',
  }: {
    status?: number;
    headers?: Record<string, string>;
    body?: string | Uint8Array;
  }): HttpAnswer {
    return { status, headers, body: typeof body === 'string' ? new TextEncoder().encode(body) : body, cut: false };
  }

  test('the device gets 2.01 with status and body', async () => {
    const { response, sent } = await pushed([{}]);
    expect(response.status).toBe(201);
    expect(decodePushAnswer(response.payload)).toEqual({ statusCode: 200, body: '{}' });
    expect(sent[0]?.request.url.href).toBe('https://p.example/v1/projects/demo-project/messages:send');
    expect(sent[0]?.request.headers.authorization).toBe('Bearer secret');
  });

  test('5xx is retried until it succeeds, always under the same idempotency key', async () => {
    const { response, sent } = await pushed([{ status: 500 }, { status: 503 }, new RemoteError('TIMEOUT', 'no answer'), { status: 200 }]);
    expect(decodePushAnswer(response.payload).statusCode).toBe(200);
    expect(new Set(sent.map(({ request }) => request.headers['idempotency-key'])).size).toBe(1);
    expect(sent.length).toBe(4);
  });

  test('429 waits for its Retry-After', { tags: ['slow'] }, async () => {
    const { sent } = await pushed([{ status: 429, headers: { 'retry-after': '17' } }, { status: 200 }]);
    expect(sent[1]!.at - sent[0]!.at).toBeGreaterThanOrEqual(17_000);
    expect(sent[1]!.at - sent[0]!.at).toBeLessThan(18_000);
  });

  test('429 without one waits a minute; a second one would be too late, so the last answer is returned', async () => {
    const { response, sent, took } = await pushed([{ status: 429 }]);
    expect(decodePushAnswer(response.payload).statusCode).toBe(429);
    expect(sent.length).toBe(2);
    expect(took).toBeLessThan(100_500);
  });

  test('429 with a Retry-After of 0 or in the past does not cause a storm of requests', async () => {
    const past = 'Fri, 02 Jan 2015 03:04:05 GMT';
    const { response, sent } = await pushed([
      { status: 429, headers: { 'retry-after': '0' } },
      { status: 429, headers: { 'retry-after': past } },
    ]);
    expect(decodePushAnswer(response.payload).statusCode).toBe(429);
    expect(sent.length).toBeLessThan(30);
  });

  test('a provider that stays unavailable gives its last answer after 100 s at most', { tags: ['slow'] }, async () => {
    const { response, sent, took } = await pushed([{ status: 503 }]);
    expect(decodePushAnswer(response.payload).statusCode).toBe(503);
    expect(sent.length).toBeGreaterThan(5);
    expect(took).toBeLessThan(100_500);
  });

  test.each([
    ['TIMEOUT', 504],
    ['BAD_RESPONSE', 502],
  ] as const)('%s instead of an answer gives the device %i', async (code, status) => {
    const { response } = await pushed([new RemoteError(code, 'no answer')]);
    expect(response.status).toBe(status);
  });

  test('a long answer is cut at 4096 bytes, between characters', async () => {
    const { response } = await pushed([{ status: 400, body: new TextEncoder().encode('€'.repeat(2_000)) }]);
    expect(decodePushAnswer(response.payload).body).toBe('€'.repeat(1_365));
  });

  test('bad input and projects of others are refused', { tags: ['slow'] }, async () => {
    await pushed([{}]);
    const party = await fixture.raw.opened();
    await station.register({ ...ids, deviceId: 'de-2' }, party.host.fingerprint);
    await party.attach({ deviceId: 'de-2' });
    const status = async (payload: Uint8Array) => (await party.request('POST', DevicePath.PUSH_SEND, payload)).status;
    expect(await status(encodePushRequest({ projectId: 'other', body: '{}' }))).toBe(403);
    expect(await status(new Uint8Array([0xff]))).toBe(400);
    expect(await status(encodePushRequest({ projectId: '', body: '{}' }))).toBe(400);
    expect(await status(encodePushRequest({ projectId: 'demo-project', body: 'x'.repeat(65_537) }))).toBe(400);
  });
});

test('every error of the emulator has the documented shape', () => {
  expect(pushErrors.map((each) => pushError(each).status)).toEqual([404, 400, 403, 429, 503, 500]);
  for (const error of pushErrors) {
    expect(pushError(error, 9)).toMatchObject({
      headers: { 'retry-after': '9' },
      body: {
        error: {
          code: pushError(error).status,
          details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: error }],
        },
      },
    });
  }
});
