/** `svc admin` on a data directory: records, secrets shown once, refusals with one line. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { adminCommand } from '../../cli/admin/index.ts';
import { runProgram } from '../../cli/frame/program.ts';
import { hashSecret, openStore } from '../../server/admin.ts';

const fingerprint = 'ab'.repeat(32);
let data: string;

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'svc-admin-'));
});
afterEach(() => rmSync(data, { recursive: true }));

async function admin(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const captured = { out: '', err: '' };
  const capture = (name: 'out' | 'err') => (chunk: unknown) => {
    captured[name] += String(chunk);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(capture('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(capture('err')),
  ];
  try {
    const code = await runProgram(new Command('svc').addCommand(adminCommand()), ['admin', ...words, '--data', data]);
    return { code, ...captured };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

async function json<T>(...words: string[]): Promise<T> {
  const { code, out, err } = await admin(...words, '--json');
  expect([code, err]).toEqual([0, '']);
  expect(out.trimEnd()).not.toContain('\n');
  return JSON.parse(out) as T;
}

test('from nothing to a registered device: the default organization makes itself', async () => {
  expect((await admin('product', 'add', 'pr-1')).out).toBe('pr-1\n');
  expect((await admin('device', 'add', 'pr-1', 'de-1', '--fingerprint', fingerprint.toUpperCase())).out).toBe('de-1\n');
  const [organization] = await json<{ organizationId: string }[]>('org', 'list');
  expect(organization?.organizationId).toMatch(/^or-[a-z2-7]{8}$/);
  expect(await json('device', 'list', 'pr-1')).toMatchObject([{ productId: 'pr-1', deviceId: 'de-1', fingerprint, name: null }]);
});

test('ids are made up where none is given', async () => {
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

test('a server key may be brought along and limited to products', async () => {
  await admin('product', 'add', 'pr-1');
  const added = await json<{ appId: string }>('key', 'add', 'sk-1234567890abcdef', '--product', 'pr-1');
  expect(added).toMatchObject({ serverKey: 'sk-1234567890abcdef', productIds: ['pr-1'] });
  expect((await admin('key', 'add', 'sk-1234567890abcdef')).err).toMatch(/exists already/);
  expect((await admin('key', 'add', '--product', 'pr-2')).err).toMatch(/there is no .*pr-2/);
  expect((await admin('key', 'remove', added.appId)).code).toBe(0);
});

test('an API key has the record of the specification and a secret shown once', async () => {
  const words = [
    '--name',
    'ops',
    '--action',
    'svc:read',
    '--action',
    'svc:write',
    '--ip',
    '10.0.0.0/8=office',
    '--ip',
    '::1',
    '--enforce-ip',
    '--admin',
  ];
  const { secret, ...record } = await json<{ secret: string; apikeyId: string }>('apikey', 'add', 'ak-1', ...words);
  expect(secret).toMatch(/^ak-1\.[\w-]{43}$/);
  expect(record).toEqual({
    organizationId: expect.stringMatching(/^or-/),
    apikeyId: 'ak-1',
    name: 'ops',
    enforceIpWhitelist: true,
    isAdmin: true,
    actions: ['svc:read', 'svc:write'],
    ipWhiteList: [{ ip: '10.0.0.0/8', name: 'office' }, { ip: '::1' }],
    created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  expect(await json('apikey', 'list')).toEqual([record]);
  const store = await openStore(data);
  expect(await store.apiKeyHash('ak-1')).toBe(hashSecret(secret));
  await store.close();
  expect((await admin('apikey', 'remove', 'ak-1')).code).toBe(0);
});

test('fingerprints change and records go', async () => {
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

test('several organizations: --org is needed and checked', async () => {
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

describe('wrong use is one line and exit code 2, a failure is one line and exit code 1', () => {
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
    [2, ['apikey', 'add', '--unknown']],
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
