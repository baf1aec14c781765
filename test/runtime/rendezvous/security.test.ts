/** What attackers, stations, other registrants and hostile peers can do with direct paths (docs/transport.md §7). */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { nodeCrypto } from '../../../platform/node/crypto.ts';
import { type Candidate, decodeConnectAnswer, type RendezvousOffer } from '../../../protocol/control/index.ts';
import { loadExchange } from '../../../protocol/password/index.ts';
import { CHECK_LENGTH, encodeBinding, encodeCheck, isStun, tagOfCheck } from '../../../protocol/stun/index.ts';
import { Session } from '../../../runtime/session/index.ts';
import { Random, type SimulatedHost, type SimulatedPacket } from '../../../testing/index.ts';
import { HomesFixture, isBetweenHomes, Transfer } from '../../support/fixture/homes.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import { heapUsed } from '../../support/garbage.ts';
import { begin, CREATED, offerOf } from './hostile.ts';

// Virtual time does not wait for a module.
beforeAll(() => loadExchange());

const VICTIM = '203.0.113.99';
/** Concurrent sessions of a hostile client. */
const BATCH = 40;
const random = new Random('security');

const isCheck = ({ data }: Pick<SimulatedPacket, 'data'>): boolean => isStun(data) && tagOfCheck(data) !== null;

/** Every packet that a link carries, or that reaches no host. */
function sentPackets(fixture: ProductFixture): SimulatedPacket[] {
  const packets: SimulatedPacket[] = [];
  fixture.sim.onTrace = (packet, fate) => {
    if (fate === 'passed' || fate === 'unreachable') packets.push(packet);
  };
  return packets;
}

function bytesOf(packets: readonly SimulatedPacket[]): number {
  return packets.reduce((sum, { data }) => sum + data.length, 0);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function offer(overrides: Partial<RendezvousOffer> = {}): Uint8Array {
  return offerOf(random, { candidates: [{ address: VICTIM, port: 4_000, type: 'reflexive' }], ...overrides });
}

/** A client that speaks the protocol by hand, with a session to the device. */
async function hostileClient(fixture: ProductFixture): Promise<{ peer: RawPeer; session: Session }> {
  const peer = await fixture.raw.opened();
  return { peer, session: await peer.reach() };
}

/** Records the tags and keys from a host's random generator. */
function recordKeys(host: SimulatedHost): string[] {
  const given: string[] = [];
  const crypto = host.crypto as { randomBytes: (length: number) => Uint8Array };
  const { randomBytes } = crypto;
  crypto.randomBytes = (length) => {
    const bytes = randomBytes(length);
    if (length === 8 || length === 16) given.push(hex(bytes));
    return bytes;
  };
  return given;
}

/** Bytes that begin as STUN and have a valid length of STUN, but are not STUN. */
function garbage(number: number): Uint8Array {
  return Uint8Array.from({ length: 4 * (number % 51) }, (_, at) => (at === 0 ? number % 4 : number + at));
}

describe('the base station', () => {
  test('receives no candidate, no tag and no key, neither in the clear nor in requests to it', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const given = [fixture.clientHome.host, fixture.deviceHome.host].map(recordKeys);
    const serve = Session.prototype.serve;
    onTestFinished(() => {
      Session.prototype.serve = serve;
    });
    // Requests of the ends to the station, and to each other, which are the rendezvous alone.
    const said: string[] = [];
    const saidEndToEnd: string[] = [];
    Session.prototype.serve = function (request) {
      const text = JSON.stringify(request, (_, value) => (value instanceof Uint8Array ? hex(value) : value));
      (text.includes('rendezvous') ? saidEndToEnd : said).push(text);
      return serve.call(this, request);
    };
    const packets = sentPackets(fixture);
    const connection = await fixture.relayed();
    await fixture.untilType(connection, 'DIRECT', 2_000);
    await fixture.sim.run(1_000);
    const tags = new Set(packets.filter(isCheck).map(({ data }) => tagOfCheck(data)!));
    const keys = given.flatMap((own) => own.filter((_, i) => tags.has(own[i - 1] ?? '')));
    expect([tags.size, keys.length]).toEqual([2, 2]);
    const received = [...packets.filter(({ to }) => to === 'station').map(({ data }) => hex(data)), ...said].join('|');
    const address = [192, 168, 1, 5].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    for (const secret of [...tags, ...keys, address]) expect(received.includes(secret)).toBe(false);
    expect(saidEndToEnd.join('|')).toContain(address);
  });

  test('gets no answer to STUN from a device, nor does an attacker: 1,000 forged checks, Bindings and garbage', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({ device: 'open', client: 'blocked' });
    const packets = sentPackets(fixture);
    const given = recordKeys(fixture.deviceHome.host);
    const connection = await fixture.relayed();
    await fixture.sim.run(700);
    const device = { address: fixture.deviceHome.outside, port: 5_593 };
    // The device draws the key of its round right after the tag.
    const keyAt = given.findLastIndex((bytes) => bytes.length === 32);
    const [tag, key] = [given[keyAt - 1]!, given[keyAt]!].map((each) => Buffer.from(each, 'hex'));
    const stations = { address: fixture.stationUnderTest.address, port: 4_433 };
    const before = packets.length;
    for (let i = 0; i < 1_000; i++) {
      const stranger = i % 2 === 0 ? { address: `203.0.113.${i % 200}`, port: 1_000 + i } : { ...stations, port: 4_433 + (i % 3) };
      const forged = [
        encodeCheck(random.bytes(8), random.bytes(16), random.bytes(12), nodeCrypto),
        encodeCheck(tag!, random.bytes(16), random.bytes(12), nodeCrypto),
        encodeBinding(random.bytes(12)),
        garbage(i >> 2),
      ];
      fixture.sim.inject(stranger, device, forged[i % 4]!);
    }
    await fixture.sim.run(50);
    const isAnswer = ({ from, destination, data }: SimulatedPacket): boolean =>
      from === 'device' && data[0]! < 4 && destination.address !== fixture.clientHome.outside;
    expect(packets.slice(before).filter(isAnswer)).toEqual([]);
    // The tag is the right one: a check with its key is answered.
    fixture.sim.inject({ address: '203.0.113.1', port: 1_000 }, device, encodeCheck(tag!, key!, random.bytes(12), nodeCrypto));
    await fixture.sim.run(50);
    expect(packets.slice(before).filter(isAnswer).length).toBeGreaterThan(0);
    expect((await fixture.coap(connection, 'GET', '/hello')).text).toBe('hello');
  });
});

