/**
 * A quarter of a device's connections is reserved for paired keys: strangers take all they can, and the owner still
 * connects. One address gets at most half of the rest, so a client that is not paired yet connects, too.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import type { Connection, SvcClient } from '../../client/node.ts';
import { GuardedDevice } from './iam/guarded-device.ts';
import { key, stateOf, user } from './iam/model.ts';

/** A connection that is open, or the code of its refusal. */
type Outcome = Connection | string;

const ended = (all: readonly Outcome[]): number => all.filter((each) => typeof each === 'string').length;

/** @param client of all of them, which then come from one address; default each from its own */
async function strangers(guarded: GuardedDevice, count: number, client?: SvcClient): Promise<Outcome[]> {
  const all: Outcome[] = [];
  for (let index = 0; index < count; index++) all.push(await guarded.direct({}, client).catch(({ code }) => code));
  await guarded.pass(1_000);
  for (const each of all) if (typeof each !== 'string') expect(each.closeReason).toBeNull();
  return all;
}

test.each([
  [8, 6],
  [4, 3],
  [3, 3],
])('of %d connections strangers get %d', { tags: ['slow'] }, async (limit, open) => {
  const guarded = await GuardedDevice.make({
    state: stateOf([user('owner', { role: 'Administrator', fingerprints: [{ fingerprint: key(1) }] })]),
  });
  guarded.device.limitConnections(limit);
  await guarded.attach();
  const all = await strangers(guarded, limit + 2);
  expect(all.length - ended(all)).toBe(open);
  expect(all.at(-1)).toBe('DEVICE_INTERNAL_ERROR');
});

test('a paired key gets a reserved connection, in the end all of them, and strangers get what is freed', { tags: ['slow'] }, async () => {
  const guarded = await GuardedDevice.make();
  guarded.device.limitConnections(4);
  await guarded.attach();
  const PrivateKey = guarded.key();
  const first = await guarded.direct({ PrivateKey });
  await guarded.settle(
    guarded.iam.update((draft) => {
      draft.createUser('owner', { role: 'Administrator', fingerprints: [{ fingerprint: first.getClientFingerprint() }] });
    }),
  );
  const crowd = await strangers(guarded, 6);
  expect(crowd.length - ended(crowd)).toBe(2);
  const second = await guarded.direct({ PrivateKey });
  await guarded.pass(1_000);
  expect(second.closeReason).toBeNull();
  await guarded.settle(first.close());
  await guarded.settle(second.close());
  await guarded.pass(5_000);
  const late = await strangers(guarded, 3);
  expect(late.length - ended(late)).toBe(1);
});

test.each([
  [64, 24],
  [8, 3],
  [3, 2],
  [2, 1],
  [1, 1],
])(
  'of %d connections strangers at one address get %d, and a stranger elsewhere gets one of the rest',
  { tags: ['slow'] },
  async (limit, most) => {
    const guarded = await GuardedDevice.make();
    guarded.device.limitConnections(limit);
    await guarded.attach();
    const crowd = await strangers(guarded, most + 3, guarded.client());
    expect(crowd.length - ended(crowd)).toBe(most);
    expect(crowd.at(-1)).toBe('DEVICE_INTERNAL_ERROR');
    const elsewhere = await strangers(guarded, 1);
    expect(ended(elsewhere)).toBe(limit > most ? 0 : 1);
  },
);

test('a key that is paired meanwhile no longer counts among the strangers at its address, and paired keys are not limited there', {
  tags: ['slow'],
}, async () => {
  const guarded = await GuardedDevice.make();
  guarded.device.limitConnections(8);
  await guarded.attach();
  const home = guarded.client();
  const PrivateKey = guarded.key();
  const first = await guarded.direct({ PrivateKey }, home);
  expect(ended(await strangers(guarded, 3, home))).toBe(1);
  const fingerprints = [{ fingerprint: first.getClientFingerprint() }];
  await guarded.settle(guarded.iam.update((draft) => void draft.createUser('owner', { role: 'Administrator', fingerprints })));
  expect(ended(await strangers(guarded, 2, home))).toBe(1);
  const owners = [await guarded.direct({ PrivateKey }, home), await guarded.direct({ PrivateKey }, home)];
  await guarded.pass(1_000);
  expect(owners.every(({ isConnected }) => isConnected)).toBe(true);
});

test('a connection freed at an address is available there again', async () => {
  const guarded = await GuardedDevice.make();
  guarded.device.limitConnections(4);
  await guarded.attach();
  const client = guarded.client();
  const [first] = await strangers(guarded, 3, client);
  await guarded.settle((first as Connection).close());
  await guarded.pass(5_000);
  const late = await strangers(guarded, 2, client);
  expect([ended(late.slice(0, 1)), late[1]]).toEqual([0, 'DEVICE_INTERNAL_ERROR']);
});
