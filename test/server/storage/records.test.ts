/**
 * The records of the store with their constraints: one suite over SQLite, over a database of another dialect, and over
 * the model in memory.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { ApiKey, App, Store, TokenList } from '../../../server/storage/store.ts';
import { app as anyApp } from '../../support/fixture/app.ts';
import { MemoryStore } from './memory-store.ts';
import { openPostgresShaped } from './postgres-shaped.ts';

const created = '2026-01-02T03:04:05.678Z';
const fingerprint = 'ab'.repeat(32);

let store: Store;

async function seed(): Promise<void> {
  await store.addOrganization({ organizationId: 'or-1', name: 'One', created });
  await store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created });
  await store.addDevice({ productId: 'pr-1', deviceId: 'de-1', name: null, fingerprint, created });
}

const list = (...hashes: string[]): TokenList => ({ hashes, digest: `digest of ${hashes.join(' ')}` });

/** Returns which of the hashes belong to tokens of de-1. */
async function known(...hashes: string[]): Promise<string[]> {
  const found = await Promise.all(hashes.map((hash) => store.hasToken('pr-1', 'de-1', hash)));
  return hashes.filter((_, index) => found[index]);
}

const app: App = { ...anyApp, appId: 'ap-1', organizationId: 'or-1', keyHash: hashSecret('sk-1') };
const key: ApiKey = {
  organizationId: 'or-1',
  apikeyId: 'ak-1',
  name: 'ops',
  enforceIpWhitelist: true,
  isAdmin: false,
  actions: ['svc:read', 'svc:write'],
  ipWhiteList: [{ ip: '10.0.0.0/8', name: 'office' }, { ip: '::1' }],
  created,
};