describe('a check', () => {
  test('and its answer have one size, and only probes pass between the ends before an address has answered its challenge', async () => {
    const fixture = await HomesFixture.open();
    const packets = sentPackets(fixture);
    const connection = await fixture.relayed();
    const transfer = await Transfer.begin(fixture, connection, { bytes: 300_000 });
    let before: SimulatedPacket[] = [];
    connection.on('path', () => (before = packets.filter(isBetweenHomes)));
    await fixture.untilType(connection, 'DIRECT', 5_000);
    const stun = before.filter(({ data }) => isStun(data));
    expect(stun.length).toBeGreaterThan(3);
    expect(new Set(stun.map(({ data }) => data.length))).toEqual(new Set([CHECK_LENGTH]));
    const others = before.filter(({ data }) => !isStun(data));
    expect(others.length).toBeLessThanOrEqual(6);
    expect(Math.max(...others.map(({ data }) => data.length))).toBeLessThanOrEqual(1_200);
    await transfer.end();
  });

  test('that is captured and replayed from 300 other addresses causes no migration, and costs no more than it brought', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({ device: 'open' });
    const packets = sentPackets(fixture);
    const connection = await fixture.relayed();
    const valid: Uint8Array[] = [];
    fixture.sim.onPacket = (packet) => {
      if (packet.from === 'client' && packet.to === 'device' && isCheck(packet)) valid.push(packet.data);
      return isBetweenHomes(packet) ? 'drop' : undefined;
    };
    await fixture.sim.run(() => valid.length > 2, 5_000);
    const device = { address: fixture.deviceHome.outside, port: 5_593 };
    const count = 300;
    for (let i = 0; i < count; i++)
      fixture.sim.inject({ address: `203.0.${i >> 8}.${i & 0xff}`, port: 5_000 }, device, valid[i % valid.length]!);
    await fixture.sim.run(10_000);
    const there = packets.filter(({ from, destination }) => from === 'device' && destination.address.startsWith('203.0.'));
    expect(there.length).toBeGreaterThan(200);
    expect(there.every(({ data }) => data.length === CHECK_LENGTH)).toBe(true);
    // An answer each, and checks to at most 16 of them.
    expect(bytesOf(there)).toBeLessThanOrEqual(CHECK_LENGTH * (count + 16 * 6));
    expect(fixture.atDevice.paths().pairs.length).toBeLessThanOrEqual(64);
    expect([connection.getType(), fixture.clientEvents, fixture.deviceEvents]).toEqual(['RELAY', ['open'], ['OPENED']]);
  });

  test('answered by a forger, from anywhere and from the checked address, validates no pair', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    fixture.sim.onPacket = (packet) => {
      if (!isBetweenHomes(packet)) return undefined;
      if (isCheck(packet)) {
        // The transaction is right, the key is not: type and length of an answer, the rest invented.
        const forged = Uint8Array.from(packet.data);
        forged[0] = 1;
        const home = packet.from === 'client' ? fixture.clientHome : fixture.deviceHome;
        const port = packet.source.port;
        for (const source of [packet.destination, { address: '203.0.113.5', port: 9 }])
          fixture.sim.inject(source, { address: home.outside, port }, forged);
      }
      return 'drop';
    };
    const connection = await fixture.relayed();
    await fixture.sim.run(20_000);
    expect(connection.paths().pairs.filter(({ state }) => state === 'answered')).toEqual([]);
    expect([connection.getType(), fixture.clientEvents]).toEqual(['RELAY', ['open']]);
  });
});

