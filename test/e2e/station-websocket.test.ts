/**
 * A base station over WebSockets of the simulator: attach, connect, routes between both kinds of channel, and what one
 * WebSocket can cost others.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { decodeAttachAnswer, decodeConnectAnswer } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { openWebSocketSocket, WEBSOCKET_PATH } from '../../runtime/websocket/index.ts';
import { testRouter } from '../runtime/session/support.ts';
import { DEVICE_NAME, ids, STATION_PORT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { RawPeer } from '../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station({ webSocketTimeout: 3_000 });
});

/**
 * A device of `ids` that is attached over either kind of channel.
 * @param pause ms from the opening of the channel to the attach
 */
async function attached(over: 'udp' | 'websocket', pause = 0): Promise<{ device: RawPeer; answer: Uint8Array }> {
  const info = { ProductId: ids.productId, DeviceId: ids.deviceId };
  const device = await fixture.raw.device({ binds: [{ port: 0 }], responder: () => [DEVICE_NAME], info });
  device.host.onSession = (session) => {
    session.router = testRouter(device.environment);
  };
  await station.register(ids, device.host.fingerprint);
  await (over === 'udp' ? device.open(device.acceptsRelayed()) : device.openWebSocket(device.acceptsRelayed()));
  await fixture.sim.run(pause);
  const { status, payload } = await device.attach();
  expect(status).toBe(201);
  return { device, answer: payload };
}

const stats = (name: string): number => station.basestation.stats()[name]!;
const hello = async (session: Session): Promise<number> =>
  (await fixture.sim.settle(session.request({ method: 'GET', path: '/hello' }))).status;

