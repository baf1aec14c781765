/** A full base station says so, and one address cannot fill it. */
import { expect, test } from 'vitest';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;

test('a connection above the limit is told that there is no room, and takes it when there is again', async () => {
  fixture = new ProductFixture();
  // One place of the four is kept for devices.
  station = await fixture.station({ connections: 4 });
  await station.register(ids, null);
  const peers = [];
  for (let i = 0; i < 3; i++) {
    const peer = await fixture.raw.client();
    await peer.open();
    await peer.connect();
    peers.push(peer);
  }
  for (let i = 0; i < 3; i++) {
    const late = await fixture.raw.client();
    const session = await late.open();
    expect(await fixture.sim.settle(session.closed)).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
  }
  expect(station.basestation.stats().sessions).toBe(3);
  await fixture.sim.settle(peers[0]!.channel.close());
  await fixture.sim.run(5000);
  const late = await fixture.raw.client();
  await late.open();
  await fixture.sim.run(1000);
  expect(late.channel.isOpen).toBe(true);
  expect(station.basestation.stats().unproved).toBe(1);
});

test('a stranger fills the share of one address: its other sessions are told BUSY, honest users elsewhere get in, those behind it when it leaves', async () => {
  fixture = new ProductFixture();
  station = await fixture.station({ connectionsPerAddress: 3 });
  const stranger = await fixture.raw.client();
  const sessions = [];
  for (let i = 0; i < 6; i++) sessions.push(await stranger.open());
  await fixture.sim.run(1000);
  expect(sessions.map(({ isOpen }) => isOpen)).toEqual([true, true, true, false, false, false]);
  expect(await sessions[3]!.closed).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
  const elsewhere = await fixture.raw.client();
  await elsewhere.open();
  // The same machine: an honest user behind the stranger's address.
  const behind = await stranger.open();
  await fixture.sim.run(1000);
  expect([elsewhere.channel.isOpen, behind.isOpen]).toEqual([true, false]);
  await fixture.sim.settle(sessions[0]!.close());
  await fixture.sim.run(1000);
  await stranger.open();
  await fixture.sim.run(1000);
  expect([elsewhere.channel.isOpen, stranger.channel.isOpen]).toEqual([true, true]);
});
