/**
 * Every IAM endpoint with every status that docs/iam.md gives for it, in every mode: a literal table against the
 * endpoints.
 */
import { describe, expect, it, test } from 'vitest';
import { iamEndpoints } from '../../../../device/iam/endpoints/index.ts';
import { key } from '../model.ts';
import { cbor, EndpointBench, type Reply } from './endpoint-bench.ts';
import { actions, references } from './reference.ts';

/** The endpoints of docs/iam.md, each setting of a user by its name. */
const ENDPOINTS = 27;

describe.each(references)('$endpoint', ({ endpoint, statuses, cases }) => {
  const [method] = endpoint.split(' ');

  for (const [status, why, caller, path, body, options] of cases) {
    it(`${status}: ${why} (${caller}, ${path})`, async () => {
      const bench = new EndpointBench(options);
      const before = bench.snapshot;
      const reply = await bench.request(caller, `${method} ${path}`, body);
      expect(reply.status).toBe(status);
      expectForm(reply);
      if (status >= 400 || method === 'GET') expect(bench.snapshot).toBe(before);
      if (status >= 400 || method === 'GET') expect(bench.changes).toEqual([]);
      expect(bench.denied.map(({ action }) => action)).toEqual(status === 403 ? [actions[endpoint]] : []);
      expect(bench.errors).toHaveLength(options?.save === 'fails' ? 1 : 0);
    });
  }

  it('has a case for each of its statuses, and no other', () => {
    expect([...new Set(cases.map(([status]) => status))].sort()).toEqual([...statuses].sort());
  });
});

/** Bodies are CBOR, errors short text without content format, and nothing else has a body. */
function expectForm({ status, contentFormat, body }: Reply): void {
  if (status < 400) {
    expect(contentFormat).toBe(body === undefined ? undefined : 60);
    return;
  }
  expect(contentFormat).toBeUndefined();
  expect(body).toMatch(/^[^\n]{5,200}$/);
}

describe('Bodies are CBOR, errors are short texts without content format, and all else has no body.', () => {
  const pairing = (endpoint: string) => endpoint.startsWith('POST /iam/pairing/');
  const changing = references.filter(({ endpoint }) => !endpoint.startsWith('GET ') && !endpoint.endsWith('/push-test'));

  test.each(changing)('$endpoint: is refused when policies forbid it by its turn', async ({ endpoint, cases }) => {
    const [, , caller, path, body, options] = cases.find(([status]) => status < 300)!;
    let saved = () => {};
    const saving = new Promise<void>((resolve) => (saved = resolve));
    const bench = new EndpointBench({ ...options, save: () => saving });
    const before = bench.iam.state.users;
    const ahead = bench.iam.update((draft) => draft.setFriendlyName('Attic'));
    const reply = bench.request(caller, `${endpoint.split(' ')[0]} ${path}`, body);
    await new Promise(setImmediate);
    expect(bench.denied).toEqual([]);
    await bench.iam.setConfiguration({ policies: [], roles: [{ id: 'Nobody', policies: [] }], unpairedRole: 'Nobody' });
    saved();
    await ahead;
    expect(await reply).toMatchObject({ status: 403, body: pairing(endpoint) ? 'policies do not allow this pairing' : 'Access denied' });
    expect(bench.denied.map(({ action }) => action)).toEqual([actions[endpoint]]);
    expect(bench.iam.state.users).toBe(before);
    expect(bench.changes.map(({ kind }) => kind)).toEqual(['configuration-changed', 'settings-changed']);
  });
});

describe('the table', () => {
  it('is complete, and has no other entries', () => {
    const served = iamEndpoints.map(({ method, path }) => `${method} ${path}`);
    expect(served.sort()).toEqual(references.map(({ endpoint }) => endpoint).sort());
    expect(served).toHaveLength(ENDPOINTS);
  });

  it('asks policies for the documented action in the documented order', () => {
    for (const { method, path, action, pairing, checks, read } of iamEndpoints) {
      const endpoint = `${method} ${path}`;
      expect(action ?? (pairing === undefined ? undefined : `IAM:Pairing${pairing}`), endpoint).toBe(actions[endpoint]);
      const { order } = references.find((each) => each.endpoint === endpoint)!;
      if (order !== undefined) expect(checks.join(', '), endpoint).toBe(order);
      expect(checks.includes('body'), endpoint).toBe(read !== undefined);
    }
  });
});