describe('addresses of interfaces', () => {
  const INSIDE = '192.168.1.5';
  const addressesAt = (end: { paths(): { pairs: readonly { address: string }[] } }): string[] =>
    end.paths().pairs.map(({ address }) => address);

  test('are offered to a pinned device, and to no other', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open({ deviceBox: { filter: 'none' } });
    await fixture.direct();
    expect(addressesAt(fixture.atDevice)).toContain(INSIDE);
    const connection = fixture.connection({ Rendezvous: true, Local: false }, fixture.clientProduct);
    await fixture.settle(connection.connect());
    await fixture.sim.run(5_000);
    expect(addressesAt(fixture.atDevice).length).toBeGreaterThan(0);
    expect(addressesAt(fixture.atDevice)).not.toContain(INSIDE);
  });

  test('are offered to a client with a password session, and to no other', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    fixture.under.device.onPasswordAuthenticationRequest((request) => request.setPassword('secret'));
    const stranger = await fixture.direct();
    expect(addressesAt(stranger).length).toBeGreaterThan(0);
    expect(addressesAt(stranger)).not.toContain(INSIDE);
    fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
    const user = await fixture.relayed();
    await fixture.settle(user.passwordAuthenticate('', 'secret'));
    await fixture.sim.run(20_000);
    expect(addressesAt(user)).toContain(INSIDE);
  });
});

describe('a device that belongs to another registrant', () => {
  test('learns nothing about a client that has pinned the right one', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const { device: impostor } = await fixture.attached();
    const events: string[] = [];
    impostor.onConnectionEvent((_, event) => events.push(event));
    const asked: string[] = [];
    const serve = Session.prototype.serve;
    onTestFinished(() => {
      Session.prototype.serve = serve;
    });
    Session.prototype.serve = function (request) {
      asked.push(JSON.stringify(request));
      return serve.call(this, request);
    };
    const connection = fixture.connection({ Rendezvous: true, DeviceFingerprint: 'ab'.repeat(32) });
    expect(await fixture.code(connection.connect())).toBe('FINGERPRINT_MISMATCH');
    await fixture.sim.run(5_000);
    expect(asked.filter((request) => request.includes('rendezvous'))).toEqual([]);
    expect(events).toEqual([]);
  });
});

