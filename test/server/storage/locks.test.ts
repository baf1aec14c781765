/**
 * One process may open the database several times, beside another process. POSIX locks belong to a process and a file:
 * closing any descriptor of the file releases them all. So only SQLite, which allows for that, may open an existing
 * database.
 */
import fs, { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { TestProcess } from '../../support/process.ts';

const created = '2026-01-02T03:04:05.678Z';

let directory: string;
let file: string;
const open: Store[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-locks-'));
  file = join(directory, 'basestation.sqlite');
});

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  rmSync(directory, { recursive: true });
});

async function openAgain(): Promise<Store> {
  const store = await openSqliteStore(file);
  open.push(store);
  return store;
}

/** Runs a statement in a separate process, which then closes the database, as `svc admin` does. @returns the rows */
async function elsewhere(sql: string): Promise<unknown[]> {
  const script = `
    const Database = require(${JSON.stringify(createRequire(import.meta.url).resolve('libsql'))});
    const db = new Database(${JSON.stringify(file)});
    db.pragma('busy_timeout=5000');
    const statement = db.prepare(${JSON.stringify(sql)});
    process.stdout.write(JSON.stringify(statement.reader ? statement.all([]) : [statement.run([])]));
    db.close();`;
  return JSON.parse(await new TestProcess(process.execPath, ['-e', script]).succeeded());
}

test('12 rounds of opening it again beside another process lose no acknowledged record', { tags: ['slow'] }, async () => {
  const store = await openAgain();
  await store.addOrganization({ organizationId: 'or-1', name: null, created });
  for (let round = 0; round < 12; round++) {
    const again = await openAgain();
    await elsewhere(`insert into products (productId, organizationId, created) values ('pr-other-${round}', 'or-1', '')`);
    await store.addProduct({ productId: `pr-first-${round}`, organizationId: 'or-1', name: null, created });
    await again.addProduct({ productId: `pr-again-${round}`, organizationId: 'or-1', name: null, created });
    if (round % 2 === 0) await open.pop()!.close();
  }
  const rows = await elsewhere('select count(*) as count from products');
  expect(rows).toEqual([{ count: 36 }]);
  expect(await store.products()).toHaveLength(36);
});

test('only SQLite opens an existing database', async () => {
  const opening = vi.spyOn(fs, 'openSync');
  syncBuiltinESMExports();
  for (let times = 0; times < 2; times++) await openAgain();
  const outcomes = opening.mock.results.map(({ type }) => type);
  opening.mockRestore();
  syncBuiltinESMExports();
  expect(outcomes).toEqual(['return', 'throw']);
});

test('a new database is accessible to this user only, and an existing one keeps its mode', async () => {
  await openAgain();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const shared = join(directory, 'shared.sqlite');
  writeFileSync(shared, '', { mode: 0o640 });
  open.push(await openSqliteStore(shared));
  expect(statSync(shared).mode & 0o777).toBe(0o640);
});
