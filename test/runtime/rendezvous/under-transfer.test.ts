/**
 * Transfers while a connection tries direct paths, uses one and loses it: an attempt never makes a transfer worse.
 *
 * @module-tag slow
 */
import { describe, expect, test } from 'vitest';
import { percentile } from '../../../bench/report.ts';
import type { HostInterface } from '../../../platform/environment.ts';
import { HomesFixture, isBetweenHomes, Transfer } from '../../support/fixture/homes.ts';
import { seeds } from '../../support/tiered.ts';

const MINUTE = 60_000;

/** The host has one interface more or less than before: every search for paths begins again. */
function changeNetwork(fixture: HomesFixture, round: number): void {
  const network = fixture.clientHome.host.network as { interfaces: () => readonly HostInterface[] };
  const home: HostInterface = { name: 'sim0', addresses: ['192.168.1.5/24'], kind: 'default' };
  network.interfaces = () => (round % 2 === 0 ? [home, { name: 'sim1', addresses: ['10.77.0.1/24'], kind: 'virtual' }] : [home]);
}

describe('a failed upgrade does not disturb the relayed connection (js-libp2p #3015)', () => {
  const EACH = 9_000;
  const RATE = 40_000;

  async function run(
    Rendezvous: boolean,
    attempts: number,
    seed: number,
  ): Promise<{ took: number; fixture: HomesFixture; offers: number; stalls: number }> {
    const fixture = await HomesFixture.open({}, { seed, link: { delay: 10 } });
    // Without jitter all runs without attempts are the same: one sample to compare with. With jitter seeds differ.
    fixture.sim.link('client', 'station', { delay: 10, jitter: 5, rate: RATE, queue: 5_000 }, { delay: 10, jitter: 5 });
    let attempt = 0;
    let offers = 0;
    // In turn: nothing passes; checks pass, and nothing of full size.
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && (attempt % 2 === 0 || packet.data.length > 1_000) ? 'drop' : undefined);
    const connection = await fixture.relayed({ Rendezvous });
    fixture.under.device.onConnectionEvent(() => {});
    const began = fixture.sim.now;
    const transfer = await Transfer.begin(fixture, connection, { bytes: Math.floor((attempts * EACH * RATE * 0.9) / 8_000) });
    for (; attempt < attempts; attempt++) {
      await fixture.sim.run(EACH);
      if (connection.paths().pairs.length > 0) offers++;
      changeNetwork(fixture, attempt);
    }
    const took = (await transfer.end()) - began;
    expect(connection.getType()).toBe('RELAY');
    return { took, fixture, offers, stalls: transfer.stall(began) };
  }

  async function compared(attempts: number, numbers: readonly number[]): Promise<void> {
    const stalls = { without: [] as number[], tried: [] as number[] };
    for (const seed of numbers) {
      const [without, tried] = [await run(false, attempts, seed), await run(true, attempts, seed)];
      expect(tried.offers).toBeGreaterThanOrEqual(attempts - 1);
      expect(tried.took / without.took).toBeLessThan(1.03);
      expect([tried.fixture.clientEvents, tried.fixture.deviceEvents]).toEqual([['open'], ['OPENED']]);
      stalls.without.push(without.stalls);
      stalls.tried.push(tried.stalls);
    }
    // The longest pause of a transfer is one of congestion control, of two lengths with and without: compare medians,
    // and the longest of all.
    expect(percentile(stalls.tried, 50)).toBeLessThan(1.2 * percentile(stalls.without, 50));
    expect(Math.max(...stalls.tried)).toBeLessThan(1.2 * Math.max(...stalls.without));
  }
  const name = 'of them leave a transfer untouched: no byte is lost, it takes as long as without, and no event is emitted';
  test(`14 ${name}`, { tags: ['slow'] }, () => compared(14, seeds(1, 1)));
  test(`30 ${name}`, { tags: ['slow'] }, () => compared(30, seeds(2, 3)));
});

