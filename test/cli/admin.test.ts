/** `svc admin` on a data directory: records, secrets shown once, refusals with one line. */
import { generateKeyPairSync } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { adminCommand } from '../../cli/admin/index.ts';
import { openStore } from '../../server/administration/index.ts';
import { credentialRecord, hashSecret, openSealer } from '../../server/index.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { captured } from './captured.ts';

const fingerprint = 'ab'.repeat(32);
let data: string;

beforeEach(() => {
  data = temporaryDirectory();
});
afterEach(() => rmSync(`${data}.account.json`, { force: true }));

const admin = (...words: string[]) => captured(new Command('svc').addCommand(adminCommand()), ['admin', ...words, '--data', data]);

async function json<T>(...words: string[]): Promise<T> {
  const { code, out, err } = await admin(...words, '--json');
  expect(code).toBe(0);
  expect(err.replace(/^warning: the server key was in the arguments.*\n/, '')).toBe('');
  expect(out.trimEnd()).not.toContain('\n');
  return JSON.parse(out) as T;
}

test('a device is registered from nothing: the default organization is made implicitly', async () => {
  expect((await admin('product', 'add', 'pr-1')).out).toBe('pr-1\n');
  expect((await admin('device', 'add', 'pr-1', 'de-1', '--fingerprint', fingerprint.toUpperCase())).out).toBe('de-1\n');
  const [organization] = await json<{ organizationId: string }[]>('org', 'list');
  expect(organization?.organizationId).toMatch(/^or-[a-z2-7]{8}$/);
  expect(await json('device', 'list', 'pr-1')).toMatchObject([{ productId: 'pr-1', deviceId: 'de-1', fingerprint, name: null }]);
});

test('ids are generated where none is given', async () => {
  const { productId } = await json<{ productId: string }>('product', 'add');
  expect(productId).toMatch(/^pr-[a-z2-7]{8}$/);
  expect((await json<{ deviceId: string }>('device', 'add', productId)).deviceId).toMatch(/^de-[a-z2-7]{8}$/);
});

test('a server key is printed once and kept as a hash', async () => {
  const key = (await admin('key', 'add', '--name', 'app')).out.trim();
  expect(key).toMatch(/^sk-[0-9a-f]{32}$/);
  expect((await admin('key', 'list')).out).not.toContain(key);
  expect(JSON.stringify(await json('key', 'list'))).not.toContain(hashSecret(key));
  const store = await openStore(data);
  expect(await store.appByKey(hashSecret(key))).toMatchObject({ name: 'app', productIds: null, authType: 'NONE' });
  await store.close();
  expect((await admin('key', 'remove', key)).code).toBe(0);
  expect(await json('key', 'list')).toEqual([]);
});

test('a server key may be given by the operator, and limited to products', async () => {
  await admin('product', 'add', 'pr-1');
  const added = await json<{ appId: string }>('key', 'add', 'sk-1234567890abcdef', '--product', 'pr-1');
  expect(added).toMatchObject({ serverKey: 'sk-1234567890abcdef', productIds: ['pr-1'] });
  expect((await admin('key', 'add', 'sk-1234567890abcdef')).err).toMatch(/exists already/);
  expect((await admin('key', 'add', '--product', 'pr-2')).err).toMatch(/there is no .*pr-2/);
  expect((await admin('key', 'remove', added.appId)).code).toBe(0);
});

const ISSUER = ['--jwt-issuer', 'https://login.example', '--jwt-audience', 'svc', '--jwt-jwks-uri', 'https://login.example/keys'];

