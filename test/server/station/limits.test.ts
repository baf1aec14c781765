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

test('one address takes its share of the places and no more', async () => {
  world = await World.make({ connectionsPerAddress: 3 });
  const greedy = await world.party();
  const sessions = [];
  for (let i = 0; i < 6; i++) sessions.push(await greedy.open());
  await world.sim.run(1000);
  expect(sessions.map(({ isOpen }) => isOpen)).toEqual([true, true, true, false, false, false]);
  const other = await world.party();
  await other.open();
  await world.sim.settle(sessions[0]!.close());
  await world.sim.run(1000);
  await greedy.open();
  await world.sim.run(1000);
  expect([other.channel.isOpen, greedy.channel.isOpen]).toEqual([true, true]);
});