describe('a base station over WebSockets', () => {
  it.each([
    ['websocket', 'udp'],
    ['udp', 'websocket'],
    ['websocket', 'websocket'],
  ] as const)(
    'relays between a device over %s and a client over %s, and names no UDP address where there is none',
    async (deviceOver, clientOver) => {
      const { device, answer } = await attached(deviceOver);
      expect(decodeAttachAnswer(answer)).toMatchObject({
        kind: 'attached',
        observedAddress: deviceOver === 'udp' ? expect.anything() : null,
      });
      const client = await fixture.raw.client();
      await (clientOver === 'udp' ? client.open() : client.openWebSocket());
      const session = await client.reach();
      expect(await hello(session)).toBe(205);
      const connected = decodeConnectAnswer(
        (await client.connect({ initiate: client.host.dials.prepare({ name: DEVICE_NAME }).initiate })).payload,
      );
      expect('observedAddress' in connected && connected.observedAddress !== undefined).toBe(clientOver === 'udp');
      expect((await client.request('GET', '/client/address')).status).toBe(clientOver === 'udp' ? 205 : 404);
      expect((await device.request('GET', '/device/address')).status).toBe(deviceOver === 'udp' ? 205 : 404);
      await fixture.sim.run(10_000);
      expect([stats('webSockets'), stats('webSocketsUnused')]).toEqual([
        [deviceOver, clientOver].filter((over) => over === 'websocket').length,
        0,
      ]);
    },
  );

  it('closes a silent one, one without an authentic packet, and one whose session has ended, each after its time', async () => {
    const client = await fixture.raw.client();
    const open = () =>
      openWebSocketSocket(client.environment, {
        url: `ws://${station.address}:${STATION_PORT}${WEBSOCKET_PATH}`,
        timeout: 5_000,
        receive: () => {},
        closed: () => void ended++,
      });
    let ended = 0;
    await fixture.sim.settle(open());
    const noisy = await fixture.sim.settle(open());
    for (let i = 0; i < 20; i++) {
      const garbage = Uint8Array.from({ length: 100 }, (_, at) => (at === 0 ? [0x80, 0xc0, 0x83, 0x88][i % 4]! : i));
      noisy.send(garbage, 0, 100, noisy.path, () => {});
      await fixture.sim.run(100);
    }
    await client.openWebSocket();
    expect(stats('webSockets')).toBe(3);
    await fixture.sim.run(2_200);
    expect([ended, stats('webSockets'), stats('webSocketsUnused')]).toEqual([2, 1, 2]);
    await fixture.sim.run(2_000);
    expect(stats('webSockets')).toBe(1);
    // The station closes a session without a credential after 5 s.
    await fixture.sim.run(8_000);
    expect([stats('webSockets'), stats('webSocketsUnused'), stats('sessions')]).toEqual([0, 3, 0]);
  });

  it('gives a peer no more than UDP does: sessions of both count for its address, a stranger has as little time, and a route needs a token', {
    tags: ['slow'],
  }, async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ connectionsPerAddress: 2, arrivalTimeout: 5_000 });
    await attached('udp');
    const stranger = await fixture.raw.client();
    const [byUdp, overWebSocket] = [await stranger.open(), await stranger.openWebSocket()];
    expect((await stranger.connect({ sct: 'wrong' })).status).toBe(401);
    const third = await stranger.openWebSocket();
    await fixture.sim.run(500);
    expect([byUdp, overWebSocket, third].map(({ isOpen }) => isOpen)).toEqual([true, true, false]);
    await fixture.sim.run(5_000);
    expect([byUdp, overWebSocket].map(({ isOpen }) => isOpen)).toEqual([false, false]);
    expect(stats('routes')).toBe(0);
  });

  it('gives the slot of the oldest stranger to the next peer when all are taken, never that of an authenticated device or client', {
    tags: ['slow'],
  }, async () => {
    const places = 8;
    fixture = new ProductFixture();
    station = await fixture.station({ webSockets: places, webSocketTimeout: 60_000, arrivalTimeout: 60_000 });
    const { device } = await attached('websocket');
    const url = `ws://${station.address}:${STATION_PORT}${WEBSOCKET_PATH}`;
    const ended: number[] = [];
    const stranger = await fixture.raw.client();
    const open = (name: number) =>
      openWebSocketSocket(stranger.environment, { url, timeout: 5_000, receive: () => {}, closed: () => void ended.push(name) });
    // One of them with a handshake, which any client can do.
    const handshake = await fixture.raw.client();
    await handshake.openWebSocket();
    for (let n = 0; n < places - 2; n++) await fixture.sim.settle(open(n));
    expect(stats('webSockets')).toBe(places);
    // Each has two seconds.
    const client = await fixture.raw.client();
    await expect(client.openWebSocket()).rejects.toMatchObject({ code: 'BAD_RESPONSE', message: expect.stringContaining('503') });
    await fixture.sim.run(4_000);
    for (let n = 0; n < 3; n++) {
      const honest = await fixture.raw.client();
      await honest.openWebSocket();
      expect(await hello(await honest.reach())).toBe(205);
      await fixture.sim.run(3_000);
    }
    expect([ended, handshake.channel.isOpen, device.channel.isOpen]).toEqual([[0, 1], false, true]);
    for (let n = 0; n < 4; n++) await (await fixture.raw.client()).openWebSocket();
    expect([ended.length, device.channel.isOpen, stats('webSockets'), stats('webSocketsUnused')]).toEqual([6, true, places, 7]);
    // The slots of four more belong to peers that have shown a key, or are new.
    await expect((await fixture.raw.client()).openWebSocket()).rejects.toMatchObject({ message: expect.stringContaining('503') });
  });

  it('cuts no peer that has just authenticated, however long that took', async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ webSockets: 2 });
    const { device } = await attached('websocket', 3_100);
    await (await fixture.raw.client()).openWebSocket();
    await expect((await fixture.raw.client()).openWebSocket()).rejects.toMatchObject({ message: expect.stringContaining('503') });
    expect(device.channel.isOpen).toBe(true);
  });

  it('keeps bounded data for one whose peer does not read, and delays no other', { tags: ['slow'] }, async () => {
    const { device } = await attached('udp');
    const [stalled, other] = [await fixture.raw.client(), await fixture.raw.client()];
    for (const client of [stalled, other]) await client.openWebSocket();
    const sessions = [await stalled.reach(), await other.reach()];
    expect(await Promise.all([hello(sessions[1]!)])).toEqual([205]);
    const [pipe] = fixture.sim.pipes(stalled.environment);
    pipe!.stall();
    // Packets for the client that does not read: the device sends them over its route.
    const [toStalled] = [...device.host.sessions].filter(({ paths }) => paths.active.kind === 'route');
    for (let i = 0; i < 400; i++) {
      const packet = new Uint8Array(1_200).fill(0xc0);
      packet[0] = 0x88;
      packet.set(toStalled!.paths.active.route!, 1);
      device.host.datagrams.send(packet, device.channel.paths.active);
      if (i % 50 === 0) await fixture.sim.run(20);
    }
    await fixture.sim.run(100);
    const began = fixture.sim.now;
    for (let i = 0; i < 10; i++) expect(await hello(sessions[1]!)).toBe(205);
    expect(fixture.sim.now - began).toBeLessThan(1_000);
    expect(stats('webSocketBytes')).toBeLessThan(140_000);
    expect(stats('webSocketDropped')).toBeGreaterThan(200);
    pipe!.resume();
    await fixture.sim.run(2_000);
    expect(stats('webSocketBytes')).toBe(0);
  });

  it('reports to a session why its pipe ended, and forgets the WebSocket', async () => {
    const client = await fixture.raw.client();
    const session = await client.openWebSocket();
    const ended = new Promise((resolve) => session.on('closed', resolve));
    fixture.sim.pipes()[0]!.cut();
    await fixture.sim.run(200);
    await expect(ended).resolves.toMatchObject({ code: 'CLOSED' });
    expect([stats('webSockets'), stats('sessions')]).toEqual([0, 0]);
  });
});
