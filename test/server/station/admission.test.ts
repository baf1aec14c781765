/**
 * Which sessions a base station keeps: strangers take every slot that they can, and then a device and a client connect.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { StationSettings } from '../../../server/index.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import type { Session } from '../../../transport/session/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

const CONNECTIONS = 16;
/** Slots that any session may take. */
const OPEN = (CONNECTIONS * 3) / 4;

let fixture: ProductFixture;
let station: StationUnderTest;

async function begin(settings: Partial<StationSettings> = {}): Promise<void> {
  fixture = new ProductFixture();
  station = await fixture.station({ connections: CONNECTIONS, ...settings });
}

beforeEach(() => begin());

const stats = () => station.basestation.stats();

async function opened(): Promise<RawPeer> {
  const peer = await fixture.raw.client();
  await peer.open();
  return peer;
}

async function strangers(count: number): Promise<RawPeer[]> {
  const all: RawPeer[] = [];
  for (let index = 0; index < count; index++) all.push(await opened());
  return all;
}

/** Connects a client with a valid server key; its device is not attached. */
async function client(): Promise<RawPeer> {
  const peer = await opened();
  expect((await peer.connect()).status).toBe(404);
  return peer;
}

const reason = async (peer: RawPeer): Promise<string | undefined> => {
  const { sim } = fixture;
  const error = peer.channel.isOpen ? undefined : await sim.settle(peer.channel.closed);
  return error?.message;
};

describe('a session without a valid credential', () => {
  test.each([
    ['that asks for nothing', async () => {}],
    ['whose connect was refused', async (peer: RawPeer) => expect((await peer.connect({ serverKey: 'sk-wrong' })).status).toBe(404)],
    ['whose attach was refused', async (peer: RawPeer) => expect((await peer.attach()).status).toBe(404)],
    [
      'that asks repeatedly',
      async (peer: RawPeer) => {
        for (let second = 0; second < 4; second++) {
          await peer.connect({ serverKey: 'sk-wrong' });
          await fixture.sim.run(1_000);
        }
      },
    ],
  ])('%s is closed 5 s after its handshake', async (_, ask) => {
    const since = fixture.sim.now;
    const peer = await opened();
    await ask(peer);
    await fixture.sim.run(() => !peer.channel.isOpen);
    expect(fixture.sim.now - since).toBeGreaterThan(4_900);
    expect(fixture.sim.now - since).toBeLessThan(5_500);
    expect(stats()).toMatchObject({ sessions: 0, unproved: 0 });
  });

  test('stays once it shows a valid one', async () => {
    await station.register(ids, 'ab'.repeat(32));
    const peer = await opened();
    await peer.connect({ serverKey: 'sk-wrong' });
    await peer.connect();
    await fixture.sim.run(60_000);
    expect(peer.channel.isOpen).toBe(true);
    expect(stats()).toMatchObject({ sessions: 1, unproved: 0 });
  });
});

describe('strangers that take every slot', () => {
  test('are evicted, the oldest first, for any other session', { tags: ['slow'] }, async () => {
    await station.register(ids, null);
    const crowd = await strangers(3 * CONNECTIONS);
    expect(stats().sessions).toBeLessThanOrEqual(CONNECTIONS);
    const open = crowd.map(({ channel }) => channel.isOpen);
    expect(open.slice(0, CONNECTIONS)).not.toContain(true);
    expect(open.at(-1)).toBe(true);
    const honest = await client();
    expect(honest.channel.isOpen).toBe(true);
    for (const peer of await strangers(2 * CONNECTIONS)) expect(await reason(peer)).not.toBe('refused');
    expect(honest.channel.isOpen).toBe(true);
  });

  test('neither keep a device out nor displace an attached one', { tags: ['slow'] }, async () => {
    await strangers(CONNECTIONS);
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    await device.open();
    expect((await device.attach()).status).toBe(201);
    await strangers(2 * CONNECTIONS);
    expect(device.channel.isOpen).toBe(true);
    expect(station.basestation.attached).toBe(1);
  });
});

/** Registers devices that are not attached: `away-1`, `away-2` and so on. */
async function devicesAway(count: number): Promise<void> {
  for (let number = 1; number <= count; number++) await station.register({ ...ids, deviceId: `away-${number}` }, null);
}

/** Connects `count` clients with a valid server key, each from a different address. Returns the sessions that stay. */
async function clientsOf(deviceId: string, count: number): Promise<RawPeer[]> {
  const peers = await strangers(count);
  for (const peer of peers) await fixture.sim.settle(peer.connecting({ deviceId }).catch(() => null));
  return peers.filter(({ channel }) => channel.isOpen);
}

