/**
 * Keep-alive of a device and of a client behind NAT boxes whose mappings expire, with a real station: how often packets
 * are sent, and whether a mapping is ever lost.
 */
import { describe, expect, test } from 'vitest';
import type { KeepAliveProfile } from '../../../protocol/keep-alive/index.ts';
import type { KeepAliveReport } from '../../../runtime/keep-alive/index.ts';
import type { SimulationOptions } from '../../../testing/index.ts';
import { type Homes, HomesFixture } from '../../support/fixture/homes.ts';
import { STATION_PORT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

/** Every search is over within this time. */
const LEARNING = 600_000;
/** The same for the one probe that the default profile needs where mappings live for a minute. */
const ONE_PROBE = 100_000;

/** ms between packets of an end to the station's main port, over a span of ms. */
async function pauses(fixture: HomesFixture, from: 'device' | 'client', time: number): Promise<number[]> {
  const times: number[] = [];
  fixture.sim.onPacket = (packet) => {
    const isThere = packet.to === 'station' && packet.destination.port === STATION_PORT;
    if (packet.from === from && isThere) times.push(fixture.sim.now);
    return undefined;
  };
  await fixture.sim.run(time);
  return times.slice(1).map((at, i) => at - times[i]!);
}

const longest = async (...given: Parameters<typeof pauses>): Promise<number> => Math.max(...(await pauses(...given)));

function behind(
  streamTimeout: number,
  profile: KeepAliveProfile,
  more: Homes = {},
  simulation: SimulationOptions = {},
): Promise<HomesFixture> {
  const timeout = Math.min(30_000, streamTimeout);
  const homes: Homes = { deviceBox: { streamTimeout, timeout }, clientBox: { streamTimeout, timeout }, ...more };
  return HomesFixture.open({ ...homes, options: { keepAliveProfile: profile, ...more.options } }, simulation);
}

/** The device's keep-alive report for its connection to a client. */
async function atDevice(fixture: HomesFixture): Promise<KeepAliveReport> {
  const connection = await fixture.relayed({ Rendezvous: false });
  await fixture.sim.run(() => fixture.deviceEvents.includes('OPENED'));
  fixture.deviceEvents.length = 0;
  const { keepAlive } = fixture.atDevice.paths();
  await fixture.settle(connection.close());
  return keepAlive;
}

describe('a device settles at 80 to 95 % of the timeout of its NAT', () => {
  async function settles(timeout: number): Promise<void> {
    const fixture = await behind(timeout, 'eco');
    expect(await longest(fixture, 'device', LEARNING)).toBeLessThanOrEqual(Math.max(25_500, 0.95 * timeout));
    const { mappings } = fixture.deviceBox.stats;
    const pause = await longest(fixture, 'device', 250_000);
    expect(pause / timeout).toBeGreaterThanOrEqual(0.8);
    expect(pause / timeout).toBeLessThanOrEqual(0.96);
    expect(fixture.deviceBox.stats.mappings).toBe(mappings);
  }
  test.each([20_000, 60_000, 120_000])('of %d ms, with eco, and its mapping is never lost', { tags: ['slow'] }, settles);
});

test('until it is known, and where the station does not help, 25 s', { tags: ['slow'] }, async () => {
  const fixture = await behind(120_000, 'eco', { station: { stunPort: 0 } });
  expect(await longest(fixture, 'device', LEARNING)).toBeLessThan(25_500);
  expect(await atDevice(fixture)).toEqual({ state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: 25_000 });
});

test('numbers set by an operator are an upper bound', { tags: ['slow'] }, async () => {
  for (const [interval, expected] of [
    [25_000, 25_000],
    [500_000, 55_000],
  ] as const) {
    const fixture = await behind(120_000, 'balanced', { station: { keepAlive: { interval, retryInterval: 2_000, maxRetries: 15 } } });
    await fixture.sim.run(ONE_PROBE);
    const pause = await longest(fixture, 'device', 120_000);
    expect(pause).toBeGreaterThan(expected - 100);
    expect(pause).toBeLessThan(expected + 500);
  }
});

describe('a client', () => {
  test('keeps its channel and its relayed connection alive at the learned interval, and reports it', { tags: ['slow'] }, async () => {
    const fixture = await behind(60_000, 'balanced');
    const connection = await fixture.relayed({ Rendezvous: false, KeepAliveProfile: 'eco' });
    expect(connection.paths().keepAlive).toMatchObject({ state: 'learning', timeout: null, interval: 25_000 });
    await fixture.sim.run(LEARNING);
    const { keepAlive } = connection.paths();
    expect(keepAlive).toMatchObject({ state: 'learned', isAtLeast: false, losses: 0 });
    expect(keepAlive.interval! / 60_000).toBeGreaterThanOrEqual(0.8);
    expect(keepAlive.interval! / 60_000).toBeLessThanOrEqual(0.95);
    const { mappings } = fixture.clientBox.stats;
    expect(await longest(fixture, 'client', 250_000)).toBeLessThanOrEqual(57_000);
    expect(fixture.clientBox.stats.mappings).toBe(mappings);
    expect(connection.isConnected).toBe(true);
  });

  test('in another network discards what it learned, also where its channel does not follow', { tags: ['slow'] }, async () => {
    const fixture = await behind(60_000, 'balanced');
    const connection = await fixture.relayed({ Rendezvous: false, KeepAliveProfile: 'eco' });
    await fixture.sim.run(LEARNING);
    expect(connection.paths().keepAlive.state).toBe('learned');
    fixture.sim.onPacket = ({ to }) => (to === 'station' ? 'drop' : undefined);
    fixture.sim.move(fixture.clientHome.host, { addresses: ['203.0.113.200/24'], behind: null });
    await fixture.sim.run(2_000);
    expect(connection.paths().keepAlive).toMatchObject({ state: 'learning', timeout: null, interval: 25_000 });
  });

  test('sends on a connection no later than its numbers say, also when they change', async () => {
    const fixture = await behind(600_000, 'balanced');
    const eco = await fixture.relayed({ Rendezvous: false, KeepAliveProfile: 'eco' });
    let [sent, since, longest] = [0, fixture.sim.now, 0];
    while (fixture.sim.now < LEARNING) {
      await fixture.sim.run(500);
      const { packetsSent } = eco.stats() as { packetsSent: number };
      if (packetsSent === sent) continue;
      longest = Math.max(longest, fixture.sim.now - since);
      [sent, since] = [packetsSent, fixture.sim.now];
    }
    expect(longest).toBeGreaterThan(100_000);
    expect(longest).toBeLessThanOrEqual(115_000);
  });

  test('with connections of several profiles keeps the channel at the shortest interval', { tags: ['slow'] }, async () => {
    const fixture = await behind(600_000, 'balanced');
    const eco = await fixture.relayed({ Rendezvous: false, KeepAliveProfile: 'eco' });
    const live = await fixture.relayed({ Rendezvous: false, KeepAliveProfile: 'live' });
    expect(live.paths().keepAlive.interval).toBe(10_000);
    await fixture.settle(live.close());
    await fixture.sim.run(LEARNING);
    expect(eco.paths().keepAlive.interval).toBe(114_000);
  });

  test('keeps a configured interval for the connection', { tags: ['slow'] }, async () => {
    const fixture = await behind(600_000, 'balanced');
    await fixture.relayed({ Rendezvous: false, KeepAliveInterval: 4_000 });
    await fixture.sim.run(ONE_PROBE);
    expect(await longest(fixture, 'client', 100_000)).toBeLessThan(4_500);
  });
});

describe('a new flow is a lasting one, for a NAT that keeps a single exchange for only 30 s', () => {
  /** Mappings that the box creates for the device over a span of ms. */
  async function made(fixture: HomesFixture, time: number): Promise<number> {
    const before = fixture.deviceBox.stats.mappings;
    await fixture.sim.run(time);
    return fixture.deviceBox.stats.mappings - before;
  }

  test('of a device that attaches again', { tags: ['slow'] }, async () => {
    const fixture = await behind(120_000, 'eco');
    await fixture.sim.run(LEARNING);
    await fixture.stationUnderTest.restart('shutdown');
    await fixture.until(fixture.under, 'ATTACHED', 2);
    expect(await made(fixture, 600_000)).toBe(0);
    expect(await atDevice(fixture)).toMatchObject({ state: 'learned', losses: 0 });
  });

  test('of a router that restarted and assigns the same port, within 5 minutes', { tags: ['slow'] }, async () => {
    const fixture = await behind(120_000, 'eco');
    await fixture.sim.run(LEARNING);
    fixture.deviceBox.forget();
    expect(await made(fixture, 310_000)).toBeGreaterThan(1);
    expect(await made(fixture, 600_000)).toBe(0);
  });
});

describe('a mapping in use that is lost', () => {
  test('by a sleep of the host does not count as an early timeout of the NAT', { tags: ['slow'] }, async () => {
    const fixture = await behind(60_000, 'balanced', { deviceBox: { streamTimeout: 60_000, ports: 'random' } });
    const { host } = fixture.deviceHome;
    await fixture.sim.run(ONE_PROBE);
    host.sleep(100_000);
    await fixture.sim.run(100_000);
    await fixture.sim.run(60_000);
    expect(await atDevice(fixture)).toMatchObject({ state: 'learned', losses: 0, interval: 55_000 });
  });

  test('with another address outside means another network: all measurements are discarded', { tags: ['slow'] }, async () => {
    const fixture = await behind(120_000, 'eco', { device: 'open' });
    await fixture.sim.run(LEARNING);
    expect(await atDevice(fixture)).toMatchObject({ state: 'learned', losses: 0, interval: 114_000 });
    fixture.sim.rebind(fixture.deviceHome.host, 'address');
    await fixture.sim.run(130_000);
    const { state, losses, interval } = await atDevice(fixture);
    expect([state, losses]).toEqual(['learning', 0]);
    expect(interval).toBeLessThan(60_000);
  });
});

describe('a measurement leaves no socket and no timer', () => {
  async function leavesNothing(after: number): Promise<void> {
    const fixture = await behind(60_000, 'eco');
    await fixture.sim.run(after);
    await fixture.settle(fixture.under.device.close());
    await fixture.settle(fixture.stationUnderTest.basestation.close());
    await fixture.sim.run(120_000);
    expect(await fixture.sim.run(() => false).catch(() => 'still busy')).toBe(false);
  }
  const times = Array.from({ length: 20 }, (_, i) => 20_000 + i * 17_000);
  test.each(times)('when the device closes after %d ms', { tags: ['slow'] }, leavesNothing);
});

test('a host in the network of the station measures nothing', async () => {
  const fixture = new ProductFixture();
  fixture.host('station', { machine: 'station', addresses: ['10.9.0.1/16'] }).stop();
  const station = await fixture.station();
  const { host } = await fixture.attached({ environment: fixture.host('device', { addresses: ['10.9.0.7/16'] }), keepAliveProfile: 'eco' });
  expect(host).toBeDefined();
  await fixture.sim.run(100_000);
  expect(station.basestation.stats().stun).toBe(0);
});
