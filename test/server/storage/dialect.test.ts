/** The dialect behind the store: one suite over SQLite and over a second database, whose errors have another form. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { adding, type StoreDialect } from '../../../server/storage/dialect.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { app as anyApp } from '../../support/fixture/app.ts';
import { openPostgresShaped } from './postgres-shaped.ts';

const created = '2026-01-02T03:04:05.678Z';

describe.each([
  ['SQLite', () => openSqliteStore(':memory:'), 'SQLITE_CONSTRAINT_NOTNULL'],
  ['a database with errors of another form', openPostgresShaped, '23502'],
])('over %s', (_name, open, valueMissing) => {
  let store: Store;

  beforeEach(async () => {
    store = await open();
    await store.addOrganization({ organizationId: 'or-1', name: null, created });
    await store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created });
  });
  afterEach(() => store.close());

  test('a taken primary key and a taken unique value are INVALID_STATE with a sentence', async () => {
    await expect(store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created })).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: 'product pr-1 exists already',
    });
    const app = { ...anyApp, appId: 'ap-1', organizationId: 'or-1', productIds: ['pr-1'] };
    await store.addApp(app);
    await expect(store.addApp({ ...app, appId: 'ap-2' })).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: 'server key ap-2 exists already',
    });
  });

  test('a missing owner is NOT_FOUND with a sentence, and the transaction leaves nothing', async () => {
    await expect(store.addDevice({ productId: 'pr-2', deviceId: 'de-1', name: null, fingerprint: null, created })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no product pr-2',
    });
    const app = { ...anyApp, organizationId: 'or-1', productIds: ['pr-1', 'pr-2'] };
    await expect(store.addApp(app)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await store.apps()).toEqual([]);
    const service = {
      serviceId: 'se-1',
      organizationId: 'or-2',
      name: null,
      url: 'https://s.example',
      sealedSecret: 'x',
      timeout: 1_000,
      allowPrivate: false,
      created,
    };
    await expect(store.outbound.addService(service)).rejects.toMatchObject({ code: 'NOT_FOUND', message: 'there is no organization or-2' });
  });

  test('any other failure of the database is passed on unchanged', async () => {
    const failure = await store.addOrganization({ organizationId: 'or-2', name: null, created: null as never }).catch((error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(failure.code).toBe(valueMissing);
  });
});

test('only the dialect decides: a constraint error of another database is passed on unchanged', async () => {
  const failure = Object.assign(new Error('UNIQUE constraint failed'), { code: 'SQLITE_CONSTRAINT_UNIQUE' });
  const dialect: StoreDialect = { brokenConstraint: () => null };
  await expect(adding(dialect, 'product pr-1', () => Promise.reject(failure))).rejects.toBe(failure);
});
