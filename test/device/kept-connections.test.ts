/** A quarter of a device's connections is kept for paired keys: strangers take all they can, and the owner still gets in. */
import { expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { GuardedDevice } from './iam/guarded-device.ts';
import { key, stateOf, user } from './iam/model.ts';

const ended = (all: readonly Connection[]): number => all.filter(({ closeReason }) => closeReason !== null).length;

async function strangers(guarded: GuardedDevice, count: number): Promise<Connection[]> {
  const all: Connection[] = [];
  for (let index = 0; index < count; index++) all.push(await guarded.direct());
  await guarded.pass(1_000);
  return all;
}

test.each([
  [8, 6],
  [4, 3],
  [3, 3],
])('of %d connections strangers get %d', async (limit, open) => {
  const guarded = await GuardedDevice.make({
    state: stateOf([user('owner', { role: 'Administrator', fingerprints: [{ fingerprint: key(1) }] })]),
  });
  guarded.device.limitConnections(limit);
  await guarded.attach();
  const all = await strangers(guarded, limit + 2);
  expect(all.length - ended(all)).toBe(open);
  expect(all.at(-1)?.closeReason?.code).toBe('DEVICE_INTERNAL_ERROR');
});

test('a paired key gets one of those that are kept, all of them in the end, and strangers what becomes free', async () => {
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
