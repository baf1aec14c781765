/** A full base station answers that it is, and one address cannot fill it. */
import { describe, expect, test } from 'vitest';
import { ClientPath, CONTENT_FORMAT_CBOR, encodeConnectRequest } from '../../../protocol/control/index.ts';
import type { StationSettings } from '../../../server/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;

test('a stranger that fills the share of its address gets BUSY, while honest users connect from elsewhere, and from there once it leaves', {
  tags: ['slow'],
}, async () => {
  fixture = new ProductFixture();
  station = await fixture.station({ connectionsPerAddress: 3 });
  const stranger = await fixture.raw.client();
  const sessions = [];
  for (let i = 0; i < 6; i++) sessions.push(await stranger.open());
  await fixture.sim.run(1000);
  expect(sessions.map(({ isOpen }) => isOpen)).toEqual([true, true, true, false, false, false]);
  expect(await sessions[3]!.closed).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
  const elsewhere = await fixture.raw.opened();
  // An honest user behind the stranger's address, on the same machine here.
  const behind = await stranger.open();
  await fixture.sim.run(1000);
  expect([elsewhere.channel.isOpen, behind.isOpen]).toEqual([true, false]);
  await fixture.sim.settle(sessions[0]!.close());
  await fixture.sim.run(1000);
  await stranger.open();
  await fixture.sim.run(1000);
  expect([elsewhere.channel.isOpen, stranger.channel.isOpen]).toEqual([true, true]);
});

/** Starts a base station with a registered device that is not attached. Sessions stay without a credential. */
async function begin(settings: Partial<StationSettings>): Promise<void> {
  fixture = new ProductFixture();
  station = await fixture.station({ arrivalTimeout: 600_000, ...settings });
  await station.register(ids, null);
}

const opened = (): Promise<RawPeer> => fixture.raw.opened();

test('an address that uses up its rate of attaches is refused with a time, and others are served meanwhile', async () => {
  await begin({ attachesPerAddress: 0.2 });
  const stranger = await opened();
  const answers = [await stranger.attach(), await stranger.attach(), await stranger.attach()];
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 429]);
  expect(answers[2]!.maxAge).toBe(5);
  await fixture.raw.attached({ ...ids, deviceId: 'de-honest' });
  expect(station.basestation.attached).toBe(1);
  await fixture.sim.run(5_000);
  expect((await stranger.attach()).status).toBe(404);
});

describe('clients that wait for a device', () => {
  /** Waits for the device. @returns the statuses so far */
  function wait(peer: RawPeer): number[] {
    const statuses: number[] = [];
    const payload = encodeConnectRequest({ ...ids, serverKey: 'sk-a', wait: true });
    peer.channel.observe(
      { method: 'POST', path: ClientPath.CONNECT, contentFormat: CONTENT_FORMAT_CBOR, payload, observe: 0 },
      (response) => statuses.push(response.status),
    );
    return statuses;
  }

  test("of one address take a quarter of a device's slots; others wait from elsewhere, and from there once one leaves", async () => {
    await begin({ waitersPerDevice: 8 });
    const [stranger, honest] = [await opened(), await opened()];
    const first = await stranger.open();
    const held = [wait(stranger), wait(stranger)];
    await stranger.open();
    held.push(wait(stranger), wait(stranger));
    const elsewhere = wait(honest);
    await fixture.sim.run(500);
    expect([...held, elsewhere]).toEqual([[201], [201], [503], [503], [201]]);
    await fixture.sim.settle(first.close());
    await fixture.sim.run(500);
    const behind = wait(stranger);
    await fixture.sim.run(500);
    expect(behind).toEqual([201]);
  });
});

test.each([
  ['all', { routes: 3 }],
  ['those of the device', { routesPerChannel: 3 }],
])('when routes use up %s the next client is answered 5.03, and gets one once a session ends', { tags: ['slow'] }, async (_, routes) => {
  fixture = new ProductFixture();
  await fixture.station({ routes });
  await fixture.raw.attached();
  const [greedy, honest] = [await opened(), await opened()];
  const sessions = [await greedy.reach(), await greedy.reach(), await greedy.reach()];
  expect((await honest.connect()).status).toBe(503);
  await fixture.sim.settle(sessions[0]!.close());
  await fixture.sim.settle(greedy.channel.close());
  await fixture.sim.run(1_000);
  expect((await honest.connect()).status).toBe(201);
});
