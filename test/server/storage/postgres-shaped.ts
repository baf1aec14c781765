/**
 * A second database behind the store: SQLite's engine with a driver that reports errors as Postgres does, with SQLSTATE
 * in `code` and no codes of SQLite.
 */
import { type DatabaseConnection, Kysely, Migrator, type QueryResult, SqliteDialect, SqliteDriver } from 'kysely';
import Database from 'libsql';
import type { Constraint, StoreDialect } from '../../../server/storage/dialect.ts';
import { KyselyStore } from '../../../server/storage/kysely-store.ts';
import { migrations, type Tables } from '../../../server/storage/schema.ts';
import type { Store } from '../../../server/storage/store.ts';

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

/** Opens an empty store over it, in memory. */
export async function openPostgresShaped(): Promise<Store> {
  const dialect = new PostgresShapedDialect();
  const db = new Kysely<Tables>({ dialect });
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => ({ ...migrations }) } }).migrateToLatest();
  if (error) throw error;
  return new KyselyStore(db, dialect);
}
