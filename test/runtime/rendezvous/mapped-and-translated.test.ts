/** Addresses that are not this host's own: a port that a router maps for it, and IPv4 behind a NAT64. */
import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { homeOf } from '../../support/nat-kinds.ts';
import { FakeGateway } from '../port-mapping/gateway.ts';

/** ms in which a connection has to become direct. */
const PATIENCE = 10_000;

async function direct(fixture: ProductFixture, connection: Connection): Promise<number> {
  const begun = fixture.sim.now;
  expect(connection.getType()).toBe('RELAY');
  await fixture.sim.run(() => connection.getType() === 'DIRECT', PATIENCE);
  return fixture.sim.now - begun;
}

/** A device and a client on those hosts, connected through the station. */
async function relayed(fixture: ProductFixture, device: SimulatedHost, client: SimulatedHost): Promise<Connection> {
  const under = await fixture.attached({ environment: device });
  // The router has time to answer.
  await fixture.sim.run(2_000);
  const options = { Local: false, Rendezvous: true, HardNat: false, DeviceFingerprint: under.device.deviceFingerprint };
  const connection = fixture.connection(options, fixture.client(client));
  await fixture.settle(connection.connect());
  return connection;
}

describe('a port that the router of the device maps', () => {
  test('leads through a NAT with random ports, from behind another one', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const [outside, inside] = ['45.12.0.7', '192.168.1.1'];
    const box = fixture.sim.nat('router', { outside: [outside], inside: [inside], mapping: 'address-port', ports: 'random' });
    const host = fixture.sim.host('board', { addresses: ['192.168.1.5/24'], behind: box });
    const gateway = new FakeGateway(fixture.sim.host('gateway', { addresses: [`${inside}/24`], behind: box }));
    gateway.external = outside.split('.').map(Number);
    gateway.externalPort = 61_000;
    box.forward(61_000, { address: '192.168.1.5', port: 5593 });
    const connection = await relayed(fixture, host, homeOf(fixture.sim, 'random', 'phone', 2).host);
    expect(await direct(fixture, connection)).toBeLessThan(2_000);
    expect(connection.paths().paths).toContainEqual(expect.objectContaining({ active: true, address: outside, port: 61_000 }));
  });

  test('is not requested where the device disables it', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const box = fixture.sim.nat('router', { outside: ['45.12.0.7'], inside: ['192.168.1.1'] });
    const environment = fixture.sim.host('board', { addresses: ['192.168.1.5/24'], behind: box });
    const gateway = new FakeGateway(fixture.sim.host('gateway', { addresses: ['192.168.1.1/24'], behind: box }));
    const options = [{ rendezvous: 'off' }, { deviceId: 'de-2', rendezvous: { portMapping: 'off' } }] as const;
    for (const option of options) {
      const { device } = await fixture.attached({ environment, ...option });
      await fixture.sim.run(2_000);
      await fixture.settle(device.close());
    }
    expect(gateway.requests).toEqual([]);
  });

  test('is deleted when the device closes', async () => {
    const fixture = await ProductFixture.withStation();
    const box = fixture.sim.nat('router', { outside: ['45.12.0.7'], inside: ['192.168.1.1'] });
    const environment = fixture.sim.host('board', { addresses: ['192.168.1.5/24'], behind: box });
    const gateway = new FakeGateway(fixture.sim.host('gateway', { addresses: ['192.168.1.1/24'], behind: box }));
    const { device } = await fixture.attached({ environment });
    await fixture.sim.run(2_000);
    expect([...gateway.mapped.keys()]).toEqual([5593]);
    await fixture.settle(device.close());
    expect(gateway.mapped.size).toBe(0);
  });
});

describe('a client without IPv4 (Tailscale #11437)', () => {
  test('reaches a device behind an IPv4 NAT through NAT64', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const network = '2001:db8:64::';
    const box = fixture.sim.nat('carrier', { outside: ['198.51.100.64', `${network}/48`], v6: 'firewall', nat64: '64:ff9b::' });
    const phone = fixture.sim.host('phone', { addresses: [`${network}5/64`], behind: box });
    const connection = await relayed(fixture, homeOf(fixture.sim, 'port', 'board', 1).host, phone);
    expect(await direct(fixture, connection)).toBeLessThan(2_000);
    const [active] = connection.paths().paths.filter(({ active }) => active);
    expect(active).toMatchObject({ over: 'ipv6' });
    expect(active?.address).toMatch(/^64:ff9b::/);
  });
});
