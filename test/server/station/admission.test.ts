/** Which sessions a base station keeps; `parts.test.ts` tests the slots one by one. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { StationSettings } from '../../../server/index.ts';
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

/** Registers devices that are not attached: `away-1`, `away-2` and so on. */
async function devicesAway(count: number): Promise<void> {
  for (let number = 1; number <= count; number++) await station.register({ ...ids, deviceId: `away-${number}` }, null);
}

const outcomeOf = (connecting: Promise<{ status: number }>): Promise<unknown> =>
  fixture.sim.settle(
    connecting.then(
      ({ status }) => status,
      (error: { code: string }) => error.code,
    ),
  );

/** Connects `count` clients with a valid server key, each from a different address. Returns the sessions that stay. */
async function clientsOf(deviceId: string, count: number): Promise<RawPeer[]> {
  const peers = await strangers(count);
  for (const peer of peers) {
    const outcome = await outcomeOf(peer.connecting({ deviceId }));
    if (peer.channel.isOpen) expect(outcome).toBe(404);
    else expect(await reason(peer)).toMatch(/no room for /);
  }
  return peers.filter(({ channel }) => channel.isOpen);
}

describe('clients of one device', () => {
  beforeEach(() => devicesAway(6));

  test('take only a share of the free slots: the next one gets BUSY, and clients of other devices connect', async () => {
    const [first] = await clientsOf('away-1', OPEN);
    // 4 of 12: while 8 are free, a fifth for one device is refused.
    expect(stats()).toMatchObject({ sessions: OPEN / 3, unproved: 0 });
    const late = await opened();
    expect(await outcomeOf(late.connecting({ deviceId: 'away-1' }))).toBe('DEVICE_INTERNAL_ERROR');
    expect(await reason(late)).toMatch(/no room/);
    const counts: number[] = [];
    for (const deviceId of ['away-2', 'away-3', 'away-4', 'away-5']) counts.push((await clientsOf(deviceId, 4)).length);
    expect(counts).toEqual([3, 2, 1, 1]);
    await fixture.sim.settle(first!.channel.close());
    await fixture.sim.run(1_000);
    expect(await clientsOf('away-6', 2)).toHaveLength(1);
  });
});

test('when clients take every open slot, a quarter is left to devices', { tags: ['slow'] }, async () => {
  await devicesAway(OPEN);
  for (let number = 1; number <= OPEN; number++) expect(await clientsOf(`away-${number}`, 1)).toHaveLength(1);
  expect(stats()).toMatchObject({ sessions: OPEN, unproved: 0 });
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
