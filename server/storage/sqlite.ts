/**
 * Opens the SQLite file behind a {@link Store}: connection settings, tables, refusal of a database of another version,
 * and the meaning of SQLite's errors.
 *
 * WAL lets `svc admin` write beside a running base station; `synchronous=FULL` makes a commit durable before it is
 * acknowledged; writers take the lock when they begin (`begin immediate`), so two of them wait for each other instead
 * of failing half-way.
 */

import { closeSync, openSync, statSync } from 'node:fs';
import { CompiledQuery, type DatabaseConnection, Kysely, Migrator, SqliteAdapter, SqliteDialect, SqliteDriver } from 'kysely';
import Database from 'libsql';
import { check, nonEmptyText } from '../../protocol/arguments.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Constraint, StoreDialect } from './dialect.ts';
import { KyselyStore } from './kysely-store.ts';
import { openingProblem } from './opening-problem.ts';
import { migrations, SCHEMA, type Tables } from './schema.ts';
import type { Store } from './store.ts';

/** ms that a statement waits for another process's write. */
const BUSY_TIMEOUT = 5000;

/**
 * Attempts to switch a fresh file to WAL while another process does the same: that switch alone does not wait by
 * itself.
 */
const WAL_ATTEMPTS = 50;

/**
 * Opens or creates the database.
 * @param file path, or `:memory:`
 * @throws LocalError INVALID_STATE with one line when the file cannot be opened, is not a database, or is of another
 *   version
 */
export async function openSqliteStore(file: string): Promise<Store> {
  check('the file', file, nonEmptyText);
  const database = openDatabase(file);
  const dialect = new ImmediateDialect({ database });
  const db = new Kysely<Tables>({ dialect });
  try {
    await migrate(db, file);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return new KyselyStore(db, dialect);
}

function openDatabase(file: string): Database.Database {
  refuseOther(file);
  refuseEmptied(file);
  try {
    makePrivate(file);
    const database = new Database(file);
    database.pragma(`busy_timeout=${BUSY_TIMEOUT}`);
    switchToWal(database);
    database.pragma('synchronous=FULL');
    database.pragma('foreign_keys=ON');
    return database;
  } catch (error) {
    throw new LocalError('INVALID_STATE', `cannot open the database ${file}: ${openingProblem(error, file)}`);
  }
}

/** SQLite would wait for ever for the content of a FIFO. */
function refuseOther(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new LocalError(
      'INVALID_STATE',
      `cannot open the database ${file}: it is not a regular file: remove it, or restore it from a backup`,
    );
}

/** SQLite would treat an emptied database as a new one, and delete its WAL: the last changes, perhaps all there is. */
function refuseEmptied(file: string): void {
  if (file === ':memory:' || sizeOf(file) !== 0 || !((sizeOf(`${file}-wal`) ?? 0) > 0)) return;
  throw new LocalError(
    'INVALID_STATE',
    `the database ${file} is empty, but ${file}-wal is not: something has emptied it. Restore both from a backup, or move both away to start afresh`,
  );
}

/** Returns undefined when there is no such file. */
function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/**
 * A new database is private to this user, even in a directory that others may enter; its WAL gets the same permissions.
 * An existing one is not opened: closing it would free the POSIX locks that SQLite holds for this process, and another
 * one could then delete the WAL under it.
 */
function makePrivate(file: string): void {
  if (file === ':memory:') return;
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // It exists, or cannot be created; SQLite reports that better.
  }
}

function switchToWal(database: Database.Database): void {
  for (let attempt = 1; ; attempt++) {
    try {
      database.pragma('journal_mode=WAL');
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || attempt === WAL_ATTEMPTS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

async function migrate(db: Kysely<Tables>, file: string): Promise<void> {
  await refuseOtherVersion(db, file);
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...migrations }) } });
  const { error } = await migrator.migrateToLatest();
  if (error) throw new LocalError('INVALID_STATE', `cannot bring the database ${file} up to date: ${openingProblem(error, file)}`);
}

async function refuseOtherVersion(db: Kysely<Tables>, file: string): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === 'kysely_migration')) return;
  const names = (await db.selectFrom('kysely_migration').select('name').execute()).map(({ name }) => name);
  const unknown = names.find((name) => !Object.hasOwn(migrations, name));
  if (unknown === undefined) return;
  const why = names.includes(SCHEMA)
    ? `was written by a newer version (it has "${unknown}"): use that version, or another data directory`
    : 'is of a version before 0.1.0: begin with a new data directory';
  throw new LocalError('INVALID_STATE', `the database ${file} ${why}`);
}

/** SQLite's extended result codes. */
const constraints: ReadonlyMap<string, Constraint> = new Map([
  ['SQLITE_CONSTRAINT_PRIMARYKEY', 'unique'],
  ['SQLITE_CONSTRAINT_UNIQUE', 'unique'],
  ['SQLITE_CONSTRAINT_FOREIGNKEY', 'foreign-key'],
]);

/**
 * Kysely's SQLite dialect, with transactions and migrations that take the write lock when they begin: two first starts
 * wait for each other.
 */
class ImmediateDialect extends SqliteDialect implements StoreDialect {
  readonly #database: Database.Database;

  constructor({ database }: { database: Database.Database }) {
    super({ database });
    this.#database = database;
  }

  override createDriver(): SqliteDriver {
    return new ImmediateDriver({ database: this.#database });
  }

  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter();
  }

  brokenConstraint(error: unknown): Constraint | null {
    return constraints.get(String((error as { code?: unknown } | null)?.code)) ?? null;
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class ImmediateDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** Errors such as a full disk make SQLite roll back by itself: a second rollback would fail, and hide the reason. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw('rollback'));
    } catch (error) {
      if (!/no transaction is active/.test(String(error))) throw error;
    }
  }
}
