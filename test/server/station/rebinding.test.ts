/** Routes follow the channel of their end once its new address is validated, and nothing else (PROTOCOL.md §6). */
import { beforeEach, describe, expect, test } from 'vitest';
import { PacketType } from '../../../protocol/packet/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { Random, type SimulatedPacket, type SocketAddress } from '../../../testing/index.ts';
import { STATION_PORT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';
import { openedStream } from '../../support/opened-stream.ts';

const MB = 1 << 20;
const ATTACKER: SocketAddress = { address: '203.0.113.66', port: 666 };
/**
 * Virtual time in which a route follows an end that sends, ms: a few probe timeouts, and a round trip to the station.
 */
const SOON = 3_000;
/** A keep-alive and its first repetitions. */
const KEEP_ALIVE = 30_000;

let fixture: ProductFixture;
let station: StationUnderTest;
let device: RawPeer;
let client: RawPeer;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  device = await fixture.raw.attached();
  client = await fixture.raw.opened();
});

/**
 * Opens a relayed session. The device sends as many bytes as the port number of a stream, and takes those of port 0.
 */
async function relayed(): Promise<Session> {
  const before = device.incoming.length;
  const session = await client.reach();
  await fixture.sim.run(() => device.incoming.length > before);
  device.incoming[before]!.onStream = (incoming) => {
    const stream = incoming.accept();
    if (incoming.port > 0) void stream.write(new Uint8Array(incoming.port)).then(() => stream.close());
    else void stream.readAll(MB).then(() => stream.close());
  };
  return session;
}

async function download(session: Session, size = MB): Promise<number> {
  const stream = await openedStream(session, size);
  const closing = stream.close();
  const { length } = await stream.readAll(size);
  await closing;
  return length;
}

async function upload(session: Session): Promise<void> {
  const stream = await openedStream(session, 0);
  await stream.write(new Uint8Array(MB));
  await stream.close();
  await expect(stream.read()).rejects.toMatchObject({ code: 'END_OF_FILE' });
}

const wentTo = (packets: SimulatedPacket[], { address, port }: SocketAddress) =>
  packets.filter(({ destination }) => destination.address === address && destination.port === port);

/** Collects what leaves the station from now on. */
function fromStation(): SimulatedPacket[] {
  const packets: SimulatedPacket[] = [];
  fixture.sim.onPacket = (packet) => {
    if (packet.from === 'station') packets.push(packet);
    return undefined;
  };
  return packets;
}

/** Returns the time of the work, ms, when the address of the peer changes in the middle of it. */
async function timeWith(peer: RawPeer, what: 'port' | 'address', work: () => Promise<unknown>): Promise<number> {
  const from = fixture.sim.now;
  const done = work();
  fixture.sim.rebind(peer.environment, what, 150);
  await fixture.sim.settle(done);
  return fixture.sim.now - from;
}

describe('when a NAT rebinds an end under a transfer', () => {
  test.each(['port', 'address'] as const)("the sender's route follows within seconds: %s", { tags: ['slow'] }, async (what) => {
    const session = await relayed();
    expect(await timeWith(device, what, () => download(session))).toBeLessThan(1_000 + SOON);
    expect(await timeWith(client, what, () => upload(session))).toBeLessThan(1_000 + SOON);
    expect([session.isOpen, client.channel.isOpen, device.channel.isOpen]).toEqual([true, true, true]);
    expect(station.basestation.stats()).toMatchObject({ routes: 1, attached: 1, failures: 0 });
  });

  test.each(['port', 'address'] as const)(
    "the receiver's route follows as well, without waiting for a keep-alive: %s",
    { tags: ['slow'] },
    async (what) => {
      const session = await relayed();
      expect(await timeWith(client, what, () => download(session))).toBeLessThan(1_000 + SOON);
      expect(await timeWith(device, what, () => upload(session))).toBeLessThan(1_000 + SOON);
      expect(session.isOpen).toBe(true);
      expect(await fixture.sim.settle(download(session))).toBe(MB);
    },
  );

  test('the routes of both ends follow, when both are rebound at once', { tags: ['slow'] }, async () => {
    const session = await relayed();
    const done = download(session);
    await fixture.sim.run(150);
    for (const peer of [device, client]) fixture.sim.rebind(peer.environment, 'address');
    expect(await fixture.sim.settle(done)).toBe(MB);
    expect(session.isOpen).toBe(true);
  });

  test('the routes follow repeatedly, also with an idle session', { tags: ['slow'] }, async () => {
    const session = await relayed();
    for (let i = 0; i < 5; i++) {
      fixture.sim.rebind(device.environment, 'port');
      fixture.sim.rebind(client.environment, 'address');
      await fixture.sim.run(2 * KEEP_ALIVE);
      expect(await fixture.sim.settle(download(session, 1000))).toBe(1000);
    }
    expect(station.basestation.stats()).toMatchObject({ routes: 1, sessions: 2, failures: 0 });
  });
});

