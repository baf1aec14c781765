/**
 * The path of a connection: the local network before IPv6, IPv4 and the relay, with 10 s between voluntary migrations.
 */
import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import type { HostInterface } from '../../../platform/environment.ts';
import type { SimulatedHost, SimulatedPacket } from '../../../testing/index.ts';
import { HomesFixture, isBetweenHomes } from '../../support/fixture/homes.ts';

const over = (connection: Pick<Connection, 'paths'>): string | undefined => connection.paths().paths.find(({ active }) => active)?.over;

function isIpv6({ source }: SimulatedPacket): boolean {
  return source.address.includes(':');
}

function isLan({ source, destination }: SimulatedPacket): boolean {
  return [source, destination].some(({ address }) => address.startsWith('192.168.9.'));
}

/** The interfaces that the host reports from now on. */
function setAddresses(host: SimulatedHost, addresses: readonly string[]): void {
  const network = host.network as { interfaces: () => readonly HostInterface[] };
  network.interfaces = () => addresses.map((address, i) => ({ name: `sim${i}`, addresses: [address], kind: 'default' }));
}

/** Counts the migrations at both ends; each is reported once. */
function expectMigrations(fixture: HomesFixture, migrations: number): void {
  expect([fixture.clientEvents, fixture.deviceEvents]).toEqual([
    ['open', ...Array(migrations).fill('path')],
    ['OPENED', ...Array(migrations).fill('CHANNEL_CHANGED')],
  ]);
}

describe('a connection prefers', () => {
  test('IPv6 rather than IPv4', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open({ client: 'v6-firewall', device: 'v6-firewall' });
    const connection = await fixture.direct();
    await fixture.sim.run(15_000);
    expect([over(connection), over(fixture.atDevice)]).toEqual(['ipv6', 'ipv6']);
    expectMigrations(fixture, 1);
  });

  test('IPv4 while IPv6 does not work, and IPv6 when it does, 10 s after the first migration', async () => {
    const fixture = await HomesFixture.open({ client: 'v6-firewall', device: 'v6-firewall' });
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && isIpv6(packet) ? 'drop' : undefined);
    const connection = await fixture.direct();
    const migratedAt = fixture.sim.now;
    expect(over(connection)).toBe('ipv4');
    fixture.sim.onPacket = undefined;
    await fixture.sim.run(() => over(connection) === 'ipv6', 15_000);
    expect(fixture.sim.now - migratedAt).toBeGreaterThanOrEqual(10_000);
    await fixture.sim.run(100);
    expectMigrations(fixture, 2);
  });
});

describe("a client that joins the device's network", () => {
  const LAN = ['192.168.9.1/24', '192.168.9.2/24'];

  /** Both without NAT, with a network of their own that the client is not in at first. */
  async function apart(): Promise<{ fixture: HomesFixture; connection: Connection; enter: () => void; leave: () => void }> {
    const fixture = await HomesFixture.open({ client: 'open', device: 'open', lan: LAN });
    const { host } = fixture.clientHome;
    const leave = (): void => {
      setAddresses(host, ['198.51.100.1/32']);
      fixture.sim.onPacket = (packet) => (isLan(packet) ? 'drop' : undefined);
    };
    leave();
    const enter = (): void => {
      setAddresses(host, ['198.51.100.1/32', LAN[0]!]);
      fixture.sim.onPacket = undefined;
    };
    return { fixture, connection: await fixture.direct(), enter, leave };
  }

  test('migrates to it once its addresses have changed', { tags: ['slow'] }, async () => {
    const { fixture, connection, enter } = await apart();
    await fixture.sim.run(20_000);
    expect(over(connection)).toBe('ipv4');
    enter();
    const entered = fixture.sim.now;
    await fixture.sim.run(() => over(connection) === 'lan', 5_000);
    expect(fixture.sim.now - entered).toBeLessThan(4_000);
    await fixture.sim.run(100);
    expect(over(fixture.atDevice)).toBe('lan');
    expectMigrations(fixture, 2);
  });

  test('migrates there 10 s after its last migration, when it joins sooner', async () => {
    const { fixture, connection, enter } = await apart();
    const migratedAt = fixture.sim.now;
    await fixture.sim.run(1_000);
    enter();
    await fixture.sim.run(() => over(connection) === 'lan', 15_000);
    expect(fixture.sim.now - migratedAt).toBeGreaterThanOrEqual(10_000);
    expect(fixture.sim.now - migratedAt).toBeLessThan(11_000);
  });

  test('searches again when it loses its path while it tries another one', async () => {
    const { fixture, connection, enter } = await apart();
    await fixture.sim.run(40_000);
    enter();
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && isLan(packet) && packet.data.length > 1_000 ? 'drop' : undefined);
    // Detected within 3 s, checked, and then tried for 3 s.
    await fixture.sim.run(4_000);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    await fixture.coap(connection, 'GET', '/hello');
    expect(connection.getType()).toBe('RELAY');
    await fixture.sim.run(10_000);
    fixture.sim.onPacket = undefined;
    await fixture.untilType(connection, 'DIRECT', 60_000);
  });

  test('is back on another path within 3 s when it leaves', { tags: ['slow'] }, async () => {
    const { fixture, connection, enter, leave } = await apart();
    await fixture.sim.run(10_000);
    enter();
    await fixture.sim.run(() => over(connection) === 'lan', 5_000);
    await fixture.sim.run(40_000);
    leave();
    const left = fixture.sim.now;
    expect((await fixture.coap(connection, 'GET', '/hello')).text).toBe('hello');
    expect(fixture.sim.now - left).toBeLessThan(3_000);
    await fixture.untilType(connection, 'DIRECT', 5_000);
    expect(over(connection)).toBe('ipv4');
  });
});

