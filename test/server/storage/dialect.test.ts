/**
 * The dialect behind the store: one suite over SQLite and over a second database, whose errors have another shape. The second one is SQLite's engine
 * with a driver that reports as Postgres does: SQLSTATE in `code`, no word of SQLite.
 */
import { type DatabaseConnection, Kysely, Migrator, type QueryResult, SqliteDialect, SqliteDriver } from 'kysely';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Constraint, StoreDialect } from '../../../server/storage/dialect.ts';
import { KyselyStore } from '../../../server/storage/kysely-store.ts';
import { migrations, type Tables } from '../../../server/storage/migrations.ts';
import { adding } from '../../../server/storage/rows.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';

const created = '2026-01-02T03:04:05.678Z';

/** SQLSTATE (class 23: integrity constraint violation). */
const states: Readonly<Record<string, string>> = {
  SQLITE_CONSTRAINT_PRIMARYKEY: '23505',
  SQLITE_CONSTRAINT_UNIQUE: '23505',
  SQLITE_CONSTRAINT_FOREIGNKEY: '23503',
  SQLITE_CONSTRAINT_NOTNULL: '23502',
};

class PostgresError extends Error {
  readonly code: string;

  constructor(code: string) {
    super('violates a constraint');
    this.code = code;
  }
}

class PostgresShapedDriver extends SqliteDriver {
  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    const executeQuery: DatabaseConnection['executeQuery'] = async <Row>(query: never): Promise<QueryResult<Row>> => {
      try {
        return await connection.executeQuery<Row>(query);
      } catch (error) {
        throw new PostgresError(states[(error as { code: string }).code] ?? 'XX000');
      }
    };
    return Object.assign(Object.create(connection) as DatabaseConnection, { executeQuery });
  }
}

class PostgresShapedDialect extends SqliteDialect implements StoreDialect {
  readonly #database: Database.Database;

  constructor() {
    const database = new Database(':memory:');
    super({ database });
    this.#database = database;
    database.pragma('foreign_keys=ON');
  }

  override createDriver(): SqliteDriver {
    return new PostgresShapedDriver({ database: this.#database });
  }

  brokenConstraint(error: unknown): Constraint | null {
    if (!(error instanceof PostgresError)) return null;
    return error.code === '23505' ? 'unique' : error.code === '23503' ? 'foreign-key' : null;
  }
}

async function openPostgresShaped(): Promise<Store> {
  const dialect = new PostgresShapedDialect();
  const db = new Kysely<Tables>({ dialect });
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => ({ ...migrations }) } }).migrateToLatest();
  if (error) throw error;
  return new KyselyStore(db, dialect);
}

describe.each([
  ['SQLite', () => openSqliteStore(':memory:')],
  ['a database with errors of another shape', openPostgresShaped],
])('over %s', (_name, open) => {
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
    const app = {
      appId: 'ap-1',
      organizationId: 'or-1',
      name: null,
      authType: 'NONE' as const,
      keyHash: 'aa',
      productIds: ['pr-1'],
      created,
    };
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
    const key = { appId: 'ap-1', organizationId: 'or-1', name: null, authType: 'NONE' as const, keyHash: 'aa', created };
    await expect(store.addApp({ ...key, productIds: ['pr-1', 'pr-2'] })).rejects.toMatchObject({ code: 'NOT_FOUND' });
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

  test('any other failure of the database stays what it is', async () => {
    const failure = await store.addOrganization({ organizationId: 'or-2', name: null, created: null as never }).catch((error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(failure.code).toMatch(/NOTNULL|23502/);
  });
});

test('only the dialect decides: what looks like a broken constraint of another database is passed on as it is', async () => {
  const failure = Object.assign(new Error('UNIQUE constraint failed'), { code: 'SQLITE_CONSTRAINT_UNIQUE' });
  const dialect: StoreDialect = { brokenConstraint: () => null };
  await expect(adding(dialect, 'product pr-1', () => Promise.reject(failure))).rejects.toBe(failure);
});