describe('a hostile client', () => {
  test('with malformed, endless and repeated rounds is refused, counted, and still served', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const { session } = await hostileClient(fixture);
    const candidate: Candidate = { address: VICTIM, port: 4_000, type: 'reflexive' };
    const many = Array.from({ length: 10_000 }, () => candidate);
    const bad: Uint8Array[] = [
      new Uint8Array(),
      new Uint8Array(60_000).fill(0x9f),
      random.bytes(500),
      offer({ candidates: many.slice(0, 9) }),
      offer({ candidates: many }),
      offer({ tag: random.bytes(7) }),
      offer({ key: random.bytes(17) }),
    ];
    for (const payload of bad) expect(await fixture.settle(begin(session, payload))).toBe(400);
    expect(await fixture.settle(begin(session, offer({ round: 5 })))).toBe(CREATED);
    for (const round of [5, 4, 0]) expect(await fixture.settle(begin(session, offer({ round })))).toBe(400);
    const once = { method: 'POST', path: '/p2p/rendezvous', contentFormat: 60, payload: offer({ round: 6 }) } as const;
    expect((await fixture.settle(session.request(once))).status).toBe(400);
    for (const payload of [new Uint8Array(), random.bytes(100)])
      expect((await fixture.settle(session.request({ ...once, method: 'PUT', payload }))).status).toBe(400);
    expect((await fixture.settle(session.request({ method: 'GET', path: '/hello' }))).status).toBe(205);
  });

  test('that begins round after round takes no memory that grows with them', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open();
    const { session } = await hostileClient(fixture);
    const candidates = Array.from({ length: 8 }, (_, i): Candidate => ({ address: `203.0.113.${i + 1}`, port: 4_000, type: 'reflexive' }));
    const rounds = async (from: number, count: number): Promise<number> => {
      for (let round = from; round < from + count; round++) {
        const controller = new AbortController();
        const { signal } = controller;
        const request = {
          method: 'POST',
          path: '/p2p/rendezvous',
          contentFormat: 60,
          payload: offer({ round, candidates }),
          signal,
        } as const;
        const status = new Promise((resolve) => session.observe(request, (response) => resolve(response.status), resolve));
        expect(await fixture.settle(status)).toBe(CREATED);
        await fixture.sim.run(30);
        controller.abort();
      }
      await fixture.sim.run(60_000);
      return heapUsed();
    };
    const before = await rounds(1, 600);
    const after = await rounds(601, 400);
    // 400 of them; a round holds several KiB while it lives.
    expect(after - before).toBeLessThan(400_000);
  });

  test('causes no packet of a device to unassigned, multicast or its own addresses', async () => {
    const fixture = await HomesFixture.open({ device: 'open' });
    const { session } = await hostileClient(fixture);
    const addresses = [
      '127.0.0.1',
      '0.0.0.0',
      '255.255.255.255',
      '224.0.0.251',
      '169.254.169.254',
      'fe80::1',
      'ff02::fb',
      fixture.deviceHome.outside,
    ];
    const packets = sentPackets(fixture);
    const candidates = addresses.map((address): Candidate => ({ address, port: 5_593, type: 'reflexive' }));
    expect(await fixture.settle(begin(session, offer({ candidates })))).toBe(CREATED);
    await fixture.sim.run(10_000);
    expect(packets.filter((packet) => packet.from === 'device' && isCheck(packet))).toEqual([]);
  });

  async function directsAtVictim(count: number): Promise<void> {
    const fixture = new ProductFixture({ link: { delay: 5 } });
    await fixture.station({ connections: 3 * count });
    for (let i = 0; i < count; i++) {
      const host = fixture.sim.host(`board ${i}`, { addresses: [`45.${i >> 8}.${i & 0xff}.1/32`] });
      await fixture.attached({ environment: host, deviceId: `de-${i}`, rendezvous: { portMapping: 'off' } });
    }
    const peer = await fixture.raw.client();
    const packets = sentPackets(fixture);
    await peer.open();
    const candidates = Array.from({ length: 8 }, (_, i): Candidate => ({ address: VICTIM, port: 4_000 + i, type: 'reflexive' }));
    for (let first = 0; first < count; first += BATCH) {
      const sessions: Session[] = [];
      for (let i = first; i < Math.min(first + BATCH, count); i++) sessions.push(await reach(fixture, peer, `de-${i}`));
      for (let round = 1; round <= 3; round++) {
        for (const session of sessions) await fixture.settle(begin(session, offer({ round, candidates })));
        await fixture.sim.run(3_000);
      }
      for (const session of sessions) void session.close();
    }
    const received = bytesOf(packets.filter(({ destination }) => destination.address === VICTIM));
    const sent = bytesOf(packets.filter(({ from }) => from === peer.environment.name));
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(sent);
  }
  test('that directs all devices of a product at one victim makes it receive less than it sends itself', { tags: ['slow'] }, () =>
    directsAtVictim(12),
  );
  test('that directs 100 devices at one victim makes it receive less as well', { tags: ['slow'] }, () => directsAtVictim(100));
});

/** A session with one of many devices, through the station. */
async function reach(fixture: ProductFixture, peer: RawPeer, deviceId: string): Promise<Session> {
  const prepared = peer.host.dials.prepare({ name: `device:${ids.productId}.${deviceId}` });
  const answer = decodeConnectAnswer((await peer.connect({ deviceId, initiate: prepared.initiate })).payload);
  if (answer.kind !== 'connected' || answer.respond === undefined) throw new Error('not connected');
  const path = peer.host.routes.path(peer.channel, answer.route, { resetToken: answer.routeResetToken });
  return fixture.settle(prepared.establish(answer.respond, path));
}
