/**
 * Links that go down, and base stations that restart behind a direct path, in virtual time: pending operations continue
 * (PROTOCOL.md §6).
 *
 * @module-tag slow
 */
import { describe, expect, test } from 'vitest';
import { HomesFixture, Transfer } from '../support/fixture/homes.ts';
import { seeds } from '../support/tiered.ts';

const DOWN = { loss: 1 };
const UP = { delay: 10 };

function link(fixture: HomesFixture, side: 'client' | 'device', state: { loss: number } | { delay: number }): void {
  for (const other of ['station', side === 'client' ? 'device' : 'client']) fixture.sim.link(side, other, state);
}

describe('a transfer survives a link that is down', () => {
  const cells = (['client', 'device'] as const).flatMap((side) =>
    [5_000, 60_000].flatMap((time) => [true, false].map((up) => [side, time, up] as const)),
  );

  async function survives(side: 'client' | 'device', time: number, up: boolean): Promise<void> {
    const fixture = await HomesFixture.open();
    const connection = await fixture.relayed({ Rendezvous: false });
    const transfer = await Transfer.begin(fixture, connection, { bytes: 400_000, pace: 20, up });
    await fixture.sim.run(1_000);
    link(fixture, side, DOWN);
    await fixture.sim.run(time);
    link(fixture, side, UP);
    const since = fixture.sim.now;
    await transfer.end();
    expect(fixture.clientEvents).not.toContain('close');
    expect(transfer.stall(since)).toBeLessThan(5_000);
  }
  const name = 'of the %s, for %d ms, bytes to the device: %s';
  test.each(cells)(name, { tags: ['slow'] }, survives);
});

describe('a direct connection', () => {
  const name = 'does not notice a restart of the base station (%s), and has a relay again';
  test.each(['unplugged', 'shutdown', 'killed'] as const)(name, { tags: ['slow'] }, async (how) => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(1_000);
    const transfer = await Transfer.begin(fixture, connection, { bytes: 2_000_000, pace: 20 });
    const since = fixture.sim.now;
    await fixture.stationUnderTest.restart(how, 4_000);
    await transfer.end();
    expect(transfer.stall(since)).toBeLessThan(200);
    expect(connection.stats()).toMatchObject({ rests: 0 });
    await fixture.runUntil(() => connection.paths().paths.some(({ over }) => over === 'relay'), 120_000);
    await fixture.sim.run(30_000);
    // The relay carries the data: the direct path is cut.
    fixture.sim.onPacket = ({ from, to }) => (from !== 'station' && to !== 'station' ? 'drop' : undefined);
    expect((await fixture.coap(connection, 'GET', '/hello')).status).toBe(205);
    expect(connection.getType()).toBe('RELAY');
  });

  test('on the local network continues over the base station when the network between the ends is gone', async () => {
    const fixture = await HomesFixture.open({ lan: ['192.168.1.2/24', '192.168.1.3/24'] });
    const connection = fixture.looking();
    connection.enableDirectCandidates();
    connection.addDirectCandidate('192.168.1.3', fixture.under.device.localPort);
    connection.endOfDirectCandidates();
    fixture.sim.link('client', 'station', { loss: 1 });
    await fixture.settle(connection.connect());
    expect(connection.getType()).toBe('DIRECT');
    fixture.sim.link('client', 'station', { delay: 10 });
    const transfer = await Transfer.begin(fixture, connection, { bytes: 100_000, pace: 20 });
    await fixture.sim.run(300);
    fixture.sim.link('client', 'device', { loss: 1 });
    await transfer.end(200_000);
    expect(connection.getType()).toBe('RELAY');
    expect(fixture.clientEvents).not.toContain('close');
  });
});

test.each(seeds(1, 18))('outages of all kinds at random: every byte once, in order (seed %i)', { tags: ['slow'] }, async (seed) => {
  let state = seed;
  const below = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
    return (state >> 8) % limit;
  };
  const fixture = await HomesFixture.open({}, { seed, link: { delay: 20, jitter: 10, loss: 0.01 } });
  const connection = await fixture.relayed({ Rendezvous: below(2) > 0 });
  await fixture.sim.run(3_000);
  const up = below(2) > 0;
  const transfer = await Transfer.begin(fixture, connection, { bytes: 600_000, pace: 50, up });
  for (let n = 0; n < 4; n++) {
    // Less than a minute without a path, however the outages follow each other.
    await fixture.sim.run(below(8_000) + 10_000);
    const what = below(5);
    if (what < 2) {
      const side = what === 0 ? 'client' : 'device';
      link(fixture, side, DOWN);
      await fixture.sim.run(below(30_000));
      link(fixture, side, { delay: 20 });
    } else await fixture.stationUnderTest.restart((['shutdown', 'killed', 'unplugged'] as const)[what - 2]!, below(20_000));
  }
  await transfer.end();
  expect(fixture.clientEvents).not.toContain('close');
});
