/**
 * A relayed connection migrates to a direct path, and back when the direct path dies: the events at both ends, and what
 * `paths()` says meanwhile.
 *
 * @module-tag slow
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection, ConnectionOptions } from '../../../client/node.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

let fixture: ProductFixture;
let phone: SimulatedHost;
let home: SimulatedHost;
/** The events of each end, with the connection's type at that time. */
let events: string[];
beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station();
  [phone, home] = [fixture.host('phone'), fixture.host('home')];
  events = [];
});

/** A connection that has just been made through the base station. */
async function relayed(options: ConnectionOptions = {}): Promise<Connection> {
  const { device } = await fixture.attached({ environment: home });
  device.onConnectionEvent(({ type }, event) => events.push(`device ${event} ${type}`));
  const pinned = { DeviceFingerprint: device.deviceFingerprint };
  const connection = fixture.connection({ Local: false, Rendezvous: true, ...pinned, ...options }, fixture.client(phone));
  connection.on('open', () => events.push(`client open ${connection.getType()}`));
  connection.on('path', ({ kind }) => events.push(`client path ${kind}`));
  await fixture.settle(connection.connect());
  return connection;
}

function overs(connection: Connection): string[] {
  return connection.paths().paths.map(({ active, over }) => `${active ? 'active' : 'warm'} ${over}`);
}

describe('a relayed connection becomes direct', () => {
  test('within a second, and both ends see the other path', async () => {
    const connection = await relayed();
    expect([connection.getType(), connection.paths().whyNotDirect?.code]).toEqual(['RELAY', 'IN_PROGRESS']);
    // No measurement has been made, and none is guessed.
    expect(connection.paths().paths.map(({ rtt }) => rtt)).toEqual([null]);
    await fixture.sim.run(1_000);
    expect(connection.getType()).toBe('DIRECT');
    expect(connection.paths().whyNotDirect).toBeNull();
    expect(events.sort()).toEqual(['client open RELAY', 'client path direct', 'device CHANNEL_CHANGED DIRECT', 'device OPENED RELAY']);
    expect(overs(connection).sort()).toEqual(['active ipv6', 'warm relay']);
    for (const { rtt } of connection.paths().paths) expect(rtt).toBeGreaterThanOrEqual(20);
    expect((await fixture.coap(connection, 'GET', '/')).status).toBe(404);
  });

  test('and is relayed again within 3 s when the direct path dies', async () => {
    const connection = await relayed();
    await fixture.sim.run(1_000);
    events = [];
    fixture.sim.link(phone, home, { loss: 1 });
    const before = fixture.sim.now;
    expect((await fixture.coap(connection, 'GET', '/')).status).toBe(404);
    expect(connection.getType()).toBe('RELAY');
    expect(fixture.sim.now - before).toBeLessThan(3_000);
    expect(events.sort()).toEqual(['client path relay', 'device CHANNEL_CHANGED RELAY']);
  });

  test('and keeps the relay as long as it lives', async () => {
    const connection = await relayed();
    // Longer than a client keeps an unused channel to a base station.
    await fixture.sim.run(300_000);
    expect(overs(connection).sort()).toEqual(['active ipv6', 'warm relay']);
    fixture.sim.link(phone, home, { loss: 1 });
    expect((await fixture.coap(connection, 'GET', '/')).status).toBe(404);
    expect(connection.getType()).toBe('RELAY');
  });

  test('but not with Rendezvous: false', async () => {
    const connection = await relayed({ Rendezvous: false });
    await fixture.sim.run(5_000);
    expect([connection.getType(), connection.paths().whyNotDirect?.code, overs(connection)]).toEqual([
      'RELAY',
      'DISABLED',
      ['active relay'],
    ]);
  });
});

test('paths() names the base station, the address it sees, and the addresses its STUN reports', async () => {
  const connection = await relayed();
  await fixture.sim.run(1_000);
  const { station } = connection.paths();
  expect(station).toMatchObject({ port: 4433, observed: { address: expect.any(String) } });
  expect(station?.stun[0]).toMatchObject({ port: 4434, mapped: station?.observed });
});