test('all sessions over one channel follow it, and the table keeps its size', { tags: ['slow'] }, async () => {
  const sessions = [await relayed(), await relayed(), await relayed()];
  const packets = fromStation();
  await timeWith(device, 'address', () => Promise.all(sessions.map((session) => download(session))));
  const moved = [...new Set(packets.filter(({ to }) => to === device.environment.name).map(({ destination }) => destination.address))];
  expect(moved).toHaveLength(2);
  expect(sessions.map((session) => session.isOpen)).toEqual([true, true, true]);
  expect(station.basestation.stats()).toMatchObject({ routes: 3, unknown: 0, failures: 0 });
  expect(device.host.relayedOver(device.channel)).toBe(3);
});

test('routes follow a voluntary migration of a channel, on both sides of it', { tags: ['slow'] }, async () => {
  const session = await relayed();
  const [, other] = fixture.sim.addressesOf('station');
  const packets = fromStation();
  const done = download(session);
  await fixture.sim.run(100);
  expect(client.channel.paths.migrate(client.host.sockets.bound[0]!.path(other!, STATION_PORT))).toBe(true);
  expect(await fixture.sim.settle(done)).toBe(MB);
  expect(session.paths.active).toMatchObject({ kind: 'route', address: other, port: STATION_PORT });
  const toClient = packets.filter(({ to, data }) => to === client.environment.name && data[0] === PacketType.ROUTE);
  const last = toClient.slice(-100);
  expect(last.every(({ source }) => source.address === other)).toBe(true);
  expect(await timeWith(device, 'port', () => download(session))).toBeLessThan(1_000 + SOON);
});

test('packets for an end go to its previous address until the new one has answered', async () => {
  const session = await relayed();
  const packets = fromStation();
  const before = device.environment.addresses;
  fixture.sim.rebind(device.environment, 'address');
  // The channel sends from its new address. The station's challenge is lost, so there is no answer.
  fixture.sim.onPacket = (packet) => {
    if (packet.from !== 'station') return undefined;
    packets.push(packet);
    return before.includes(packet.destination.address) || packet.to !== device.environment.name ? undefined : 'drop';
  };
  device.channel.ping();
  const request = session.request({ method: 'GET', path: '/x' });
  await fixture.sim.run(1_000);
  const toDevice = packets.filter(({ to }) => to === device.environment.name);
  const away = toDevice.filter(({ destination }) => !before.includes(destination.address));
  expect(away.length).toBeGreaterThan(0);
  expect(away.filter(({ data }) => data[0] === PacketType.ROUTE)).toEqual([]);
  expect(toDevice.filter(({ data }) => data[0] === PacketType.ROUTE).length).toBeGreaterThan(0);
  fixture.sim.onPacket = undefined;
  expect((await fixture.sim.settle(request)).status).toBe(404);
});

describe('an attacker elsewhere migrates no route', () => {
  test('with packets under valid connection ids and route ids', { tags: ['slow'] }, async () => {
    const session = await relayed();
    const random = new Random('forger');
    const seen = new Map<string, Uint8Array>();
    fixture.sim.onPacket = (packet) => {
      if (packet.to === 'station') seen.set(`${packet.from} ${packet.data[0]! & 0xd8}`, packet.data.slice(0, 30));
      return undefined;
    };
    for (const peer of [device, client]) peer.channel.ping();
    await fixture.sim.settle(download(session, 100));
    expect(seen.size).toBe(4);
    const packets = fromStation();
    const { wrongPath } = station.basestation.stats();
    const done = download(session);
    const target = { address: station.address, port: STATION_PORT };
    for (let i = 0; i < 500; i++) {
      for (const head of seen.values()) fixture.sim.inject(ATTACKER, target, Uint8Array.from([...head, ...random.bytes(50)]));
      await fixture.sim.run(1);
    }
    expect(await fixture.sim.settle(done)).toBe(MB);
    expect(wentTo(packets, ATTACKER)).toEqual([]);
    await fixture.sim.run(100);
    expect(station.basestation.stats().wrongPath! - wrongPath!).toBe(1_000);
    expect(station.basestation.stats()).toMatchObject({ routes: 1, failures: 0 });
  });

  test('with copies that overtake the genuine packets, also repeated', { tags: ['slow'] }, async () => {
    const session = await relayed();
    const packets = fromStation();
    const target = { address: station.address, port: STATION_PORT };
    let copied = 0;
    fixture.sim.onPacket = (packet) => {
      if (packet.from === 'station') packets.push(packet);
      if (packet.to !== 'station' || packet.source.address === ATTACKER.address) return undefined;
      copied++;
      for (let i = 0; i < 2; i++) fixture.sim.inject(ATTACKER, target, packet.data);
      return undefined;
    };
    const done = download(session);
    for (let i = 0; i < 50; i++) {
      for (const peer of [device, client]) peer.channel.ping();
      await fixture.sim.run(100);
    }
    expect(await fixture.sim.settle(done)).toBe(MB);
    expect(copied).toBeGreaterThan(500);
    // The channels did follow until the address failed validation; the routes did not.
    const stolen = wentTo(packets, ATTACKER);
    expect(stolen.length).toBeGreaterThan(0);
    expect(stolen.filter(({ data }) => data[0] === PacketType.ROUTE)).toEqual([]);
    expect(station.basestation.stats()).toMatchObject({ routes: 1, failures: 0 });
    expect([session.isOpen, device.channel.isOpen, client.channel.isOpen]).toEqual([true, true, true]);
  });
});
