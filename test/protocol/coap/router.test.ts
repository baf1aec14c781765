/** The router: patterns, precedence, and how a handler's errors are answered. */
import { describe, expect, test } from 'vitest';
import { type CoapMethod, type Handler, type IncomingRequest, parsePath, Router } from '../../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';

const request = (method: CoapMethod, path: string, rest: Partial<IncomingRequest> = {}): IncomingRequest => ({
  exchange: 1,
  method,
  path,
  segments: parsePath(path),
  query: [],
  payload: new Uint8Array(0),
  observe: false,
  ...rest,
});
const textOf = (payload: Uint8Array | undefined): string => new TextDecoder().decode(payload);

/** All endpoints of section 4.2 in test/conformance/specification.json, `:name` as `{name}`. */
const endpoints: readonly (readonly [CoapMethod, string])[] = [
  ['GET', '/iam/pairing'],
  ['POST', '/iam/pairing/local-open'],
  ['POST', '/iam/pairing/password-open'],
  ['POST', '/iam/pairing/local-initial'],
  ['POST', '/iam/pairing/password-invite'],
  ['GET', '/iam/settings'],
  ['PUT', '/iam/settings/{setting}'],
  ['GET', '/iam/roles'],
  ['GET', '/iam/me'],
  ['GET', '/iam/users'],
  ['POST', '/iam/users'],
  ['GET', '/iam/users/{username}'],
  ['DELETE', '/iam/users/{username}'],
  ['PUT', '/iam/users/{username}/{setting}'],
  ['PUT', '/iam/users/{username}/push'],
  ['PUT', '/iam/users/{username}/notification-categories'],
  ['GET', '/iam/notification-categories'],
  ['POST', '/iam/users/{username}/push-test'],
  ['GET', '/tcp-tunnels/services'],
  ['GET', '/tcp-tunnels/services/{serviceId}'],
  ['GET', '/tcp-tunnels/connect/{serviceId}'],
];

function all(): Router<string> {
  const router = new Router<string>();
  for (const [method, pattern] of endpoints) {
    router.on(method, pattern, ({ parameters, context }) => ({
      status: 205,
      payload: new TextEncoder().encode(JSON.stringify([method, pattern, parameters, context])),
    }));
  }
  return router;
}

describe('the endpoints of the specification', () => {
  test.each(endpoints)('%s %s is routed to its own handler', async (method, pattern) => {
    const path = pattern.replaceAll('{username}', 'j%C3%BCrgen').replaceAll('{setting}', 'role').replaceAll('{serviceId}', 'a%2Fb');
    const reply = await all().handle(request(method, path), 'channel');
    const parameters = {
      ...(pattern.includes('{username}') ? { username: 'jürgen' } : {}),
      ...(pattern.includes('{setting}') ? { setting: 'role' } : {}),
      ...(pattern.includes('{serviceId}') ? { serviceId: 'a/b' } : {}),
    };
    expect(JSON.parse(textOf(reply.payload!))).toEqual([method, pattern, parameters, 'channel']);
  });

  const paths = [...new Set(endpoints.map(([, pattern]) => pattern))];
  const methods: CoapMethod[] = ['GET', 'POST', 'PUT', 'DELETE'];
  const unknown = paths.flatMap((pattern) =>
    methods
      .filter((method) => !endpoints.some((known) => known[0] === method && known[1] === pattern))
      .map((method) => [method, pattern] as const),
  );
  // A literal last segment is also a {setting} of the user.
  const reallyUnknown = unknown.filter(([method, pattern]) => !(method === 'PUT' && pattern === '/iam/users/{username}/push-test'));
  test.each(reallyUnknown)('%s %s is 404, not 405', async (method, pattern) => {
    expect((await all().handle(request(method, pattern.replaceAll(/[{}]/g, '')), '')).status).toBe(404);
  });

  test.each(['/', '/iam', '/iam/', '/iam/users/a/b/c', '/IAM/me', '/iam/me/', '//iam/me', '/tcp-tunnels/services/a/b', '/p2p/connect'])(
    'GET %s is 404',
    async (path) => {
      expect((await all().handle(request('GET', path), '')).status).toBe(404);
    },
  );

  test('a literal segment takes precedence over a parameter, whichever was added first', async () => {
    const reply = await all().handle(request('PUT', '/iam/users/bob/push'), '');
    expect(textOf(reply.payload)).toContain('/iam/users/{username}/push');
    // The literal has no handler for this method, so the parameter matches.
    const other = await all().handle(request('PUT', '/iam/users/bob/push-test'), '');
    expect(JSON.parse(textOf(other.payload!))[2]).toEqual({ username: 'bob', setting: 'push-test' });
  });
});

