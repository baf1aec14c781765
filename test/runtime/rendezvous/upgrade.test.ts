/**
 * Relayed connections that become direct, stay so and return to it: reported problems of other systems, one test each.
 */
import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import { HomesFixture, isBetweenHomes } from '../../support/fixture/homes.ts';

const MINUTE = 60_000;

/** `*` marks the path in use. */
function pathsOf(connection: Pick<Connection, 'paths'>): string[] {
  return connection.paths().paths.map(({ active, over }) => `${active ? '*' : ''}${over}`);
}

/** ms until the connection answers a request. */
async function answersAfter(fixture: HomesFixture, connection: Connection): Promise<number> {
  const began = fixture.sim.now;
  expect((await fixture.coap(connection, 'GET', '/hello')).text).toBe('hello');
  return fixture.sim.now - began;
}

describe('a connection does not stay relayed', () => {
  test('where the first attempt fails because UDP is blocked for a minute, the schedule finds the direct path (Tailscale #12548)', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open();
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    const connection = await fixture.relayed();
    await fixture.sim.run(MINUTE);
    // The end of a pause is random: an attempt may be in progress.
    await fixture.sim.run(() => connection.paths().nextAttempt !== null);
    expect([connection.getType(), connection.paths().whyNotDirect?.code, fixture.clientEvents]).toEqual(['RELAY', 'NO_ANSWER', ['open']]);
    const next = connection.paths().nextAttempt!;
    expect(next).toBeGreaterThan(0);
    fixture.sim.onPacket = undefined;
    await fixture.untilType(connection, 'DIRECT', next + 1_000);
    expect(connection.paths().whyNotDirect).toBeNull();
  });

  test('where the device does not answer the first offer, it is asked again', async () => {
    const fixture = await HomesFixture.open();
    const connection = fixture.looking();
    let isDown = false;
    connection.on('open', () => (isDown = true));
    fixture.sim.onPacket = ({ from, to }) => (isDown && (from === 'device' || to === 'device') ? 'drop' : undefined);
    const unblock = fixture.sim.block('device', 'tcp');
    await fixture.settle(connection.connect());
    await fixture.sim.run(5_500);
    expect(connection.paths().whyNotDirect?.code).toBe('PEER_TOO_OLD');
    fixture.sim.onPacket = undefined;
    unblock();
    await fixture.untilType(connection, 'DIRECT', 15_000);
  });
});

describe('a direct path that is lost', () => {
  test.each([
    ['forgets its flows: continues, direct, within 3 s', {}, 'DIRECT', ['*ipv4', 'relay']],
    ['assigns other ports: relayed within 3 s, direct again', { ports: 'random' }, 'RELAY', ['*relay']],
  ] as const)("when the client's NAT box %s (Tailscale #3624)", async (_, clientBox, type, paths) => {
    const fixture = await HomesFixture.open({ clientBox });
    const connection = await fixture.direct();
    await fixture.sim.run(MINUTE);
    fixture.clientBox.forget();
    expect(await answersAfter(fixture, connection)).toBeLessThan(3_000);
    expect([connection.getType(), pathsOf(connection).sort()]).toEqual([type, paths]);
    await fixture.untilType(connection, 'DIRECT', 10_000);
    await fixture.sim.run(1_000);
    expect(fixture.clientEvents.length).toBe(fixture.deviceEvents.length);
    expect([pathsOf(connection).sort(), pathsOf(fixture.atDevice).includes('*ipv4')]).toEqual([['*ipv4', 'relay'], true]);
  });

  test("when the device's NAT box forgets its flows: both paths are back with the device's next keep-alive, and each end reports each migration once", {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(3_000);
    fixture.deviceBox.forget();
    expect(await answersAfter(fixture, connection)).toBeLessThan(30_000);
    await fixture.sim.run(MINUTE);
    expect([connection.getType(), pathsOf(fixture.atDevice).sort()]).toEqual(['DIRECT', ['*ipv4', 'relay']]);
    expect(fixture.deviceEvents.slice(1)).toEqual(fixture.clientEvents.slice(1).map(() => 'CHANNEL_CHANGED'));
  });

  test('which alone stops working: relayed within 3 s, and direct again once it is back', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(MINUTE);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    expect(await answersAfter(fixture, connection)).toBeLessThan(3_000);
    await fixture.sim.run(500);
    expect([pathsOf(connection), pathsOf(fixture.atDevice)]).toEqual([['*relay'], ['*relay']]);
    await fixture.sim.run(20_000);
    fixture.sim.onPacket = undefined;
    await fixture.untilType(connection, 'DIRECT', 30_000);
    await fixture.sim.run(100);
    expect([fixture.clientEvents, fixture.deviceEvents]).toEqual([
      ['open', 'path', 'path', 'path'],
      ['OPENED', 'CHANNEL_CHANGED', 'CHANNEL_CHANGED', 'CHANNEL_CHANGED'],
    ]);
  });

  test("when the device's NAT box, which assigns random ports, has forgotten the channel: no other class is reported, and the device meets a random one at the client", {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({ client: 'random', deviceBox: { ports: 'random' } });
    fixture.deviceBox.forget();
    await fixture.sim.run(2 * MINUTE);
    const connection = await fixture.relayed();
    await fixture.untilType(connection, 'DIRECT', 15_000);
    expect(connection.paths().remoteNat).toMatchObject({ mapping: 'independent' });
  });

  test('has the relay as fallback for as long as it lives', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.direct();
    await fixture.sim.run(10 * MINUTE);
    expect(pathsOf(connection).sort()).toEqual(['*ipv4', 'relay']);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    expect(await answersAfter(fixture, connection)).toBeLessThan(3_000);
  });
});