describe.each<[string, () => Promise<Store>]>([
  ['SQLite', () => openSqliteStore(':memory:')],
  ['a database of another dialect', openPostgresShaped],
  ['the model in memory', async () => new MemoryStore()],
])('records over %s', (_name, open) => {
  beforeEach(async () => {
    store = await open();
  });
  afterEach(() => store.close());

  test('are returned as they were stored', async () => {
    await seed();
    await store.addApp(app);
    await store.addApiKey(key, hashSecret('secret'));
    expect(await store.organizations()).toEqual([{ organizationId: 'or-1', name: 'One', created }]);
    expect(await store.product('pr-1')).toEqual({ productId: 'pr-1', organizationId: 'or-1', name: null, created });
    const device = { productId: 'pr-1', deviceId: 'de-1', organizationId: 'or-1', name: null, fingerprint, created };
    expect(await store.device('pr-1', 'de-1')).toEqual(device);
    expect(await store.devices('pr-1')).toEqual([device]);
    expect(await store.devicesByFingerprint(fingerprint)).toEqual([device]);
    expect(await store.appByKey(hashSecret('sk-1'))).toEqual(app);
    expect(await store.apiKey('ak-1')).toEqual(key);
    expect(await store.apiKeys('or-1')).toEqual([key]);
    expect(await store.apiKeyHash('ak-1')).toBe(hashSecret('secret'));
  });

  test('that are missing are null, empty or false', async () => {
    expect(await store.organization('or-x')).toBeNull();
    expect(await store.product('pr-x')).toBeNull();
    expect(await store.device('pr-x', 'de-x')).toBeNull();
    expect(await store.appByKey('00')).toBeNull();
    expect(await store.apiKey('ak-x')).toBeNull();
    expect(await store.apiKeyHash('ak-x')).toBeNull();
    expect(await store.tokensDigest('pr-x', 'de-x')).toBeNull();
    expect(await store.hasToken('pr-x', 'de-x', 'aa')).toBe(false);
    expect(await store.removeProduct('pr-x')).toBe(false);
    expect(await store.setFingerprint('pr-x', 'de-x', fingerprint)).toBe(false);
  });

  test('refuse a taken id and a missing owner with a sentence', async () => {
    await seed();
    await store.addApp(app);
    await expect(store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created })).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: 'product pr-1 exists already',
    });
    await expect(store.addApp({ ...app, appId: 'ap-2' })).rejects.toMatchObject({ code: 'INVALID_STATE' });
    await expect(store.addDevice({ productId: 'pr-2', deviceId: 'd', name: null, fingerprint: null, created })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no product pr-2',
    });
    await expect(store.replaceTokens('pr-1', 'de-2', list('aa'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(store.addApiKey({ ...key, organizationId: 'or-2' }, 'aa')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const limited = { ...app, appId: 'ap-3', keyHash: 'other', productIds: ['pr-1', 'pr-9'] };
    await expect(store.addApp(limited)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await store.apps()).map(({ appId }) => appId)).toEqual(['ap-1']);
  });

  test('of a server key are changed as a whole, and only if they exist', async () => {
    await seed();
    await store.addApp(app);
    const jwt = { issuer: 'https://issuer', audience: 'svc', audienceClaim: 'aud', jwksUri: 'https://issuer/keys', svcIdsClaim: 'svc_ids' };
    const changes = { name: 'app', authType: 'JWT', jwt } as const;
    expect(await store.updateApp('ap-1', changes)).toBe(true);
    expect(await store.appByKey(app.keyHash)).toEqual({ ...app, ...changes });
    expect(await store.updateApp('ap-1', { name: null, authType: 'NONE', jwt: null })).toBe(true);
    expect(await store.apps()).toEqual([app]);
    await store.addApp({ ...app, ...changes, appId: 'ap-2', keyHash: 'other' });
    expect((await store.appByKey('other'))?.jwt).toEqual(jwt);
    expect(await store.updateApp('ap-9', changes)).toBe(false);
  });

  test('are removed with their owner', async () => {
    await seed();
    await store.addApp({ ...app, productIds: ['pr-1'] });
    await store.replaceTokens('pr-1', 'de-1', list('aa', 'bb'));
    await store.removeProduct('pr-1');
    expect(await store.device('pr-1', 'de-1')).toBeNull();
    expect(await store.hasToken('pr-1', 'de-1', 'aa')).toBe(false);
    expect((await store.appByKey(app.keyHash))?.productIds).toEqual([]);
    await store.removeOrganization('or-1');
    expect(await store.apps()).toEqual([]);
  });

  test('of tokens are replaced as a whole, and duplicates count once', async () => {
    await seed();
    await store.addDevice({ productId: 'pr-1', deviceId: 'de-other', name: null, fingerprint: null, created });
    await store.replaceTokens('pr-1', 'de-other', list('cc'));
    expect(await store.tokensDigest('pr-1', 'de-1')).toBeNull();
    await store.replaceTokens('pr-1', 'de-1', list('aa', 'bb', 'aa'));
    expect(await known('aa', 'bb', 'cc', 'dd')).toEqual(['aa', 'bb']);
    expect(await store.tokensDigest('pr-1', 'de-1')).toBe('digest of aa bb aa');
    await store.replaceTokens('pr-1', 'de-1', list('bb', 'cc'));
    expect(await known('aa', 'bb', 'cc', 'dd')).toEqual(['bb', 'cc']);
    await store.replaceTokens('pr-1', 'de-1', list());
    expect(await known('aa', 'bb', 'cc', 'dd')).toEqual([]);
    expect(await store.hasToken('pr-1', 'de-other', 'cc')).toBe(true);
  });

  test('are counted as changed only when a device is removed or gets another key', async () => {
    await seed();
    const revisions = [await store.devicesRevision()];
    const counted = async (change: () => Promise<unknown>): Promise<boolean> => {
      await change();
      revisions.push(await store.devicesRevision());
      return revisions.at(-1)! > revisions.at(-2)!;
    };
    const added = { productId: 'pr-1', deviceId: 'de-2', name: null, fingerprint, created };
    expect(await counted(() => store.addDevice(added))).toBe(false);
    expect(await counted(() => store.replaceTokens('pr-1', 'de-1', list('aa')))).toBe(false);
    expect(await counted(() => store.removeDevice('pr-1', 'de-9'))).toBe(false);
    expect(await counted(() => store.removeDevice('pr-1', 'de-2'))).toBe(true);
    expect(await counted(() => store.setFingerprint('pr-1', 'de-1', 'cd'.repeat(32)))).toBe(true);
    expect(await counted(() => store.removeProduct('pr-1'))).toBe(true);
  });

  test('of 4,096 tokens are replaced by as many others, and by none', async () => {
    await seed();
    const hashes = (prefix: string): string[] => Array.from({ length: 4_096 }, (_, index) => `${prefix}${index}`);
    await store.replaceTokens('pr-1', 'de-1', list(...hashes('a')));
    await store.replaceTokens('pr-1', 'de-1', list(...hashes('b')));
    expect(await known('a0', 'a4095', 'b0', 'b999', 'b1000', 'b4095')).toEqual(['b0', 'b999', 'b1000', 'b4095']);
    await store.replaceTokens('pr-1', 'de-1', list());
    expect(await known('b0', 'b4095')).toEqual([]);
  });

  test('of organizations have a default, made when there is none, and refused when there are several', async () => {
    const fresh = { organizationId: 'or-a', name: 'default', created };
    expect(await store.defaultOrganization(fresh)).toEqual(fresh);
    expect(await store.defaultOrganization({ ...fresh, organizationId: 'or-b' })).toEqual(fresh);
    await store.addOrganization({ organizationId: 'or-c', name: null, created });
    await expect(store.defaultOrganization(fresh)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: 'there are several organizations',
    });
  });
});
