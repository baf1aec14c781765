/** A device that is removed from the base station, or gets another key, loses channel and routes within a second. */
import { beforeEach, expect, test, vi } from 'vitest';
import { Presence } from '../../../server/station/presence.ts';
import { Revocation } from '../../../server/station/revocation.ts';
import type { Store } from '../../../server/storage/store.ts';
import { ids, SCT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

const { productId, deviceId } = ids;
/**
 * Last column: the error of the client's connection. CLOSED follows only after a minute, since the device may attach
 * again.
 */
const changes: [string, RegExp, () => Promise<unknown>, string][] = [
  ['removed', /removed from the base station/, () => station.store.removeDevice(productId, deviceId), 'UNKNOWN_DEVICE_ID'],
  ['given another key', /another key/, () => station.store.setFingerprint(productId, deviceId, 'ab'.repeat(32)), 'CLOSED'],
  ['left without a key', /another key/, () => station.store.setFingerprint(productId, deviceId, null), 'CLOSED'],
  ['removed with its product', /removed/, () => station.store.removeProduct(productId), 'UNKNOWN_PRODUCT_ID'],
  ['removed with its organization', /removed/, () => station.store.removeOrganization('or-a'), 'UNKNOWN_PRODUCT_ID'],
];

test.each(changes)('channel and routes of a device end with the reason: %s', { tags: ['slow'] }, async (_, reason, change, code) => {
  const under = await fixture.attached();
  const connection = await fixture.connected();
  await fixture.settle(change());
  await fixture.sim.run(1_000);
  expect(station.basestation.stats()).toMatchObject({ attached: 0, routes: 0 });
  expect(under.events.slice(0, 2)).toEqual(['ATTACHED', 'DETACHED']);
  expect(under.reasons[1]).toMatchObject({ code: 'FORBIDDEN', message: expect.stringMatching(reason) });
  expect(connection.isConnected).toBe(code === 'CLOSED');
  await fixture.sim.run(60_000);
  expect(connection.closeReason?.code).toBe(code);
});

test('a device that is added again attaches without a restart', { tags: ['slow'] }, async () => {
  const under = await fixture.attached();
  await fixture.settle(station.store.removeDevice(productId, deviceId));
  await fixture.until(under, 'UNKNOWN_FINGERPRINT');
  await station.register(ids, under.device.deviceFingerprint);
  await fixture.until(under, 'ATTACHED', 2, 60_000);
  await fixture.sim.run(5_000);
  expect(await fixture.settle(station.tokens(SCT))).toEqual([SCT]);
});

test('other devices stay, and changes without a key end nothing', async () => {
  const under = await fixture.attached();
  const other = await fixture.device({ deviceId: 'de-2' });
  await fixture.start(other);
  await fixture.until(other, 'ATTACHED');
  await fixture.settle(station.store.removeDevice(productId, 'de-2'));
  await fixture.until(other, 'DETACHED');
  await fixture.sim.run(5_000);
  expect(under.events).toEqual(['ATTACHED']);
});

test('a device that is removed while it attaches does not stay', { tags: ['slow'] }, async () => {
  const under = await fixture.device();
  await fixture.start(under);
  await fixture.sim.run(() => station.basestation.attached === 1);
  await fixture.settle(station.store.removeDevice(productId, deviceId));
  await fixture.sim.run(1_000);
  expect(station.basestation.attached).toBe(0);
});

test('a device that attached during its removal is checked again after the storage could not be read', async () => {
  const { clock, log } = fixture.sim.host('observer');
  const presence = new Presence();
  const device = vi.fn<Store['device']>().mockResolvedValue(null);
  // The removal was counted, and the attached devices checked, just before this one attached.
  const revocation = new Revocation({ clock, log, presence, store: { device, devicesRevision: async () => 1 } });
  presence.add({ ...ids, deviceId: 'de-other', session: (await fixture.raw.attached()).channel, since: 0 });
  await fixture.sim.run(500);
  const { channel } = await fixture.raw.attached({ ...ids, deviceId: 'de-late' });
  revocation.attached({ ...ids, deviceId: 'de-late', session: channel, since: 0 });
  device.mockRejectedValueOnce(new Error('disk I/O error'));
  await fixture.sim.run(500);
  expect(channel.isOpen).toBe(true);
  await fixture.sim.run(500);
  expect(channel.isOpen).toBe(false);
  revocation.stop();
});