describe('the paths of a connection, at both ends', () => {
  test('are reported at each stage', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.relayed();
    const began = fixture.sim.wallTime;
    const seen = (end: Pick<Connection, 'paths'>): unknown => {
      const { paths, whyNotDirect, nextAttempt } = end.paths();
      return [paths.map(({ active, over, address }) => [active, over, address]).sort(), whyNotDirect?.code, nextAttempt];
    };
    const { address } = fixture.stationUnderTest;
    const relay = (active: boolean): unknown[] => [active, 'relay', address];
    expect(seen(connection)).toEqual([[relay(true)], 'IN_PROGRESS', null]);
    await fixture.untilType(connection, 'DIRECT', 1_000);
    await fixture.sim.run(1_000);
    expect(seen(connection)).toEqual([[relay(false), [true, 'ipv4', fixture.deviceHome.outside]], undefined, null]);
    expect(seen(fixture.atDevice)).toEqual([[relay(false), [true, 'ipv4', fixture.clientHome.outside]], undefined, null]);
    for (const end of [connection, fixture.atDevice])
      for (const { since, rtt, active } of end.paths().paths) {
        expect(since).toBeGreaterThanOrEqual(began - 100);
        expect(since).toBeLessThan(began + 1_000);
        if (active) expect(rtt).toBeGreaterThan(10);
      }
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    await fixture.sim.run(60_000);
    expect(seen(connection)).toEqual([[relay(true)], 'NO_ANSWER', expect.any(Number)]);
    expect((seen(fixture.atDevice) as unknown[])[0]).toEqual([relay(true)]);
    await fixture.settle(connection.close());
    await fixture.sim.run(100);
    expect(() => connection.paths()).toThrow(expect.objectContaining({ code: 'STOPPED' }));
    expect(() => fixture.atDevice.paths()).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('have their round-trip time where there was only one', async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.relayed({ Rendezvous: false });
    await fixture.coap(connection, 'GET', '/hello');
    const { paths, whyNotDirect } = connection.paths();
    expect([paths, whyNotDirect?.code]).toEqual([[expect.objectContaining({ active: true, over: 'relay' })], 'DISABLED']);
    expect(paths[0]!.rtt).toBeGreaterThan(10);
  });

  test('lose the results of an attempt a minute after the connection became direct, and keep them while it is relayed', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    const shown = (): boolean[] =>
      [connection, fixture.atDevice].map((end) => end.paths().pairs.length > 0 && end.paths().localNat !== null);
    await fixture.sim.run(50_000);
    expect(shown()).toEqual([true, true]);
    await fixture.sim.run(12_000);
    expect(shown()).toEqual([false, false]);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    await fixture.sim.run(600_000);
    expect([connection.getType(), ...shown()]).toEqual(['RELAY', true, true]);
  });
});
