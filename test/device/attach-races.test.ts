/** Events that happen while a device attaches. */
import { beforeEach, expect, test } from 'vitest';
import { Device } from '../../device/index.ts';
import { hashSecret } from '../../server/storage/secrets.ts';
import { ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

test('a token added while the list is being uploaded is uploaded after the attach', async () => {
  const under = await fixture.device();
  await fixture.start(under);
  await fixture.sim.run(() => station.basestation.attached === 1);
  // The answer takes 10 ms, and so does the list.
  await fixture.sim.run(15);
  expect(under.events).toEqual([]);
  under.device.addServerConnectToken('late');
  await fixture.until(under, 'ATTACHED');
  await fixture.sim.run(5_000);
  expect(under.device.areServerConnectTokensSynchronized()).toBe(true);
  expect(await fixture.settle(station.tokens(SCT, 'late'))).toEqual([SCT, 'late']);
});

test('a device without tokens withdraws those of its previous run', async () => {
  const { fingerprint } = station.basestation;
  const environment = fixture.sim.host('bare');
  const device = new Device({ environment, ...ids, serverUrl: SERVER_URL, serverFingerprint: fingerprint });
  device.setPrivateKey(device.createPrivateKey());
  await station.register(ids, device.deviceFingerprint);
  await fixture.settle(
    station.store.replaceTokens(ids.productId, ids.deviceId, { hashes: [hashSecret('old')], digest: 'of another list' }),
  );
  const events: string[] = [];
  device.onDeviceEvent((event) => events.push(event));
  await fixture.settle(device.start());
  await fixture.sim.run(() => events.includes('ATTACHED'));
  expect(device.areServerConnectTokensSynchronized()).toBe(true);
  expect(await fixture.settle(station.tokens('old'))).toEqual([]);
  await fixture.settle(device.close());
});

test('setBasestationAttach(true) on an attached device starts no watchdog', { tags: ['slow'] }, async () => {
  const under = await fixture.attached();
  under.device.setBasestationAttach(true);
  await fixture.sim.run(60 * 60_000);
  expect(under.events).toEqual(['ATTACHED']);
});

test('a device turned off and on at once attaches again, and its watchdog runs', { tags: ['slow'] }, async () => {
  const under = await fixture.attached();
  under.device.setBasestationAttach(false);
  under.device.setBasestationAttach(true);
  await fixture.until(under, 'ATTACHED', 2);
  await fixture.sim.run(60 * 60_000);
  expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
});