describe('a line that is no endpoint is 4.04:', () => {
  test.each([
    'GET /iam',
    'PUT /iam/me',
    'POST /iam/pairing',
    'DELETE /iam/settings',
    'GET /iam/settings/local-open-pairing',
    'PUT /iam/users/ann',
    'PUT /iam/users/ann/shoe-size',
    'PUT /iam/users/ann/NotificationCategories',
    'GET /iam/users/ann/role',
    'DELETE /iam/users/ann/push',
    `GET /iam/users/ann/fingerprints/${key(2)}`,
    'GET /iam/users/ann/push-test',
    'PUT /iam/users/a%2Fb/role/x',
  ])('%s', async (line) => {
    const bench = new EndpointBench();
    const before = bench.snapshot;
    expect((await bench.request('admin', line, cbor('x'))).status).toBe(404);
    expect(bench.snapshot).toBe(before);
  });
});

describe('the order of the checks', () => {
  const broken = { contentFormat: 60, payload: Uint8Array.of(0xff) };
  const withOrder = references.flatMap(({ endpoint, order, body }) => (order === undefined ? [] : [{ endpoint, order, body }]));

  it.each(withOrder)('$endpoint: a bad body of a caller without permission', async ({ endpoint, order }) => {
    const [method, pattern] = endpoint.split(' ') as [string, string];
    const path = pattern.replace('{username}', 'ann').replace('{setting}', 'local-open-pairing').replace('{fingerprint}', key(7));
    const bench = new EndpointBench();
    expect((await bench.request('locked', `${method} ${path}`, broken)).status).toBe(order === 'body, action' ? 400 : 403);
  });

  const aboutUsers = withOrder.filter(({ endpoint }) => endpoint.includes(':username'));

  it.each(aboutUsers)('$endpoint: body, policies, then whether the user exists', async ({ endpoint, body }) => {
    const line = endpoint.replace('{username}', 'ghost').replace('{fingerprint}', key(7));
    const bench = new EndpointBench();
    expect((await bench.request('admin', line, broken)).status).toBe(400);
    expect((await bench.request('ann', line, body)).status).toBe(403);
    expect((await bench.request('admin', line, body)).status).toBe(404);
  });

  it.each([
    ['off goes before policies', 'POST /iam/pairing/local-open', 'locked', { state: { localOpenPairing: false } }, 404],
    ['off goes before policies', 'POST /iam/pairing/password-open', 'locked', { state: { passwordOpenPairing: false } }, 404],
    ['off goes before policies', 'POST /iam/pairing/local-initial', 'locked', { state: { localInitialPairing: false } }, 404],
    ['off goes before policies', 'POST /iam/pairing/password-invite', 'locked', { state: { passwordInvitePairing: false } }, 404],
    [
      'a missing initial user goes before policies',
      'POST /iam/pairing/local-initial',
      'locked',
      { without: ['initialPairingUsername'] },
      404,
    ],
    ['off goes before locality', 'POST /iam/pairing/local-open', 'remote', { state: { localOpenPairing: false } }, 404],
    ['policies go before authentication', 'POST /iam/pairing/password-open', 'locked', {}, 403],
    ['policies go before authentication', 'POST /iam/pairing/password-invite', 'locked', {}, 403],
    [
      'a missing password goes before authentication',
      'POST /iam/pairing/password-open',
      'stranger',
      { without: ['openPairingPasswordSealed'] },
      403,
    ],
    ['authentication goes before the body', 'POST /iam/pairing/password-open', 'stranger', {}, 401],
    ['locality goes before the body', 'POST /iam/pairing/local-open', 'remote', {}, 403],
    ['locality goes before the body', 'POST /iam/pairing/local-initial', 'remote', {}, 403],
    ['policies go before the setting', 'PUT /iam/settings/shoe-size', 'ann', {}, 403],
    ['the setting goes before the body', 'PUT /iam/settings/shoe-size', 'admin', {}, 404],
    [
      'the body goes before the initial user being paired',
      'POST /iam/pairing/local-initial',
      'stranger',
      { state: { initialPairingUsername: 'ann' } },
      400,
    ],
  ] as const)('%s: %s', async (_why, line, caller, options, status) => {
    expect((await new EndpointBench(options).request(caller, line, broken)).status).toBe(status);
  });

  it('a body is checked before its value is found in use', async () => {
    const bench = new EndpointBench();
    expect((await bench.request('admin', 'POST /iam/pairing/local-open', cbor({ Username: 'Ann' }))).status).toBe(400);
    expect((await bench.request('admin', 'PUT /iam/users/ghost/username', cbor('ann'))).status).toBe(404);
    expect((await bench.request('admin', 'PUT /iam/users/ghost/role', cbor('Emperor'))).status).toBe(404);
    expect((await bench.request('admin', 'PUT /iam/users/ghost/notification-categories', cbor(['GOSSIP']))).status).toBe(400);
  });
});