test('a server key that requires tokens of an issuer is shown, changed and made an ordinary one', { tags: ['slow'] }, async () => {
  const { appId, ...added } = await json<{ appId: string }>('key', 'add', 'sk-1234567890abcdef', ...ISSUER);
  const jwt = {
    issuer: 'https://login.example',
    audience: 'svc',
    audienceClaim: 'aud',
    jwksUri: 'https://login.example/keys',
    svcIdsClaim: 'svc_ids',
  };
  expect(added).toMatchObject({ authType: 'JWT', jwt });
  expect((await admin('key', 'list')).out).toContain('https://login.example');
  expect((await admin('key', 'show', 'sk-1234567890abcdef')).out).toMatch(
    /issuer +https:\/\/login.example\naudience +svc, in aud\nkeys .*\nclaim +svc_ids/,
  );
  expect(await json('key', 'set', appId, '--jwt-claim', 'devices', '--jwt-audience-claim', 'client_id', '--name', 'app')).toMatchObject({
    name: 'app',
    jwt: { ...jwt, svcIdsClaim: 'devices', audienceClaim: 'client_id' },
  });
  expect(await json('key', 'show', appId)).toMatchObject({
    name: 'app',
    jwt: { ...jwt, svcIdsClaim: 'devices', audienceClaim: 'client_id' },
  });
  expect((await admin('key', 'set', appId, '--no-jwt')).out).toContain('key alone');
  expect(await json('key', 'list')).toMatchObject([{ authType: 'NONE', jwt: null, name: 'app' }]);
});

test.each<[string, string[], RegExp]>([
  ['an issuer alone', ['add', '--jwt-issuer', 'https://login.example'], /--jwt-issuer, --jwt-audience and --jwt-jwks-uri belong together/],
  ['an audience claim alone', ['add', '--jwt-audience-claim', 'client_id'], /belong together/],
  ['a claim alone', ['add', '--jwt-claim', 'devices'], /belong together/],
  ['an audience that is empty', ['add', ...ISSUER.with(3, '')], /--jwt-audience.*An audience has 1 to 512 characters and no blanks/],
  ['an issuer with a blank', ['add', ...ISSUER.with(1, 'a b')], /--jwt-issuer.*An issuer has/],
  ['keys without https', ['add', ...ISSUER.with(5, 'http://login.example/keys')], /--jwt-jwks-uri.*by https only/],
  ['keys at a metadata address', ['add', ...ISSUER.with(5, 'https://169.254.169.254/keys')], /not an address that an issuer may have/],
  ['a claim with a blank', ['add', ...ISSUER, '--jwt-claim', 'a b'], /--jwt-claim.*ASCII characters without blanks/],
  ['nothing to change', ['set', 'ap-1'], /nothing to change/],
  ['both', ['set', 'ap-1', '--no-jwt', '--jwt-claim', 'x'], /exclude each other/],
  ['an unknown key', ['set', 'ap-1', '--no-jwt'], /there is no such server key: see svc admin key list/],
  ['an unknown key', ['show', 'sk-ffffffffffffffff'], /there is no such server key: see/],
  ['an ordinary key that gets half an issuer', ['set', 'sk-1234567890abcdef', '--jwt-claim', 'x'], /need all three/],
])('refuses %s', async (_, words, message) => {
  await admin('key', 'add', 'sk-1234567890abcdef');
  const { code, err } = await admin('key', ...words);
  expect(err).toMatch(message);
  expect(code).not.toBe(0);
  expect(await json('key', 'list')).toMatchObject([{ authType: 'NONE', jwt: null }]);
});

test('an API key has the record of the specification and a secret that is shown once', async () => {
  const words = ['--name', 'ops', '--action', 'svc:read', '--ip', '10.0.0.0/8=office', '--ip', '::1', '--enforce-ip', '--admin'];
  const { secret, ...record } = await json<{ secret: string; apikeyId: string }>('apikey', 'add', 'ak-1', ...words);
  expect(secret).toMatch(/^ak-1\.[\w-]{43}$/);
  expect(record).toEqual({
    organizationId: expect.stringMatching(/^or-/),
    apikeyId: 'ak-1',
    name: 'ops',
    enforceIpWhitelist: true,
    isAdmin: true,
    actions: ['svc:read'],
    ipWhiteList: [{ ip: '10.0.0.0/8', name: 'office' }, { ip: '::1' }],
    created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  expect(await json('apikey', 'list')).toEqual([record]);
  const store = await openStore(data);
  expect(await store.apiKeyHash('ak-1')).toBe(hashSecret(secret));
  await store.close();
  expect((await admin('apikey', 'remove', 'ak-1')).code).toBe(0);
});

test('fingerprints can be changed and records removed', { tags: ['slow'] }, async () => {
  await admin('product', 'add', 'pr-1');
  await admin('device', 'add', 'pr-1', 'de-1');
  expect((await admin('device', 'set-fingerprint', 'pr-1', 'de-1', fingerprint)).code).toBe(0);
  expect(await json('device', 'list')).toMatchObject([{ fingerprint }]);
  const refused = await admin('product', 'remove', 'pr-1');
  expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/1 devices: add --force/) });
  expect((await admin('device', 'remove', 'pr-1', 'de-1')).code).toBe(0);
  expect((await admin('product', 'remove', 'pr-1')).code).toBe(0);
  expect((await admin('product', 'list')).out).toBe('no products\n');
});

