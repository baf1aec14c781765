/**
 * Invitations in the store: one suite over SQLite, over a database whose errors have another form, and over the model.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NewInvitation } from '../../../server/storage/invitation-store.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { MemoryStore } from './memory-store.ts';
import { openPostgresShaped } from './postgres-shaped.ts';

const created = '2026-01-02T00:00:00.000Z';
const expires = '2026-01-03T00:00:00.000Z';
const time = '2026-01-02T12:00:00.000Z';
const [fingerprint, other] = ['ab'.repeat(32), 'cd'.repeat(32)];
const use = { deviceId: 'de-1', fingerprint, address: '192.0.2.1', time };
const invitation = (tokenHash: string, more: Partial<NewInvitation> = {}): NewInvitation => ({
  tokenHash,
  productId: 'pr-1',
  deviceId: null,
  expires,
  maker: 'ann',
  created,
  ...more,
});

describe.each<[string, () => Promise<Store>]>([
  ['SQLite', () => openSqliteStore(':memory:')],
  ['a database with errors of another form', openPostgresShaped],
  ['the model', async () => new MemoryStore()],
])('over %s', (_, open) => {
  let store: Store;

  beforeEach(async () => {
    store = await open();
    await store.addOrganization({ organizationId: 'or-1', name: null, created });
    for (const productId of ['pr-1', 'pr-2']) await store.addProduct({ productId, organizationId: 'or-1', name: null, created });
  });
  afterEach(() => store.close());

  test('an invitation is found by its hash and used once', async () => {
    expect(await store.invitations.add(invitation('a', { deviceId: 'de-1' }), 5)).toBe(true);
    const open = { ...invitation('a', { deviceId: 'de-1' }), revoked: false, use: null };
    expect(await store.invitations.find('a')).toEqual(open);
    expect(await store.invitations.find('b')).toBeNull();
    expect(await store.invitations.redeem({ tokenHash: 'a', ...use })).toBe('joined');
    expect(await store.invitations.all()).toEqual([{ ...open, use }]);
    expect(await store.device('pr-1', 'de-1')).toMatchObject({ fingerprint, created: time });
    expect(await store.invitations.redeem({ tokenHash: 'a', ...use, fingerprint: other })).toBe('closed');
    expect(await store.invitations.revoke('a')).toBe(false);
    expect((await store.device('pr-1', 'de-1'))?.fingerprint).toBe(fingerprint);
  });

  test('a taken id does not use up the invitation', async () => {
    await store.addDevice({ productId: 'pr-1', deviceId: 'de-1', name: null, fingerprint: other, created });
    await store.invitations.add(invitation('a'), 5);
    expect(await store.invitations.redeem({ tokenHash: 'a', ...use })).toBe('taken');
    expect((await store.invitations.find('a'))?.use).toBeNull();
    await store.invitations.add(invitation('b', { deviceId: 'de-1' }), 5);
    expect(await store.invitations.redeem({ tokenHash: 'b', ...use })).toBe('taken');
    expect((await store.device('pr-1', 'de-1'))?.fingerprint).toBe(other);
    expect(await store.invitations.redeem({ tokenHash: 'a', ...use, deviceId: 'de-2' })).toBe('joined');
  });

  test('a device without a key gets one only if the invitation names it', async () => {
    await store.addDevice({ productId: 'pr-1', deviceId: 'de-1', name: 'lamp', fingerprint: null, created });
    await store.invitations.add(invitation('a'), 5);
    await store.invitations.add(invitation('b', { deviceId: 'de-1' }), 5);
    expect(await store.invitations.redeem({ tokenHash: 'a', ...use })).toBe('taken');
    expect(await store.invitations.redeem({ tokenHash: 'b', ...use })).toBe('joined');
    expect(await store.device('pr-1', 'de-1')).toMatchObject({ fingerprint, name: 'lamp' });
  });

  test('an expired, revoked or missing invitation is closed', async () => {
    await store.invitations.add(invitation('a', { expires: time }), 5);
    await store.invitations.add(invitation('b'), 5);
    expect([await store.invitations.revoke('b'), await store.invitations.revoke('c')]).toEqual([true, false]);
    for (const tokenHash of ['a', 'b', 'c']) expect(await store.invitations.redeem({ tokenHash, ...use })).toBe('closed');
    expect(await store.devices()).toEqual([]);
  });

  test('a product has a limit of open invitations; used, revoked, expired and foreign ones do not count', async () => {
    const add = (tokenHash: string, more = {}): Promise<boolean> => store.invitations.add(invitation(tokenHash, more), 2);
    expect([await add('a'), await add('b'), await add('c'), await add('d', { productId: 'pr-2' })]).toEqual([true, true, false, true]);
    await store.invitations.redeem({ tokenHash: 'a', ...use });
    expect([await add('c'), await add('e')]).toEqual([true, false]);
    await store.invitations.revoke('b');
    expect([await add('e'), await add('f')]).toEqual([true, false]);
    expect(await add('f', { created: expires, expires: '2026-01-04T00:00:00.000Z' })).toBe(true);
    await expect(store.invitations.add(invitation('g', { productId: 'pr-3' }), 2)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no product pr-3',
    });
  });

  test('the times of those created in a span are moved together, used or not', async () => {
    for (const tokenHash of ['a', 'b']) await store.invitations.add(invitation(tokenHash), 5);
    await store.invitations.add(invitation('c', { created: '2025-12-31T00:00:00.000Z' }), 5);
    await store.invitations.redeem({ tokenHash: 'a', ...use });
    const [used, open, earlier] = await Promise.all(['a', 'b', 'c'].map((hash) => store.invitations.find(hash)));
    const later = (text: string): string => new Date(Date.parse(text) + 5_000).toISOString();
    const moved = { created: later(created), expires: later(expires) };
    await store.invitations.shift({ from: created, to: created, by: 5_000 });
    expect(await store.invitations.find('a')).toEqual({ ...used, ...moved, use: { ...used!.use, time: later(time) } });
    expect(await store.invitations.find('b')).toEqual({ ...open, ...moved });
    expect(await store.invitations.find('c')).toEqual(earlier);
  });

  test('expired invitations are removed, used ones later, and all of them with their product', async () => {
    for (const tokenHash of ['a', 'b']) await store.invitations.add(invitation(tokenHash), 5);
    await store.invitations.add(invitation('c', { expires: '2026-01-09T00:00:00.000Z' }), 5);
    await store.invitations.redeem({ tokenHash: 'a', ...use });
    const left = async (): Promise<string[]> => (await store.invitations.all()).map(({ tokenHash }) => tokenHash);
    await store.invitations.forget(time, created);
    expect(await left()).toEqual(['a', 'b', 'c']);
    await store.invitations.forget(expires, created);
    expect(await left()).toEqual(['a', 'c']);
    await store.invitations.forget(expires, expires);
    expect(await left()).toEqual(['c']);
    await store.removeProduct('pr-1');
    expect(await left()).toEqual([]);
  });
});

test('one of two parallel uses of an invitation succeeds', async () => {
  const store = await openSqliteStore(':memory:');
  await store.addOrganization({ organizationId: 'or-1', name: null, created });
  await store.addProduct({ productId: 'pr-1', organizationId: 'or-1', name: null, created });
  await store.invitations.add(invitation('a'), 5);
  const results = await Promise.all(
    [fingerprint, other].map((each) => store.invitations.redeem({ tokenHash: 'a', ...use, fingerprint: each })),
  );
  expect(results.toSorted()).toEqual(['closed', 'joined']);
  expect(await store.devices()).toHaveLength(1);
  await store.close();
});
