/** What happens to a device while it attaches. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Device } from '../../device/index.ts';
import { hashSecret } from '../../server/storage/secrets.ts';
import { ids, SCT, Scene, SERVER_URL } from '../client/scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.make();
});
afterEach(() => scene.close());

test('a token added while the list is on its way is uploaded after the attach', async () => {
  const under = await scene.device();
  await scene.start(under);
  await scene.world.sim.run(() => scene.world.station.attached === 1);
  // The answer takes 10 ms, and so does the list.
  await scene.world.sim.run(15);
  expect(under.events).toEqual([]);
  under.device.addServerConnectToken('late');
  await scene.until(under, 'ATTACHED');
  await scene.world.sim.run(5_000);
  expect(under.device.areServerConnectTokensSynchronized()).toBe(true);
  const stored = await scene.settle(scene.world.store.tokens(ids.productId, ids.deviceId));
  expect(stored.toSorted()).toEqual([hashSecret(SCT), hashSecret('late')].toSorted());
});

test('a device without tokens withdraws those of its earlier life', async () => {
  const { fingerprint } = scene.world.station;
  const environment = scene.world.sim.host('bare');
  const device = new Device({ environment, ...ids, serverUrl: SERVER_URL, serverFingerprint: fingerprint });
  device.setPrivateKey(device.createPrivateKey());
  await scene.world.register(ids, device.deviceFingerprint);
  await scene.settle(scene.world.store.replaceTokens(ids.productId, ids.deviceId, [hashSecret('old')]));
  const events: string[] = [];
  device.onDeviceEvent((event) => events.push(event));
  await scene.settle(device.start());
  await scene.world.sim.run(() => events.includes('ATTACHED'));
  expect(device.areServerConnectTokensSynchronized()).toBe(true);
  expect(await scene.settle(scene.world.store.tokens(ids.productId, ids.deviceId))).toEqual([]);
  await scene.settle(device.close());
});

test('asking an attached device to attach wakes no watchdog', async () => {
  const under = await scene.attached();
  under.device.setBasestationAttach(true);
  await scene.world.sim.run(60 * 60_000);
  expect(under.events).toEqual(['ATTACHED']);
});

test('turned off and on in one breath it attaches again, and the watchdog watches', async () => {
  const under = await scene.attached();
  under.device.setBasestationAttach(false);
  under.device.setBasestationAttach(true);
  await scene.until(under, 'ATTACHED', 2);
  await scene.world.sim.run(60 * 60_000);
  expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
});