test('with several organizations --org is required and checked', async () => {
  await admin('org', 'add', 'or-a');
  await admin('org', 'add', 'or-b', '--name', 'B');
  expect((await admin('product', 'add')).err).toMatch(/several organizations: name one with --org/);
  expect((await admin('product', 'add', 'pr-b', '--org', 'or-b')).code).toBe(0);
  expect((await admin('product', 'add', '--org', 'or-x')).err).toMatch(/no organization or-x/);
  expect(await json('product', 'list', '--org', 'or-a')).toEqual([]);
  expect((await admin('org', 'remove', 'or-b')).err).toMatch(/--force/);
  expect((await admin('org', 'remove', 'or-b', '--force')).code).toBe(0);
  expect(await json('product', 'list')).toEqual([]);
});

describe('push credentials', () => {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const account = {
    type: 'service_account',
    project_id: 'demo-project',
    private_key_id: 'k1',
    private_key: privateKey,
    client_email: 'push@demo-project.iam.example',
    token_uri: 'https://oauth2.example/token',
  };

  function file(content: unknown): string {
    // Not the base station's own place: that directory is not its data yet.
    const path = `${data}.account.json`;
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }

  test('come from the account file; the key is stored sealed and never shown', { tags: ['slow'] }, async () => {
    const added = await json('push-credential', 'add', file(account));
    expect(added).toMatchObject({
      projectId: 'demo-project',
      keyId: 'k1',
      baseUrl: 'https://fcm.googleapis.com',
      tokenUrl: account.token_uri,
    });
    expect(JSON.stringify([added, await json('push-credential', 'list')])).not.toMatch(/sealedKey|PRIVATE/);
    const store = await openStore(data);
    const [kept] = await store.outbound.pushCredentials();
    await store.close();
    expect(kept!.sealedKey).not.toContain('PRIVATE');
    expect((await openSealer(data)).open(kept!.sealedKey, credentialRecord(kept!))).toBe(privateKey);
    expect((await admin('push-credential', 'add', file(account))).err).toMatch(/exists already/);
    expect((await admin('push-credential', 'remove', 'demo-project')).code).toBe(0);
    expect((await admin('push-credential', 'list')).out).toBe('no push credentials\n');
  });

  test.each<[string, unknown]>([
    ['not JSON', '{'],
    ['not an object', '[]'],
    ['another type', { ...account, type: 'authorized_user' }],
    ['no project', { ...account, project_id: undefined }],
    ['an invalid key', { ...account, private_key: 'MIIsecret' }],
    ['a token URL in clear', { ...account, token_uri: 'http://oauth2.example/token' }],
    ['an invalid address', { ...account, client_email: 'nobody' }],
  ])('an account file with %s is refused in one line without the key', async (_, content) => {
    const result = await admin('push-credential', 'add', file(content));
    expect(result).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^svc: [^\n]+\n$/) });
    expect(result.err).not.toMatch(/internal error|MII/);
  });
});

