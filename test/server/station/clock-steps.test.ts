/** Invitations that were made before the wall clock of a base station was set. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Environment } from '../../../platform/environment.ts';
import { encodeJoinRequest } from '../../../protocol/control/index.ts';
import { LogTally } from '../../../runtime/log-tally.ts';
import { type Administration, invitations, inviteDevice } from '../../../server/administration/index.ts';
import { ClockSteps } from '../../../server/station/clock-steps.ts';
import { JoinApi } from '../../../server/station/join-api.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import type { Simulation } from '../../../testing/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const HOUR = 3_600_000;
const TODAY = Date.parse('2026-11-28T12:00:00Z');

let sim: Simulation;
let store: Store;
/** Wall clock at the start of the simulation. */
let zero: number;
let environment: Environment;
let tally: LogTally;
let administration: Administration;
let steps: ClockSteps;

beforeEach(async () => {
  sim = nativeSimulation();
  zero = 0;
  const host = sim.host('station');
  environment = Object.create(host, { clock: { value: { ...host.clock, now: () => sim.now, wallTime: () => zero + sim.now } } });
  tally = new LogTally(environment.clock, environment.log);
  store = await openSqliteStore(':memory:');
  await store.addOrganization({ organizationId: 'or-a', name: null, created: '' });
  administration = {
    store,
    sealer: () => Promise.reject(new Error('nothing is sealed')),
    wallTime: () => zero + sim.now,
    randomBytes: (length) => environment.crypto.randomBytes(length),
  };
  steps = new ClockSteps({ clock: environment.clock, invitations: store.invitations, tally });
});

afterEach(async () => {
  steps.stop();
  await store.close();
});

const invite = async (): Promise<Uint8Array> => (await inviteDevice(administration, { productId: 'pr-1', maker: 'test' })).token;

async function join(token: Uint8Array): Promise<number> {
  const api = new JoinApi({ environment, store, tally, steps, health: { writeFailed: () => {} } });
  const payload = encodeJoinRequest({ productId: 'pr-1', deviceId: null, token });
  const context = { paths: { active: { address: '192.0.2.1', key: '192.0.2.1:1' } }, peer: { fingerprint: 'ab'.repeat(32) } };
  return (await api.join({ payload, context } as never)).status;
}

test('an invitation made in 1970 is good for its 24 hours of running time after the clock was set', async () => {
  await sim.run(1_000);
  const [first, second] = [await invite(), await invite()];
  await sim.run(HOUR);
  zero = TODAY;
  expect(await join(first)).toBe(201);
  await sim.run(23 * HOUR - 1);
  expect(await join(second)).toBe(201);
  // The first answer may have been lost: until the invitation expires, the request may be repeated.
  expect(await join(first)).toBe(201);
  await sim.run(1);
  expect(await join(first)).toBe(401);
});

test('one made while the clock was ahead does not outlive its 24 hours of running time', async () => {
  zero = TODAY + 30 * HOUR;
  await sim.run(20_000);
  const token = await invite();
  zero = TODAY;
  await sim.run(24 * HOUR - 1);
  expect(await join(token)).toBe(201);
  await sim.run(1);
  expect(await join(token)).toBe(401);
});

test('operators who look at the list after a while find it, with its new times', async () => {
  await invite();
  zero = TODAY;
  await sim.run(10_000);
  await sim.settle(steps.look());
  const [record] = await invitations(administration);
  expect(record).toMatchObject({ created: new Date(TODAY).toISOString(), expires: new Date(TODAY + 24 * HOUR).toISOString() });
});

test('an operator who looks at the list, or invites, as soon as the clock was set takes none away', async () => {
  const token = await invite();
  zero = TODAY;
  expect(await invitations(administration)).toEqual([]);
  await invite();
  expect(await join(token)).toBe(201);
});

test('what is over is removed while the base station runs', async () => {
  await invite();
  expect(await store.invitations.all()).toHaveLength(1);
  await sim.run(24 * HOUR - 1);
  expect(await store.invitations.all()).toHaveLength(1);
  await sim.run(60_000);
  expect(await store.invitations.all()).toEqual([]);
});

test('one of an earlier run keeps its times, and so do all while the clock is only corrected by seconds', async () => {
  await store.addProduct({ productId: 'pr-1', organizationId: 'or-a', name: null, created: '' });
  const earlier = { tokenHash: 'aa', productId: 'pr-1', deviceId: null, maker: 'test', created: '1969-12-31T23:00:00.000Z' };
  await store.invitations.add({ ...earlier, expires: '2026-12-01T00:00:00.000Z' }, 5);
  await invite();
  const before = await store.invitations.all();
  zero = 59_999;
  await steps.look();
  expect(await store.invitations.all()).toEqual(before);
  zero = TODAY;
  await steps.look();
  expect(await store.invitations.find('aa')).toEqual(before.find(({ tokenHash }) => tokenHash === 'aa'));
});

test('a join waits for the correction, and is refused for now while the storage cannot take it', async () => {
  const token = await invite();
  zero = TODAY;
  const { shift } = store.invitations;
  store.invitations.shift = () => Promise.reject(new Error('disk full'));
  expect(await join(token)).toBe(503);
  store.invitations.shift = shift.bind(store.invitations);
  expect(await join(token)).toBe(201);
});
