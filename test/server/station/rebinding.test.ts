/** Routes move with the channel of their end, once that was validated at its new address, and with nothing else (PROTOCOL.md §6). */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PacketType } from '../../../protocol/packet/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import { Random, type SimulatedHost, type SimulatedPacket, type SocketAddress } from '../../../transport/sim/index.ts';
import { type Party, PORT, stationAddress, World } from './world.ts';

const MB = 1 << 20;
const ATTACKER: SocketAddress = { address: '203.0.113.66', port: 666 };
/** ms of virtual time a route takes to follow when its end has something to send: a few probe timeouts, and the way to the station and back. */
const SOON = 3_000;
/** Keep-alive, and its first repetitions. */
const KEEP_ALIVE = 30_000;

let world: World;
let device: Party;
let client: Party;

beforeEach(async () => {
  world = await World.make();
  device = await world.device();
  client = await world.party();
  await client.open();
});
afterEach(() => world.close());

/** A relayed session on which the device sends as many bytes as the port of a stream says, and takes those of port 0. */
async function relayed(): Promise<Session> {
  const before = device.incoming.length;
  const session = await client.reach();
  await world.sim.run(() => device.incoming.length > before);
  device.incoming[before]!.onStream = (incoming) => {
    const stream = incoming.accept();
    if (incoming.port > 0) void stream.write(new Uint8Array(incoming.port)).then(() => stream.close());
    else void stream.readAll(MB).then(() => stream.close());
  };
  return session;
}

async function download(session: Session, size = MB): Promise<number> {
  const stream = await session.openStream(size);
  const closing = stream.close();
  const { length } = await stream.readAll(size);
  await closing;
  return length;
}

async function upload(session: Session): Promise<void> {
  const stream = await session.openStream(0);
  await stream.write(new Uint8Array(MB));
  await stream.close();
  await stream.readSome().catch(() => {});
}

const hostOf = (party: Party) => party.host.environment as SimulatedHost;
const wentTo = (packets: SimulatedPacket[], { address, port }: SocketAddress) =>
  packets.filter(({ destination }) => destination.address === address && destination.port === port);

/** What leaves the station from now on. */
function fromStation(): SimulatedPacket[] {
  const packets: SimulatedPacket[] = [];
  world.sim.onPacket = (packet) => {
    if (packet.from === 'station') packets.push(packet);
    return undefined;
  };
  return packets;
}

/** Time that the work took, ms, when the address of the party changes in the middle of it. */
async function timeWith(party: Party, what: 'port' | 'address', work: () => Promise<unknown>): Promise<number> {
  const from = world.sim.now;
  const done = work();
  world.sim.rebind(hostOf(party), what, 150);
  await world.sim.settle(done);
  return world.sim.now - from;
}

describe('a NAT rebinds an end under a transfer', () => {
  test.each(['port', 'address'] as const)('the one that sends, %s: its route follows within seconds', async (what) => {
    const session = await relayed();
    expect(await timeWith(device, what, () => download(session))).toBeLessThan(1_000 + SOON);
    expect(await timeWith(client, what, () => upload(session))).toBeLessThan(1_000 + SOON);
    expect([session.isOpen, client.channel.isOpen, device.channel.isOpen]).toEqual([true, true, true]);
    expect(world.station.stats()).toMatchObject({ routes: 1, attached: 1, failures: 0 });
  });

  test.each(['port', 'address'] as const)(
    'the one that only receives, %s: its route follows too, without waiting for a keep-alive',
    async (what) => {
      const session = await relayed();
      expect(await timeWith(client, what, () => download(session))).toBeLessThan(1_000 + SOON);
      expect(await timeWith(device, what, () => upload(session))).toBeLessThan(1_000 + SOON);
      expect(session.isOpen).toBe(true);
      expect(await world.sim.settle(download(session))).toBe(MB);
    },
  );

  test('both ends at once', async () => {
    const session = await relayed();
    const done = download(session);
    await world.sim.run(150);
    for (const party of [device, client]) world.sim.rebind(hostOf(party), 'address');
    expect(await world.sim.settle(done)).toBe(MB);
    expect(session.isOpen).toBe(true);
  });

  test('again and again, and an idle session in between', async () => {
    const session = await relayed();
    for (let i = 0; i < 5; i++) {
      world.sim.rebind(hostOf(device), 'port');
      world.sim.rebind(hostOf(client), 'address');
      await world.sim.run(2 * KEEP_ALIVE);
      expect(await world.sim.settle(download(session, 1000))).toBe(1000);
    }
    expect(world.station.stats()).toMatchObject({ routes: 1, sessions: 2, failures: 0 });
  });
});