describe('services', () => {
  test('are added with a secret that is shown once, attached, shown, detached and removed', { tags: ['slow'] }, async () => {
    await admin('product', 'add', 'pr-1');
    const { secret, ...added } = await json<{ secret: string; serviceId: string }>(
      'service',
      'add',
      'https://s.example/hook',
      '--name',
      'S',
    );
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(added).toMatchObject({ url: 'https://s.example/hook', timeout: 10_000, allowPrivate: false, products: [] });
    expect(added.serviceId).toMatch(/^se-[a-z2-7]{8}$/);
    expect((await admin('service', 'attach', added.serviceId, 'pr-1')).code).toBe(0);
    expect((await admin('service', 'attach', added.serviceId, 'pr-1')).code).toBe(0);
    expect(await json('service', 'show', added.serviceId)).toEqual({ ...added, products: ['pr-1'] });
    expect(JSON.stringify(await json('service', 'list'))).not.toMatch(/secret/i);
    expect((await admin('service', 'detach', added.serviceId, 'pr-1')).code).toBe(0);
    expect((await admin('service', 'detach', added.serviceId, 'pr-1')).code).toBe(1);
    expect((await admin('service', 'remove', added.serviceId)).code).toBe(0);
    expect((await admin('service', 'list')).out).toBe('no services\n');
  });

  test('a product of another organization is refused, and nothing is added', async () => {
    for (const org of ['or-a', 'or-b']) await admin('org', 'add', org);
    await admin('product', 'add', 'pr-b', '--org', 'or-b');
    expect((await admin('service', 'add', 'https://s.example', 'se-1', '--org', 'or-a', '--product', 'pr-b')).err).toMatch(
      /no product pr-b/,
    );
    expect(await json('service', 'list')).toEqual([]);
  });

  test('an organization with a service is removed only with --force', async () => {
    await admin('org', 'add', 'or-a');
    await admin('service', 'add', 'https://s.example', '--org', 'or-a');
    expect((await admin('org', 'remove', 'or-a')).err).toMatch(/--force/);
  });

  test('private addresses and http need --allow-private', { tags: ['slow'] }, async () => {
    for (const url of ['http://s.example', 'https://127.0.0.1', 'https://[::1]/', 'https://2130706433']) {
      expect(await admin('service', 'add', url)).toMatchObject({ code: 2, out: '' });
      expect((await admin('service', 'add', url, '--allow-private')).code).toBe(0);
    }
    expect((await admin('service', 'add', 'https://169.254.169.254', '--allow-private')).code).toBe(2);
  });
});

describe('wrong use is one line and exit code 2, a failure is one line and exit code 1:', () => {
  test.each<[number, string[]]>([
    [2, ['product', 'add', 'white space']],
    [2, ['product', 'add', 'a.b']],
    [2, ['product', 'add', 'x'.repeat(65)]],
    [2, ['product', 'add', 'pr-1', 'extra']],
    [2, ['product', 'add', '--name', '']],
    [2, ['product', 'remove']],
    [2, ['product', 'frobnicate']],
    [2, ['device', 'add', 'pr-1', '--fingerprint', 'abc']],
    [2, ['device', 'add']],
    [2, ['device', 'add', 'p'.repeat(40), 'd'.repeat(30)]],
    [2, ['key', 'add', 'short']],
    [2, ['apikey', 'add', '--ip', '300.1.1.1']],
    [2, ['apikey', 'add', '--ip', '10.0.0.0/40']],
    [2, ['apikey', 'add', '--action', 'white space']],
    [2, ['apikey', 'add', '--action', 'svc:write']],
    [2, ['apikey', 'add', '--unknown']],
    [2, ['service', 'add', 'ftp://s.example']],
    [2, ['service', 'add', 'https://user:secret@s.example']],
    [2, ['service', 'add', 'https://s.example', '--timeout', '50']],
    [2, ['push-credential', 'add', 'x', '--base-url', 'http://p.example']],
    [1, ['push-credential', 'add', '/nonexistent/x.json']],
    [1, ['push-credential', 'remove', 'demo-project']],
    [1, ['service', 'show', 'se-none']],
    [1, ['service', 'remove', 'se-none']],
    [1, ['service', 'attach', 'se-none', 'pr-1']],
    [1, ['device', 'add', 'pr-none', 'de-1']],
    [1, ['device', 'remove', 'pr-1', 'de-none']],
    [1, ['device', 'set-fingerprint', 'pr-1', 'de-none', fingerprint]],
    [1, ['key', 'remove', 'ap-none']],
    [1, ['apikey', 'remove', 'ak-none']],
    [1, ['org', 'remove', 'or-none']],
  ])('exit %i: %j', async (code, words) => {
    const result = await admin(...words);
    expect(result).toMatchObject({ code, out: '' });
    expect(result.err).toMatch(/^svc: [^\n]+\n$/);
    expect(result.err).not.toMatch(/internal error/);
  });
});