describe('clients of one device', () => {
  beforeEach(() => devicesAway(6));

  test('take only a share of the free slots: the next one gets BUSY, and clients of other devices connect', async () => {
    const [first] = await clientsOf('away-1', OPEN);
    // 4 of 12: while 8 are free, a fifth for one device is refused.
    expect(stats()).toMatchObject({ sessions: OPEN / 3, unproved: 0 });
    const late = await opened();
    await fixture.sim.settle(late.connecting({ deviceId: 'away-1' }).catch(() => null));
    expect(await reason(late)).toMatch(/no room/);
    const counts: number[] = [];
    for (const deviceId of ['away-2', 'away-3', 'away-4', 'away-5']) counts.push((await clientsOf(deviceId, 4)).length);
    expect(counts).toEqual([3, 2, 1, 1]);
    await fixture.sim.settle(first!.channel.close());
    await fixture.sim.run(1_000);
    expect(await clientsOf('away-6', 2)).toHaveLength(1);
  });

  test('with one key leave slots to those with their own token', { tags: ['slow'] }, async () => {
    await station.store.replaceTokens(ids.productId, 'away-1', { hashes: [hashSecret('own')], digest: 'own' });
    await clientsOf('away-1', OPEN);
    const owner = await opened();
    expect((await owner.connect({ deviceId: 'away-1', sct: 'own' })).status).toBe(404);
    expect(owner.channel.isOpen).toBe(true);
  });

  test('that have a slot may ask repeatedly, also for another device', { tags: ['slow'] }, async () => {
    const [first] = await clientsOf('away-1', OPEN);
    for (const deviceId of ['away-1', 'away-2', 'away-1']) expect((await first!.connect({ deviceId })).status).toBe(404);
    expect(await clientsOf('away-2', 4)).toHaveLength(3);
  });
});

describe('when clients take every open slot', () => {
  beforeEach(async () => {
    await devicesAway(OPEN);
    for (let number = 1; number <= OPEN; number++) expect(await clientsOf(`away-${number}`, 1)).toHaveLength(1);
    expect(stats()).toMatchObject({ sessions: OPEN, unproved: 0 });
  });

  test('a quarter is left to devices', { tags: ['slow'] }, async () => {
    const late = await opened();
    await fixture.sim.run(() => !late.channel.isOpen);
    expect(await reason(late)).toMatch(/no room/);
    for (let index = 0; index < CONNECTIONS - OPEN; index++) {
      const device = await fixture.raw.client();
      const deviceIds = { ...ids, deviceId: `de-${index + 2}` };
      await station.register(deviceIds, device.host.fingerprint);
      await device.open();
      expect((await device.attach(deviceIds)).status).toBe(201);
    }
    expect(stats()).toMatchObject({ sessions: CONNECTIONS, unproved: 0 });
    const more = await opened();
    await fixture.sim.run(() => !more.channel.isOpen);
    expect(station.basestation.attached).toBe(CONNECTIONS - OPEN);
  });

  test('the key of a device that does not attach has 5 s in it, too', { tags: ['slow'] }, async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    await device.open();
    await fixture.sim.run(4_000);
    expect(device.channel.isOpen).toBe(true);
    await fixture.sim.run(2_000);
    expect(device.channel.isOpen).toBe(false);
  });

  test('the key of a device that opens connection after connection has one slot in it until it attaches', { tags: ['slow'] }, async () => {
    const hostile = await fixture.raw.client();
    await station.register(ids, hostile.host.fingerprint);
    const sessions: Session[] = [];
    for (let index = 0; index < CONNECTIONS; index++) sessions.push(await hostile.open());
    await fixture.sim.run(100);
    expect(sessions.map(({ isOpen }) => isOpen)).toEqual([...Array(CONNECTIONS - 1).fill(false), true]);
    for (let index = 0; index < CONNECTIONS - OPEN - 1; index++) {
      const device = await fixture.raw.client();
      const deviceIds = { ...ids, deviceId: `de-${index + 2}` };
      await station.register(deviceIds, device.host.fingerprint);
      await device.open();
      expect((await device.attach(deviceIds)).status).toBe(201);
    }
    // It is full now: the next connection replaces the last one of the same key, and no other device's.
    const last = await hostile.open();
    expect((await hostile.attach()).status).toBe(201);
    expect(last.isOpen).toBe(true);
    expect(station.basestation.attached).toBe(CONNECTIONS - OPEN);
  });

  test('the key of a device that connects as a client takes no slot in it', { tags: ['slow'] }, async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    await device.open();
    await fixture.sim.settle(device.connecting({ deviceId: 'away-1' }).catch(() => null));
    expect(await reason(device)).toMatch(/no room/);
    expect(stats()).toMatchObject({ sessions: OPEN });
  });

  test('freed slots are open to any session again', { tags: ['slow'] }, async () => {
    await fixture.sim.settle(station.basestation.close());
    await begin();
    const peers = await strangers(3);
    for (const { channel } of peers) await fixture.sim.settle(channel.close());
    await fixture.sim.run(1_000);
    expect(stats()).toMatchObject({ sessions: 0, unproved: 0 });
  });
});