describe('a router', () => {
  test('passes the whole request to handlers, which may be asynchronous', async () => {
    const handler: Handler<number> = async ({ payload, contentFormat, query, observe, exchange, context }) => {
      await Promise.resolve();
      return { status: 201 + context, contentFormat: contentFormat!, payload, maxAge: query.length, observe: observe && exchange === 7 };
    };
    const router = new Router<number>().on('POST', '/echo', handler, { takesQuery: true });
    const incoming = request('POST', '/echo', { payload: Uint8Array.of(1), contentFormat: 42, query: ['a'], observe: true, exchange: 7 });
    expect(await router.handle(incoming, 3)).toEqual({
      status: 204,
      contentFormat: 42,
      payload: Uint8Array.of(1),
      maxAge: 1,
      observe: true,
    });
  });

  test('refuses a query where no handler reads it', async () => {
    const router = new Router<number>().on('GET', '/x', () => ({ status: 205 }));
    expect((await router.handle(request('GET', '/x'), 0)).status).toBe(205);
    for (const path of ['/x', '/nothing']) {
      const refused = await router.handle(request('GET', path, { query: ['a=b'] }), 0);
      expect([refused.status, textOf(refused.payload!)]).toEqual([400, 'Critical option 15 is not supported']);
    }
  });

  test.each([
    ['PARSE', 400],
    ['BAD_REQUEST', 400],
    ['UNAUTHORIZED', 401],
    ['TOKEN_REJECTED', 401],
    ['FORBIDDEN', 403],
    ['NOT_FOUND', 404],
    ['IN_USE', 409],
    ['TOO_MANY_REQUESTS', 429],
    ['NOT_IMPLEMENTED', 501],
    ['BAD_RESPONSE', 502],
    ['OUT_OF_MEMORY', 503],
    ['TIMEOUT', 504],
  ])('answers %s thrown by a handler with %i and its text', async (code, status) => {
    for (const error of [new RemoteError(code, 'why'), new LocalError(code, 'why')]) {
      const router = new Router<null>().on('GET', '/', () => Promise.reject(error));
      const reply = await router.handle(request('GET', '/'), null);
      expect({ ...reply, payload: textOf(reply.payload) }).toEqual({ status, payload: 'why' });
    }
  });

  test.each([
    new Error('secret'),
    new TypeError('secret'),
    'secret',
    undefined,
    new LocalError('CORE_FAILED', 'secret'),
    new LocalError('INVALID_STATE', 'secret'),
  ])('answers %o thrown by a handler with 500 and no details', async (error) => {
    const seen: unknown[] = [];
    const router = new Router<null>({ onError: (cause) => seen.push(cause) });
    router.on('GET', '/', () => {
      throw error;
    });
    const reply = await router.handle(request('GET', '/'), null);
    expect({ ...reply, payload: textOf(reply.payload) }).toEqual({ status: 500, payload: 'Internal error' });
    expect(seen).toEqual([error]);
  });

  test('answers "Request unhandled" when a handler drops the request', async () => {
    const reply = await new Router<null>().on('GET', '/', () => undefined).handle(request('GET', '/'), null);
    expect({ ...reply, payload: textOf(reply.payload) }).toEqual({ status: 500, payload: 'Request unhandled' });
  });

  test('takes a pattern once per method, until it is removed', async () => {
    const router = new Router<null>().on('GET', '/a/{x}', () => ({ status: 205 }));
    expect(() => router.on('GET', '/a/{y}', () => ({ status: 205 }))).toThrow(LocalError);
    router.on('PUT', '/a/{y}', ({ parameters }) => ({ status: 204, maxAge: Number(parameters.y) }));
    expect(await router.handle(request('PUT', '/a/5'), null)).toEqual({ status: 204, maxAge: 5 });
    expect(router.off('GET', '/a/{x}')).toBe(true);
    expect(router.off('GET', '/a/{x}')).toBe(false);
    expect(router.off('GET', '/nowhere')).toBe(false);
    expect((await router.handle(request('GET', '/a/5'), null)).status).toBe(404);
  });

  test.each([['a'], ['/{x}/{x}'], ['/%'], ['/..']])('refuses the pattern %s', (pattern) => {
    expect(() => new Router<null>().on('GET', pattern, () => undefined)).toThrow(LocalError);
  });

  test('refuses an unknown method', () => {
    expect(() => new Router<null>().on('PATCH' as 'PUT', '/', () => undefined)).toThrow(LocalError);
  });
});
