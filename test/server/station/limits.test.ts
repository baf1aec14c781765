/** A full base station says so, and one address cannot fill it. */
import { afterEach, expect, test } from 'vitest';
import { World } from './world.ts';

let world: World;
afterEach(() => world.close());

test('a connection above the limit is told that there is no room, and takes it when there is again', async () => {
  world = await World.make({ connections: 4 });
  const parties = [];
  for (let i = 0; i < 4; i++) {
    const party = await world.party();
    await party.open();
    parties.push(party);
  }
  for (let i = 0; i < 3; i++) {
    const late = await world.party();
    const session = await late.open();
    expect(await world.sim.settle(session.closed)).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
  }
  expect(world.station.stats().sessions).toBe(4);
  await world.sim.settle(parties[0]!.channel.close());
  await world.sim.run(5000);
  const late = await world.party();
  await late.open();
  await world.sim.run(1000);
  expect(late.channel.isOpen).toBe(true);
});

test('a stranger fills the share of one address: its other sessions are told BUSY, honest users elsewhere get in, those behind it when it leaves', async () => {
  world = await World.make({ connectionsPerAddress: 3 });
  const stranger = await world.party();
  const sessions = [];
  for (let i = 0; i < 6; i++) sessions.push(await stranger.open());
  await world.sim.run(1000);
  expect(sessions.map(({ isOpen }) => isOpen)).toEqual([true, true, true, false, false, false]);
  expect(await sessions[3]!.closed).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
  const elsewhere = await world.party();
  await elsewhere.open();
  // The same machine: an honest user behind the stranger's address.
  const behind = await stranger.open();
  await world.sim.run(1000);
  expect([elsewhere.channel.isOpen, behind.isOpen]).toEqual([true, false]);
  await world.sim.settle(sessions[0]!.close());
  await world.sim.run(1000);
  await stranger.open();
  await world.sim.run(1000);
  expect([elsewhere.channel.isOpen, stranger.channel.isOpen]).toEqual([true, true]);
});
