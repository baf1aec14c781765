/** The store's file: concurrent access, and files of other versions. */
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const created = '2026-01-02T03:04:05.678Z';
const fingerprint = 'ab'.repeat(32);

let directory: string;
let file: string;
let store: Store;
const open: Store[] = [];

async function openAgain(): Promise<Store> {
  const another = await openSqliteStore(file);
  open.push(another);
  return another;
}

beforeEach(async () => {
  directory = temporaryDirectory();
  file = join(directory, 'basestation.sqlite');
  store = await openAgain();
});

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function seed(): Promise<void> {
  await store.addOrganization({ organizationId: 'or-1', name: 'One', created });
  await store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created });
  await store.addDevice({ productId: 'pr-1', deviceId: 'de-1', name: null, fingerprint, created });
}

describe('the file', () => {
  test('gets a default organization once, which must be the only one', async () => {
    const fresh = { organizationId: 'or-a', name: 'default', created };
    const made = await Promise.all([
      store.defaultOrganization(fresh),
      (await openAgain()).defaultOrganization({ ...fresh, organizationId: 'or-b' }),
    ]);
    expect(made[0].organizationId).toBe(made[1].organizationId);
    await store.addOrganization({ organizationId: 'or-c', name: null, created });
    await expect(store.defaultOrganization(fresh)).rejects.toMatchObject({ code: 'INVALID_STATE' });
  });

  test('keeps acknowledged changes, in WAL mode with full synchronization', async () => {
    await seed();
    const raw = new Database(file);
    expect(raw.pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect((await (await openAgain()).device('pr-1', 'de-1'))?.fingerprint).toBe(fingerprint);
  });

  test('never holds a secret in clear', async () => {
    await seed();
    await store.replaceTokens('pr-1', 'de-1', { hashes: [hashSecret('tokenInClear')], digest: 'd' });
    const raw = new Database(file);
    expect(raw.prepare('select hash from deviceTokens').all([])).toEqual([{ hash: hashSecret('tokenInClear') }]);
  });

  test('shows changes of another process at the next read, and both processes can write', { tags: ['slow'] }, async () => {
    await seed();
    const writes = 40;
    const script = `
      const Database = require(${JSON.stringify(createRequire(import.meta.url).resolve('libsql'))});
      const db = new Database(${JSON.stringify(file)});
      db.pragma('busy_timeout=5000');
      for (let i = 0; i < ${writes}; i++)
        db.prepare('insert into devices (productId, deviceId, created) values (?, ?, ?)').run(['pr-1', 'other-' + i, '']);`;
    const child = new TestProcess(process.execPath, ['-e', script]);
    for (let i = 0; i < writes; i++)
      await store.addDevice({ productId: 'pr-1', deviceId: `own-${i}`, name: null, fingerprint: null, created });
    await child.succeeded();
    expect(await store.devices('pr-1')).toHaveLength(1 + 2 * writes);
    expect(await store.device('pr-1', `other-${writes - 1}`)).not.toBeNull();
  });

  test('has every acknowledged write of a killed process', { tags: ['slow'] }, async () => {
    await seed();
    const script = `
      const Database = require(${JSON.stringify(createRequire(import.meta.url).resolve('libsql'))});
      const db = new Database(${JSON.stringify(file)});
      db.pragma('busy_timeout=5000'); db.pragma('synchronous=FULL');
      for (let i = 0; ; i++) {
        db.prepare('insert into devices (productId, deviceId, created) values (?, ?, ?)').run(['pr-1', 'killed-' + i, '']);
        require('fs').writeSync(1, i + '\\n');
      }`;
    const child = new TestProcess(process.execPath, ['-e', script]);
    await child.until('twenty writes', () => child.lines[20]);
    await child.end('SIGKILL');
    const last = Number(child.lines.at(-1));
    expect(last).toBeGreaterThan(10);
    for (let i = 0; i <= last; i++) expect(await store.device('pr-1', `killed-${i}`)).not.toBeNull();
    await store.addDevice({ productId: 'pr-1', deviceId: 'after', name: null, fingerprint: null, created });
  });

  test.each(['0001-first', '0006-invitations'])(
    'with %s, of a version before 0.1.0, is refused with one line and stays unchanged',
    async (name) => {
      const old = join(directory, 'old.sqlite');
      const raw = new Database(old);
      raw.exec(
        `pragma journal_mode=WAL; create table kysely_migration (name, timestamp); insert into kysely_migration values ('${name}', 'x')`,
      );
      raw.close();
      const before = readFileSync(old);
      await expect(openSqliteStore(old)).rejects.toMatchObject({
        code: 'INVALID_STATE',
        message: `the database ${old} is of a version before 0.1.0: begin with a new data directory`,
      });
      expect(readFileSync(old).equals(before)).toBe(true);
      expect(statSync(`${old}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
    },
  );

  test('written by a newer version is refused with one line', async () => {
    new Database(file).exec("insert into kysely_migration (name, timestamp) values ('9999-later', 'x')");
    await expect(openSqliteStore(file)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(/newer version.*9999-later/),
    });
  });

  test('emptied beside its WAL is refused, and both stay unchanged', async () => {
    const copy = join(directory, 'copy.sqlite');
    await seed();
    writeFileSync(copy, '');
    copyFileSync(`${file}-wal`, `${copy}-wal`);
    const wal = readFileSync(`${copy}-wal`);
    expect(wal.length).toBeGreaterThan(0);
    await expect(openSqliteStore(copy)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringMatching(/is empty, but .*-wal is not.*Restore both/),
    });
    expect([readFileSync(copy).length, readFileSync(`${copy}-wal`).equals(wal)]).toEqual([0, true]);
  });

  test('reports the reason when SQLite itself rolls back a transaction, and the next one succeeds', async () => {
    await seed();
    const raw = new Database(file);
    raw.exec("create trigger full before insert on deviceTokens begin select raise(rollback, 'database or disk is full'); end");
    await expect(store.replaceTokens('pr-1', 'de-1', { hashes: ['aa'], digest: 'd' })).rejects.toThrow('database or disk is full');
    raw.exec('drop trigger full');
    raw.close();
    await store.replaceTokens('pr-1', 'de-1', { hashes: ['aa'], digest: 'd' });
    expect(await store.hasToken('pr-1', 'de-1', 'aa')).toBe(true);
  });

  test('that is not a database, or cannot be created, is refused with one line', async () => {
    const garbage = join(directory, 'garbage.sqlite');
    writeFileSync(garbage, 'no database at all '.repeat(300));
    await expect(openSqliteStore(garbage)).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('not a database'),
    });
    await expect(openSqliteStore(join(directory, 'missing', 'x.sqlite'))).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('no such directory'),
    });
  });
});
