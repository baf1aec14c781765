/**
 * Administration as a REST interface or a dashboard uses it: without the command line, over the base station's store
 * and over a second implementation. The test sets time and randomness.
 */
import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LocalError } from '../../../protocol/errors/index.ts';
import {
  type Administration,
  addApiKey,
  addDevice,
  addOrganization,
  addProduct,
  addPushCredential,
  addServerKey,
  addService,
  admitsNoAddress,
  attachService,
  detachService,
  pushCredentials,
  type Refusal,
  removeApiKey,
  removeDevice,
  removeOrganization,
  removeProduct,
  removePushCredential,
  removeServerKey,
  removeService,
  serverKeys,
  service,
  services,
  setFingerprint,
} from '../../../server/administration/index.ts';
import { credentialRecord, Sealer, serviceRecord } from '../../../server/storage/sealing.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { MemoryStore } from '../storage/memory-store.ts';

const created = '2026-01-02T03:04:05.678Z';
const fingerprint = 'ab'.repeat(32);
const sealer = new Sealer(new Uint8Array(32));
const rsaKey = (modulusLength: number) => {
  const privateKeyEncoding = { type: 'pkcs8', format: 'pem' } as const;
  return generateKeyPairSync('rsa', { modulusLength, privateKeyEncoding, publicKeyEncoding: { type: 'spki', format: 'pem' } }).privateKey;
};
const privateKey = rsaKey(2048);
const account = {
  type: 'service_account',
  project_id: 'demo',
  private_key: privateKey,
  client_email: 'push@demo.example',
  token_uri: 'https://oauth2.example/token',
};

/** Maps an error as a REST interface does: a status by its code, and the kind of refusal if there is one. */
async function answer(call: Promise<unknown>): Promise<{ status: number; kind?: Refusal['kind']; message: string }> {
  const error: unknown = await call.then(
    () => null,
    (failure: unknown) => failure,
  );
  if (!(error instanceof LocalError)) throw new Error(`not a refusal: ${String(error)}`);
  const status = { INVALID_ARGUMENT: 400, NOT_FOUND: 404, INVALID_STATE: 409 }[error.code];
  if (status === undefined) throw new Error(`no status for ${error.code}`);
  const { refusal } = error as LocalError & { refusal?: Refusal };
  return { status, message: error.message, ...(refusal === undefined ? {} : { kind: refusal.kind }) };
}