test('all sessions over one channel move with it, and the table stays as large as it was', async () => {
  const sessions = [await relayed(), await relayed(), await relayed()];
  const packets = fromStation();
  await timeWith(device, 'address', () => Promise.all(sessions.map((session) => download(session))));
  const moved = [...new Set(packets.filter(({ to }) => to === 'party1').map(({ destination }) => destination.address))];
  expect(moved).toHaveLength(2);
  expect(sessions.map((session) => session.isOpen)).toEqual([true, true, true]);
  expect(world.station.stats()).toMatchObject({ routes: 3, unknown: 0, failures: 0 });
  expect(device.host.relayedOver(device.channel)).toBe(3);
});

test('a channel that its end moves on purpose takes its routes along, at both sides of it', async () => {
  const session = await relayed();
  const [, other] = world.sim.addressesOf('station');
  const packets = fromStation();
  const done = download(session);
  await world.sim.run(100);
  expect(client.channel.migrate(client.host.sockets[0]!.path(other!, PORT))).toBe(true);
  expect(await world.sim.settle(done)).toBe(MB);
  expect(session.path).toMatchObject({ kind: 'route', address: other, port: PORT });
  const toClient = packets.filter(({ to, data }) => to === 'party2' && data[0] === PacketType.ROUTE);
  const last = toClient.slice(-100);
  expect(last.every(({ source }) => source.address === other)).toBe(true);
  expect(await timeWith(device, 'port', () => download(session))).toBeLessThan(1_000 + SOON);
});

test('until the new address has answered, what is for the end goes to the one before', async () => {
  const session = await relayed();
  const packets = fromStation();
  const before = hostOf(device).addresses;
  world.sim.rebind(hostOf(device), 'address');
  // The channel comes from its new address; the station's challenge is lost, and the answer with it.
  world.sim.onPacket = (packet) => {
    if (packet.from !== 'station') return undefined;
    packets.push(packet);
    return before.includes(packet.destination.address) || packet.to !== 'party1' ? undefined : 'drop';
  };
  device.channel.ping();
  const request = session.request({ method: 'GET', path: '/x' });
  await world.sim.run(1_000);
  const toDevice = packets.filter(({ to }) => to === 'party1');
  const away = toDevice.filter(({ destination }) => !before.includes(destination.address));
  expect(away.length).toBeGreaterThan(0);
  expect(away.filter(({ data }) => data[0] === PacketType.ROUTE)).toEqual([]);
  expect(toDevice.filter(({ data }) => data[0] === PacketType.ROUTE).length).toBeGreaterThan(0);
  world.sim.onPacket = undefined;
  expect((await world.sim.settle(request)).status).toBe(404);
});

describe('an attacker elsewhere moves no route', () => {
  test('with packets under the right connection ids and route ids', async () => {
    const session = await relayed();
    const random = new Random('forger');
    const seen = new Map<string, Uint8Array>();
    world.sim.onPacket = (packet) => {
      if (packet.to === 'station') seen.set(`${packet.from} ${packet.data[0]! & 0xd8}`, packet.data.slice(0, 30));
      return undefined;
    };
    for (const party of [device, client]) party.channel.ping();
    await world.sim.settle(download(session, 100));
    expect(seen.size).toBe(4);
    const packets = fromStation();
    const { wrongPath } = world.station.stats();
    const done = download(session);
    const station = { address: stationAddress(world), port: PORT };
    for (let i = 0; i < 500; i++) {
      for (const head of seen.values()) world.sim.inject(ATTACKER, station, Uint8Array.from([...head, ...random.bytes(50)]));
      await world.sim.run(1);
    }
    expect(await world.sim.settle(done)).toBe(MB);
    expect(wentTo(packets, ATTACKER)).toEqual([]);
    await world.sim.run(100);
    expect(world.station.stats().wrongPath! - wrongPath!).toBe(1_000);
    expect(world.station.stats()).toMatchObject({ routes: 1, failures: 0 });
  });

  test('with copies of true packets that overtake them, and the same once more', async () => {
    const session = await relayed();
    const packets = fromStation();
    const station = { address: stationAddress(world), port: PORT };
    let copied = 0;
    world.sim.onPacket = (packet) => {
      if (packet.from === 'station') packets.push(packet);
      if (packet.to !== 'station' || packet.source.address === ATTACKER.address) return undefined;
      copied++;
      for (let i = 0; i < 2; i++) world.sim.inject(ATTACKER, station, packet.data);
      return undefined;
    };
    const done = download(session);
    for (let i = 0; i < 50; i++) {
      for (const party of [device, client]) party.channel.ping();
      await world.sim.run(100);
    }
    expect(await world.sim.settle(done)).toBe(MB);
    expect(copied).toBeGreaterThan(500);
    // The channels did follow, for as long as nobody had answered there; the routes did not.
    const stolen = wentTo(packets, ATTACKER);
    expect(stolen.length).toBeGreaterThan(0);
    expect(stolen.filter(({ data }) => data[0] === PacketType.ROUTE)).toEqual([]);
    expect(world.station.stats()).toMatchObject({ routes: 1, failures: 0 });
    expect([session.isOpen, device.channel.isOpen, client.channel.isOpen]).toEqual([true, true, true]);
  });
});