describe('a direct path that stops working during a transfer', () => {
  async function stallsBriefly(up: boolean, numbers: readonly number[]): Promise<void> {
    const stalls: number[] = [];
    for (const seed of numbers) {
      const fixture = await HomesFixture.open({}, { seed, link: { delay: 10 + (seed % 4) * 5, jitter: 4 } });
      const connection = await fixture.direct();
      await fixture.sim.run(1_000 + 137 * seed);
      const transfer = await Transfer.begin(fixture, connection, { bytes: 800_000, pace: 10, up });
      await fixture.sim.run(1_000 + 13 * seed);
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
      const cut = fixture.sim.now;
      await fixture.untilType(connection, 'RELAY', 3_000);
      await fixture.sim.run(1_000);
      expect(transfer.isDone).toBe(false);
      stalls.push(transfer.stall(cut));
      await transfer.end();
    }
    stalls.sort((a, b) => a - b);
    expect(stalls[Math.ceil(stalls.length * 0.95) - 1]).toBeLessThanOrEqual(1_000);
  }
  const name = 'stalls it for at most a second, and is left within 3 s (upwards: %s)';
  test.each([true, false])(name, { tags: ['slow'] }, (up) => stallsBriefly(up, seeds(1, 2)));
  test.each([true, false])(`${name}, with further seeds`, { tags: ['slow'] }, (up) => stallsBriefly(up, seeds(3, 14)));

  test.each(['client', 'device'])('in one direction only, packets of the %s, is left as well', { tags: ['slow'] }, async (sender) => {
    for (const up of [true, false]) {
      const fixture = await HomesFixture.open();
      const connection = await fixture.direct();
      const transfer = await Transfer.begin(fixture, connection, { bytes: 400_000, pace: 10, up });
      await fixture.sim.run(500);
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.from === sender ? 'drop' : undefined);
      const cut = fixture.sim.now;
      await fixture.untilType(connection, 'RELAY', 3_000);
      await fixture.sim.run(1_000);
      expect(transfer.stall(cut)).toBeLessThan(2_000);
      await transfer.end();
    }
  });

  test('by dropping packets above 1,300 bytes from some moment on stays, with smaller packets', { tags: ['slow'] }, async () => {
    for (const up of [true, false]) {
      const fixture = await HomesFixture.open();
      const connection = await fixture.direct();
      const transfer = await Transfer.begin(fixture, connection, { bytes: 1_500_000, pace: 5, up });
      let largest = 0;
      fixture.sim.onPacket = (packet) => {
        if (isBetweenHomes(packet)) largest = Math.max(largest, packet.data.length);
        return undefined;
      };
      await fixture.sim.run(2_000);
      expect(largest).toBeGreaterThan(1_300);
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.data.length > 1_300 ? 'drop' : undefined);
      const cut = fixture.sim.now;
      await transfer.end();
      expect([connection.getType(), fixture.clientEvents]).toEqual(['DIRECT', ['open', 'path']]);
      expect(transfer.stall(cut)).toBeLessThan(2_000);
    }
  });

  test('by dropping packets above 1,300 bytes from the beginning is found, and used', async () => {
    const fixture = await HomesFixture.open();
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.data.length > 1_300 ? 'drop' : undefined);
    const connection = await fixture.direct();
    await (await Transfer.begin(fixture, connection, { bytes: 200_000 })).end();
    expect(connection.getType()).toBe('DIRECT');
  });
});

describe('an idle direct path', () => {
  const KEEP_ALIVE = 25_000;
  /** ms from the last use to the silence: before, at and after the keep-alive, and that of the relay. */
  const phases = Array.from({ length: 28 }, (_, i) => 14_000 + 1_000 * i);
  async function survives(phase: number): Promise<void> {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(31_000);
    await fixture.coap(connection, 'GET', '/hello');
    await fixture.sim.run(phase);
    fixture.sim.onPacket = ({ from, to }) => (from === 'client' || to === 'client' ? 'drop' : undefined);
    await fixture.sim.run(8_000);
    fixture.sim.onPacket = undefined;
    await fixture.sim.run(MINUTE);
    expect([connection.isConnected, connection.getType()]).toEqual([true, 'DIRECT']);
    const began = fixture.sim.now;
    await fixture.coap(connection, 'GET', '/hello');
    expect(fixture.sim.now - began).toBeLessThan(100);
  }
  const name = 'survives 8 s of silence at the client in both directions, %d ms after it was used';
  test.each(phases)(name, { tags: ['slow'] }, survives);

  test('is not left for one lost keep-alive', { tags: ['slow'] }, async () => {
    for (const victim of ['client', 'device']) {
      const fixture = await HomesFixture.open();
      const connection = await fixture.direct();
      await fixture.sim.run(5_000);
      let lost = 0;
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.from === victim && lost++ === 0 ? 'drop' : undefined);
      await fixture.sim.run(MINUTE);
      expect(lost).toBeGreaterThan(1);
      expect([connection.getType(), fixture.clientEvents]).toEqual(['DIRECT', ['open', 'path']]);
    }
  });

  test('that stops working is left at the next keep-alive', async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(5_000);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    await fixture.untilType(connection, 'RELAY', KEEP_ALIVE + 3_000);
  });
});