describe.each<[string, () => Promise<Store>]>([
  ['SQLite', () => openSqliteStore(':memory:')],
  ['a store in memory', async () => new MemoryStore()],
])('administration over %s', (_name, open) => {
  let store: Store;
  let administration: Administration;
  let sealersAsked: number;

  beforeEach(async () => {
    store = await open();
    sealersAsked = 0;
    let drawn = 0;
    administration = {
      store,
      sealer: async () => {
        sealersAsked++;
        return sealer;
      },
      wallTime: () => Date.parse(created),
      randomBytes: (length) => new Uint8Array(length).fill(drawn++),
    };
  });
  afterEach(() => store.close());

  describe('ids, names and defaults', () => {
    test('an omitted id is random after its prefix, an omitted name is null, and the time is that of the clock', async () => {
      expect(await addOrganization(administration, {})).toEqual({ organizationId: 'or-aaaaaaaa', name: null, created });
      const product = await addProduct(administration, { name: 'Sensor' });
      expect(product).toEqual({ productId: 'pr-bbbbbbbb', organizationId: 'or-aaaaaaaa', name: 'Sensor', created });
      const device = await addDevice(administration, { productId: product.productId });
      expect(device).toEqual({ productId: 'pr-bbbbbbbb', deviceId: expect.stringMatching(/^de-/), name: null, fingerprint: null, created });
      expect(await store.device(product.productId, device.deviceId)).toEqual({ ...device, organizationId: 'or-aaaaaaaa' });
    });

    test('an organization is created by default once, is the default while it is the only one, and must be named afterwards', async () => {
      await addProduct(administration, { productId: 'pr-1' });
      const [only, ...others] = await store.organizations();
      expect([only?.name, others]).toEqual(['default', []]);
      await addProduct(administration, { productId: 'pr-2' });
      expect(await store.organizations()).toHaveLength(1);
      await addOrganization(administration, { organizationId: 'or-b' });
      const refused = { status: 409, kind: 'several-organizations', message: 'there are several organizations' };
      expect(await answer(addProduct(administration, {}))).toEqual(refused);
      expect(await answer(addServerKey(administration, {}))).toEqual(refused);
      expect(await answer(addApiKey(administration, {}))).toEqual(refused);
      expect(await answer(addService(administration, { url: 'https://s.example' }))).toEqual(refused);
      expect(await answer(addPushCredential(administration, { account }))).toEqual(refused);
      expect((await addProduct(administration, { organizationId: 'or-b' })).organizationId).toBe('or-b');
      expect(await answer(addProduct(administration, { organizationId: 'or-x' }))).toEqual({
        status: 404,
        kind: 'not-found',
        message: 'there is no organization or-x',
      });
    });

    test('a refused value creates nothing, not even the default organization', async () => {
      const calls = [
        () => addOrganization(administration, { organizationId: 'a.b' }),
        () => addOrganization(administration, { name: 'two\nlines' }),
        () => addProduct(administration, { productId: '' }),
        () => addProduct(administration, { name: 'x'.repeat(101) }),
        () => addDevice(administration, { productId: 'p'.repeat(40), deviceId: 'd'.repeat(30) }),
        () => addDevice(administration, { productId: 'pr-1', fingerprint: 'abc' }),
        () => addServerKey(administration, { serverKey: 'sk-short' }),
        () => addServerKey(administration, { productIds: ['a b'] }),
        () => addApiKey(administration, { apikeyId: 'a.b' }),
        () => addApiKey(administration, { actions: ['read all'] }),
        () => addApiKey(administration, { actions: ['svc:read', 'svc:*'] }),
        () => addApiKey(administration, { ipWhiteList: [{ ip: '10.0.0.0/40' }] }),
        () => addApiKey(administration, { ipWhiteList: [{ ip: '::1', name: '' }] }),
        () => addPushCredential(administration, { account, baseUrl: 'http://p.example' }),
        () => addService(administration, { url: 'ftp://s.example' }),
        () => addService(administration, { url: 'https://user:secret@s.example' }),
        () => addService(administration, { url: `https://s.example/${'x'.repeat(2048)}` }),
        () => addService(administration, { url: 'https://169.254.169.254', allowPrivate: true }),
        () => addService(administration, { url: 'https://s.example', timeout: 99 }),
        () => addService(administration, { url: 'https://s.example', timeout: 60_001 }),
        () => addService(administration, { url: 'https://s.example', timeout: 100.5 }),
      ];
      for (const call of calls) expect(await answer(call())).toMatchObject({ status: 400, kind: 'invalid' });
      expect(await answer(addPushCredential(administration, { account: { ...account, type: 'user' } }))).toMatchObject({ status: 400 });
      const short = { ...account, private_key: rsaKey(1024) };
      expect(await answer(addPushCredential(administration, { account: short }))).toMatchObject({ status: 400 });
      expect([await store.organizations(), sealersAsked]).toEqual([[], 0]);
    });
  });

  describe('conflicts and missing records', () => {
    test('a taken id is a conflict, a missing owner is not found', async () => {
      await addProduct(administration, { productId: 'pr-1' });
      await addDevice(administration, { productId: 'pr-1', deviceId: 'de-1' });
      expect(await answer(addProduct(administration, { productId: 'pr-1' }))).toEqual({
        status: 409,
        message: 'product pr-1 exists already',
      });
      expect(await answer(addDevice(administration, { productId: 'pr-1', deviceId: 'de-1' }))).toMatchObject({ status: 409 });
      expect(await answer(addDevice(administration, { productId: 'pr-2' }))).toEqual({ status: 404, message: 'there is no product pr-2' });
      expect(await answer(addServerKey(administration, { productIds: ['pr-2'] }))).toMatchObject({ status: 404 });
    });

    test('a missing record cannot be changed or removed', async () => {
      await addProduct(administration, { productId: 'pr-1' });
      const device = { productId: 'pr-1', deviceId: 'de-x' };
      const calls: [() => Promise<unknown>, string][] = [
        [() => removeOrganization(administration, 'or-x'), 'there is no organization or-x'],
        [() => removeProduct(administration, 'pr-x'), 'there is no product pr-x'],
        [() => setFingerprint(administration, device, fingerprint), 'there is no device de-x of product pr-1'],
        [() => removeDevice(administration, device), 'there is no device de-x of product pr-1'],
        [() => removeServerKey(administration, 'sk-1234567890abcdef'), 'there is no such server key'],
        [() => removeApiKey(administration, 'ak-x'), 'there is no API key ak-x'],
        [() => removePushCredential(administration, { projectId: 'demo' }), 'there is no push credential of project demo'],
        [() => service(administration, 'se-x'), 'there is no service se-x'],
        [() => removeService(administration, 'se-x'), 'there is no service se-x'],
        [() => detachService(administration, 'se-x', 'pr-1'), 'there is no service se-x attached to product pr-1'],
      ];
      for (const [call, message] of calls) expect(await answer(call())).toEqual({ status: 404, kind: 'not-found', message });
    });

    test('a record that owns others is removed only by force, and with them', async () => {
      await addOrganization(administration, { organizationId: 'or-a' });
      await addProduct(administration, { productId: 'pr-1' });
      await addDevice(administration, { productId: 'pr-1', deviceId: 'de-1' });
      await addServerKey(administration, {});
      expect(await answer(removeProduct(administration, 'pr-1'))).toEqual({
        status: 409,
        kind: 'not-empty',
        message: 'product pr-1 still has 1 devices',
      });
      expect(await answer(removeOrganization(administration, 'or-a'))).toEqual({
        status: 409,
        kind: 'not-empty',
        message: 'organization or-a still has 2 products, keys and services',
      });
      await removeProduct(administration, 'pr-1', true);
      expect(await store.device('pr-1', 'de-1')).toBeNull();
      await removeOrganization(administration, 'or-a', true);
      expect([await store.organizations(), await serverKeys(administration)]).toEqual([[], []]);
    });
  });

  describe('devices', () => {
    test('a fingerprint is stored in lower case when it is added or changed', async () => {
      await addProduct(administration, { productId: 'pr-1' });
      const device = await addDevice(administration, { productId: 'pr-1', fingerprint: fingerprint.toUpperCase() });
      expect(device.fingerprint).toBe(fingerprint);
      await setFingerprint(administration, device, 'CD'.repeat(32));
      expect((await store.device('pr-1', device.deviceId))?.fingerprint).toBe('cd'.repeat(32));
      expect(await answer(setFingerprint(administration, device, 'cd'))).toMatchObject({ status: 400, kind: 'invalid' });
      await removeDevice(administration, device);
      expect(await store.devices()).toEqual([]);
    });
  });

  describe('secrets', () => {
    test('a server key is returned once, stored as a hash, and can be removed by key or by id', async () => {
      await addProduct(administration, { productId: 'pr-1' });
      const own = await addServerKey(administration, { serverKey: 'sk-1234567890abcdef', productIds: ['pr-1'], name: 'app' });
      const made = await addServerKey(administration, {});
      expect(own.serverKey).toBe('sk-1234567890abcdef');
      expect(made.serverKey).toMatch(/^sk-([0-9a-f]{2})\1{15}$/);
      expect(await store.appByKey(hashSecret(made.serverKey))).toMatchObject({ ...made.record, productIds: null, authType: 'NONE' });
      const listed = await serverKeys(administration);
      expect(listed).toEqual(expect.arrayContaining([own.record, made.record]));
      expect(JSON.stringify(listed)).not.toContain(hashSecret(own.serverKey));
      expect(await removeServerKey(administration, own.serverKey)).toBe(own.record.appId);
      expect(await removeServerKey(administration, made.record.appId)).toBe(made.record.appId);
      expect(await serverKeys(administration)).toEqual([]);
    });

    test('an API key has its id as default name, each action once, and a secret that is stored only as a hash', async () => {
      const { record, secret } = await addApiKey(administration, {
        apikeyId: 'ak-1',
        actions: ['svc:read', 'svc:read'],
        ipWhiteList: [{ ip: '::1' }],
      });
      expect(record).toMatchObject({
        name: 'ak-1',
        actions: ['svc:read'],
        isAdmin: false,
        enforceIpWhitelist: false,
        ipWhiteList: [{ ip: '::1' }],
      });
      expect(secret).toMatch(/^ak-1\.[\w-]{43}$/);
      expect([await store.apiKey('ak-1'), await store.apiKeyHash('ak-1')]).toEqual([record, hashSecret(secret)]);
      expect(admitsNoAddress(record)).toBe(false);
      expect(admitsNoAddress((await addApiKey(administration, { enforceIpWhitelist: true })).record)).toBe(true);
      await removeApiKey(administration, 'ak-1');
      expect(await store.apiKey('ak-1')).toBeNull();
    });

    test('a push credential is sealed for its project and listed without its key', async () => {
      const record = await addPushCredential(administration, { account, baseUrl: 'https://p.example//' });
      expect(record).toMatchObject({ projectId: 'demo', baseUrl: 'https://p.example', keyId: null, created });
      const kept = (await store.outbound.pushCredential(record.organizationId, 'demo'))!;
      expect(sealer.open(kept.sealedKey, credentialRecord(record))).toBe(privateKey);
      expect(await pushCredentials(administration)).toEqual([record]);
      expect(await answer(addPushCredential(administration, { account }))).toMatchObject({ status: 409 });
      await removePushCredential(administration, { projectId: 'demo' });
      expect(await pushCredentials(administration)).toEqual([]);
    });

    test('a service is sealed under its id, attached at once or later, and listed without its secret', async () => {
      for (const productId of ['pr-1', 'pr-2']) await addProduct(administration, { productId });
      const added = await addService(administration, { url: 'HTTPS://S.example:443/hook', serviceId: 'se-1', productIds: ['pr-2'] });
      expect(added.record).toMatchObject({ url: 'https://s.example/hook', timeout: 10_000, allowPrivate: false, name: null });
      const kept = (await store.outbound.service('se-1'))!;
      expect(sealer.open(kept.sealedSecret, serviceRecord(added.record))).toBe(added.secret);
      await attachService(administration, 'se-1', 'pr-1');
      expect(await service(administration, 'se-1')).toEqual({ record: added.record, products: ['pr-1', 'pr-2'] });
      await detachService(administration, 'se-1', 'pr-2');
      expect(await store.outbound.serviceOfProduct('se-1', 'pr-2')).toBeNull();
      expect(await services(administration)).toEqual([added.record]);
      await removeService(administration, 'se-1');
      expect(await services(administration)).toEqual([]);
    });
  });

  describe('the URL of a service', () => {
    test.each([
      ['http://s.example', 'cleartext-url'],
      ['http://127.0.0.1', 'cleartext-url'],
      ['https://127.0.0.1', 'private-address'],
      ['https://[::1]/', 'private-address'],
      ['https://2130706433', 'private-address'],
    ])('%s is refused as %s, and accepted when the operator allows it', async (url, kind) => {
      expect(await answer(addService(administration, { url }))).toMatchObject({ status: 400, kind });
      expect((await addService(administration, { url, allowPrivate: true })).record.allowPrivate).toBe(true);
    });
  });
});
