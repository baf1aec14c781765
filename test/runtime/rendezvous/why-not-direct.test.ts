/** Each code of whyNotDirect occurs in some network, at the client and, as far as it can know, at the device. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import { Status } from '../../../protocol/coap/index.ts';
import { Session } from '../../../runtime/session/index.ts';
import { type Homes, HomesFixture, isBetweenHomes } from '../../support/fixture/homes.ts';

const TOO_LATE = 40_000;

/** The codes at both ends when the first attempt is over. */
async function codes(fixture: HomesFixture, connection: Connection): Promise<(string | undefined)[]> {
  await fixture.sim.run(() => connection.paths().whyNotDirect?.code !== 'IN_PROGRESS', TOO_LATE);
  await fixture.sim.run(100);
  expect(connection.getType()).toBe('RELAY');
  return [connection.paths().whyNotDirect?.code, fixture.atDevice.paths().whyNotDirect?.code];
}

async function codesOf(homes: Homes, prepare: (fixture: HomesFixture) => void = () => {}): Promise<(string | undefined)[]> {
  const fixture = await HomesFixture.open(homes);
  prepare(fixture);
  return codes(fixture, await fixture.relayed({ HardNat: false }));
}

describe('a relayed connection reports', () => {
  test('IN_PROGRESS while it searches, and nothing once it is direct', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.relayed();
    await fixture.sim.run(100);
    expect([connection.paths().whyNotDirect?.code, fixture.atDevice.paths().whyNotDirect?.code]).toEqual(['IN_PROGRESS', 'IN_PROGRESS']);
    await fixture.untilType(connection, 'DIRECT', 1_000);
    await fixture.sim.run(100);
    expect([connection.paths().whyNotDirect, fixture.atDevice.paths().whyNotDirect]).toEqual([null, null]);
  });

  test('DISABLED where the option Rendezvous is false', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const connection = await fixture.relayed({ Rendezvous: false });
    expect([...(await codes(fixture, connection)), connection.paths().nextAttempt]).toEqual(['DISABLED', 'DISABLED', null]);
  });

  test.each(['off', 'paired'] as const)('DISABLED where the device has disabled it: %s', async (rendezvous) => {
    expect(await codesOf({ rendezvous })).toEqual(['DISABLED', 'DISABLED']);
  });

  test('PEER_TOO_OLD where the device does not know the resource, and does not ask again', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const serve = Session.prototype.serve;
    onTestFinished(() => {
      Session.prototype.serve = serve;
    });
    let asked = 0;
    Session.prototype.serve = function (request) {
      if (JSON.stringify(request).includes('rendezvous')) {
        asked++;
        return Promise.resolve({ status: Status.NOT_FOUND });
      }
      return serve.call(this, request);
    };
    const connection = await fixture.relayed();
    expect((await codes(fixture, connection))[0]).toBe('PEER_TOO_OLD');
    expect(connection.paths().nextAttempt).toBeNull();
    await fixture.sim.run(60_000);
    expect(asked).toBe(1);
  });

  test('PEER_TOO_OLD where the device never answers', async () => {
    const fixture = await HomesFixture.open();
    const serve = Session.prototype.serve;
    onTestFinished(() => {
      Session.prototype.serve = serve;
    });
    Session.prototype.serve = function (request) {
      return JSON.stringify(request).includes('rendezvous') ? new Promise(() => {}) : serve.call(this, request);
    };
    const connection = await fixture.relayed();
    expect((await codes(fixture, connection))[0]).toBe('PEER_TOO_OLD');
    expect(connection.paths().nextAttempt).toBeGreaterThan(0);
  });

  test('NO_CANDIDATES where the base station does not report the address of an end, and addresses of interfaces are not offered', async () => {
    const { noteObservedAddress, noteStun } = Session.prototype;
    onTestFinished(() => void Object.assign(Session.prototype, { noteObservedAddress, noteStun }));
    Session.prototype.noteObservedAddress = () => {};
    Session.prototype.noteStun = () => {};
    expect(await codesOf({})).toEqual(['NO_CANDIDATES', 'NO_CANDIDATES']);
  });

  test('UDP_BLOCKED where one end has no NAT', { tags: ['slow'] }, async () => {
    expect(await codesOf({ client: 'open', device: 'blocked' })).toEqual(['UDP_BLOCKED', 'UDP_BLOCKED']);
  });

  test('STUN_SILENT where the STUN port of the base station is closed', { tags: ['slow'] }, async () => {
    const shut = (fixture: HomesFixture): void => {
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) || packet.destination.port === 4434 ? 'drop' : undefined);
    };
    expect(await codesOf({}, shut)).toEqual(['STUN_SILENT', 'STUN_SILENT']);
  });

  test('BOTH_RANDOM', { tags: ['slow'] }, async () => {
    expect(await codesOf({ client: 'random', device: 'random' })).toEqual(['BOTH_RANDOM', 'BOTH_RANDOM']);
  });

  test('NO_ANSWER', { tags: ['slow'] }, async () => {
    expect(await codesOf({ device: 'blocked' })).toEqual(['NO_ANSWER', 'NO_ANSWER']);
  });

  test.each([
    ['device', 0],
    ['client', 1],
  ])('ONE_WAY at the end that receives, when only packets of the %s arrive', { tags: ['slow'] }, async (sender, end) => {
    const oneWay = (fixture: HomesFixture): void => {
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.from !== sender ? 'drop' : undefined);
    };
    expect((await codesOf({}, oneWay))[end]).toBe('ONE_WAY');
  });

  test('LARGE_DROPPED where checks pass and packets of full size do not', async () => {
    const narrow = (fixture: HomesFixture): void => {
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) && packet.data.length > 1_100 ? 'drop' : undefined);
    };
    expect(await codesOf({}, narrow)).toEqual(['LARGE_DROPPED', 'LARGE_DROPPED']);
  });

  test('LIMITED where a device that is not pinned does not answer', async () => {
    const fixture = await HomesFixture.open({ device: 'blocked' });
    const connection = fixture.connection({ Rendezvous: true, Local: false }, fixture.clientProduct);
    await fixture.settle(connection.connect());
    expect((await codes(fixture, connection))[0]).toBe('LIMITED');
  });

  test('LIMITED, and when again, where random ports were tried in this hour', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open({ client: 'random' });
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    const connection = await fixture.relayed();
    const paths = () => connection.paths();
    await fixture.sim.run(() => paths().whyNotDirect?.code === 'NO_ANSWER');
    const tried = fixture.sim.now;
    await fixture.sim.run(() => paths().whyNotDirect?.code === 'LIMITED');
    // That attempt took 15 s for them, and some for what came first.
    const again = fixture.sim.now + paths().nextAttempt! - tried;
    expect(again).toBeGreaterThan(3_600_000 - 25_000);
    expect(again).toBeLessThan(3_600_000);
    await fixture.sim.run(20_000);
    expect(fixture.sim.now + paths().nextAttempt! - tried).toBe(again);
    await fixture.sim.run(paths().nextAttempt! + 30_000);
    expect(paths().whyNotDirect?.code).toBe('NO_ANSWER');
  });

  test('LIMITED where all rounds of the device are in use', async () => {
    const fixture = await HomesFixture.open({ device: 'blocked' });
    await fixture.relayed();
    await fixture.sim.run(1_000);
    expect(await codes(fixture, await fixture.relayed())).toEqual(['LIMITED', 'LIMITED']);
  });
});
