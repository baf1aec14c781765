/** The data directory: first start, permissions, the lock, damage. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { nodeCrypto } from '../../../platform/node/index.ts';
import { openStationData, openStore } from '../../../server/storage/data-directory.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let parent: string;
let directory: string;

beforeEach(() => {
  parent = temporaryDirectory();
  directory = join(parent, 'data');
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

test('the first start makes key and secret, readable by this user only, and the next one finds them', async () => {
  const first = await openStationData(directory, nodeCrypto);
  const kept = [hex(first.identity.publicKey), hex(first.resetSecret)];
  await first.close();
  for (const name of ['identity.pem', 'reset-secret', 'outbound.key']) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(readFileSync(join(directory, 'identity.pem'), 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
  const second = await openStationData(directory, nodeCrypto);
  expect([hex(second.identity.publicKey), hex(second.resetSecret)]).toEqual(kept);
  await second.close();
  expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

test('files with hashes are readable by this user only, even in a directory that others may enter', async () => {
  mkdirSync(directory, { mode: 0o755 });
  const data = await openStationData(directory, nodeCrypto);
  await data.store.addOrganization({ organizationId: 'or-a', name: null, created: '2026-01-02T03:04:05.678Z' });
  const files = readdirSync(directory).filter((name) => name.startsWith('basestation.sqlite'));
  expect(files.toSorted()).toEqual(['basestation.sqlite', 'basestation.sqlite-shm', 'basestation.sqlite-wal']);
  for (const name of files) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
  await data.close();
});

test('a second base station is refused with one line, and administration is not', async () => {
  const running = await openStationData(directory, nodeCrypto);
  await expect(openStationData(directory, nodeCrypto)).rejects.toMatchObject({
    code: 'IN_USE',
    message: expect.stringMatching(/^another base station runs on [^\n]+$/),
  });
  const store = await openStore(directory);
  await store.addOrganization({ organizationId: 'or-1', name: null, created: '' });
  await store.close();
  expect(await running.store.organization('or-1')).not.toBeNull();
  await running.close();
});

test('it says when another base station took its directory', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const data = await openStationData(directory, nodeCrypto);
  const [sign] = readdirSync(directory).filter((name) => name.startsWith('basestation.lock.'));
  rmSync(join(directory, sign!));
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  await vi.waitFor(() => expect(data.lost.reason).toMatchObject({ code: 'IN_USE' }));
  await data.close();
});

test.each(['identity.pem', 'reset-secret', 'outbound.key', 'basestation.sqlite'])('a FIFO as %s is refused at once', async (name) => {
  mkdirSync(directory, { mode: 0o700 });
  await new TestProcess('mkfifo', [join(directory, name)]).succeeded();
  await expect(openStationData(directory, nodeCrypto)).rejects.toThrow(/^cannot [^\n]* it is not a regular file: remove it[^\n]*$/);
});

test.each([
  ['identity.pem', 'no key'],
  ['reset-secret', 'abc'],
  ['outbound.key', 'abc'],
])('a damaged %s is refused with its name, and the lock is released', async (name, content) => {
  await (await openStationData(directory, nodeCrypto)).close();
  const file = join(directory, name);
  const intact = readFileSync(file);
  writeFileSync(file, content);
  await expect(openStationData(directory, nodeCrypto)).rejects.toMatchObject({
    code: 'INVALID_STATE',
    message: expect.stringContaining(file),
  });
  writeFileSync(file, intact);
  await (await openStationData(directory, nodeCrypto)).close();
});

test('a lost key is not silently replaced, since devices and clients know the base station by it', async () => {
  await (await openStationData(directory, nodeCrypto)).close();
  const file = join(directory, 'identity.pem');
  const intact = readFileSync(file);
  rmSync(file);
  const missing = { code: 'INVALID_STATE', message: expect.stringMatching(/identity\.pem is missing.*restore it from a backup/) };
  await expect(openStationData(directory, nodeCrypto)).rejects.toMatchObject(missing);
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, intact);
  await (await openStationData(directory, nodeCrypto)).close();
  // Do what the message advises for a new key.
  for (const name of [file, join(directory, 'reset-secret')]) rmSync(name);
  await (await openStationData(directory, nodeCrypto)).close();
  expect(readFileSync(file)).not.toEqual(intact);
});

test.each([
  ['empty', (file: string) => writeFileSync(file, '')],
  ['missing', (file: string) => rmSync(file)],
])('a database that is %s is not taken for a new one, since the keys show that there was another', async (_, lose) => {
  await (await openStationData(directory, nodeCrypto)).close();
  lose(join(directory, 'basestation.sqlite'));
  const before = readdirSync(directory);
  const message = expect.stringMatching(/basestation\.sqlite is missing or empty.*restore it from a backup, or remove .*reset-secret/);
  for (const open of [() => openStationData(directory, nodeCrypto), () => openStore(directory)])
    await expect(open()).rejects.toMatchObject({ code: 'INVALID_STATE', message });
  expect(readdirSync(directory)).toEqual(before);
  // As it is after doing what the message advises for an empty one, with no handle of the old one open.
  const advised = join(parent, 'advised');
  mkdirSync(advised);
  copyFileSync(join(directory, 'identity.pem'), join(advised, 'identity.pem'));
  await (await openStationData(advised, nodeCrypto)).close();
  expect(readFileSync(join(advised, 'identity.pem'))).toEqual(readFileSync(join(directory, 'identity.pem')));
});

test('a path that cannot be a directory is refused with one line', async () => {
  writeFileSync(directory, '');
  await expect(openStationData(directory, nodeCrypto)).rejects.toMatchObject({ code: 'FAILED' });
  await expect(openStore(directory)).rejects.toMatchObject({ code: 'FAILED' });
});

test.each([['notes.txt'], ['key.pem', 'state.json']])(
  'a directory with other content is refused and left unchanged: %s',
  async (...names) => {
    mkdirSync(directory);
    for (const name of names) writeFileSync(join(directory, name), '');
    for (const open of [() => openStationData(directory, nodeCrypto), () => openStore(directory)])
      await expect(open()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: `${directory} is not empty and holds no data of a base station: choose an empty or a new directory`,
      });
    expect(readdirSync(directory).sort()).toEqual(names);
  },
);

test('hidden files and lost+found do not count as other content, nor does what `svc admin` made alone', async () => {
  mkdirSync(join(directory, 'lost+found'), { recursive: true });
  writeFileSync(join(directory, '.gitkeep'), '');
  await (await openStore(directory)).close();
  writeFileSync(join(directory, 'notes.txt'), '');
  await (await openStationData(directory, nodeCrypto)).close();
});
