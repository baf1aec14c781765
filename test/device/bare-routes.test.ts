/**
 * Bare routes at a device, through a real base station: what strangers and previous peers can do with them
 * (docs/transport.md §7).
 *
 * @module-tag slow
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { Router } from '../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, decodeP2pConnectRequest, encodeP2pConnectAnswer, StationPath } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { SimulatedPacket } from '../../testing/index.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { RawPeer } from '../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

const SCT_ONLY = { sct: SCT };

let fixture: ProductFixture;
let station: StationUnderTest;
let under: DeviceUnderTest;
let stranger: RawPeer;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

/** A product as the device, a connection to it, and another client of the same device. */
async function connected(): Promise<Connection> {
  under = await fixture.attached();
  under.device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
  const connection = await fixture.connected();
  await fixture.sim.run(1_000);
  stranger = await fixture.raw.opened();
  return connection;
}

/** The id under which the client of a connection sends; an attacker on the path sees it. */
async function idOnTheWire(connection: Connection): Promise<Uint8Array> {
  let seen: Uint8Array | undefined;
  fixture.sim.onPacket = ({ to, data }: SimulatedPacket) => {
    // A Data packet in a Route packet, as the device gets it.
    if (to === under.host && data[0] === 0x88 && (data[9]! & 0xdf) === 0xc0) seen = data.slice(10, 18);
    return undefined;
  };
  await fixture.coap(connection, 'GET', '/hello');
  fixture.sim.onPacket = undefined;
  return seen!;
}

describe('a client that asks', () => {
  test.each([
    ['for an unknown id', () => new Uint8Array(8).fill(7)],
    ['for all zeros', () => new Uint8Array(8)],
  ])('%s gets 4.04, and leaves no route', { tags: ['slow'] }, async (_, id) => {
    await connected();
    const routes = station.basestation.stats().routes;
    expect((await stranger.connect({ ...SCT_ONLY, id: id() })).status).toBe(404);
    expect(station.basestation.stats().routes).toBe(routes);
  });

  test.each([
    ['an Id of seven bytes', { id: new Uint8Array(7) }],
    ['Id and Initiate', { id: new Uint8Array(8), initiate: new Uint8Array(100) }],
  ])('with %s gets 4.00', { tags: ['slow'] }, async (_, request) => {
    await connected();
    expect((await stranger.connect({ ...SCT_ONLY, ...request })).status).toBe(400);
  });

  test('for the id of another client gets a useless route: it receives nothing, what it sends is dropped, and the connection continues', {
    tags: ['slow'],
  }, async () => {
    const connection = await connected();
    const id = await idOnTheWire(connection);
    const received: number[] = [];
    fixture.sim.onPacket = ({ to, data }: SimulatedPacket) => {
      if (to === stranger.environment.name && data[0] === 0x88) received.push(data.length);
      return undefined;
    };
    for (let n = 0; n < 16; n++) {
      expect((await stranger.connect({ ...SCT_ONLY, id })).status).toBe(201);
      await fixture.sim.run(1_000);
    }
    await fixture.sim.run(40_000);
    expect(received).toEqual([]);
    expect((await fixture.coap(connection, 'GET', '/hello')).status).toBe(205);
    expect(connection.stats()).toMatchObject({ rests: 0 });
    // The connection keeps its route; the stranger’s routes were given back.
    expect(station.basestation.stats().routes).toBe(1);
  });

  test('for the id of another client at rest does not prevent its return', { tags: ['slow'] }, async () => {
    const connection = await connected();
    const id = await idOnTheWire(connection);
    await station.restart('killed', 1_000);
    const again = await fixture.raw.client();
    let asked = 0;
    for (let n = 0; n < 20 && connection.stats().rests === 0; n++) await fixture.sim.run(1_000);
    await again.open();
    for (let n = 0; n < 10; n++) {
      const { status } = await again.connect({ ...SCT_ONLY, id });
      if (status === 201) asked++;
      await fixture.sim.run(400);
    }
    await fixture.sim.run(5_000);
    expect((await fixture.coap(connection, 'GET', '/hello')).status).toBe(205);
    expect(asked).toBeGreaterThan(0);
  });

  test('without a token of the device is refused as for any connect', async () => {
    const connection = await connected();
    const id = await idOnTheWire(connection);
    expect((await stranger.connect({ sct: 'wrong', id })).status).toBe(401);
  });
});

test('a base station that leads the route to another device: that device knows no such connection and learns nothing, and the connection ends', {
  tags: ['slow'],
}, async () => {
  const connection = await connected();
  await fixture.settle(station.basestation.close());
  station.kill();
  await fixture.settle(under.device.close());
  const other = await fixture.device({ registered: false });
  const opened: unknown[] = [];
  other.device.onConnectionEvent((_, event) => opened.push(event));
  await fixture.settle(station.store.setFingerprint(ids.productId, ids.deviceId, other.device.deviceFingerprint));
  const toOther: number[] = [];
  fixture.sim.onPacket = ({ to, data }: SimulatedPacket) => {
    if (to === other.host && data[0] === 0x88) toOther.push(data.length);
    return undefined;
  };
  await fixture.start(other);
  await station.start();
  await fixture.sim.run(() => !connection.isConnected);
  expect(connection.closeReason).toMatchObject({ code: 'CLOSED', message: 'the device has lost the state of the connection' });
  expect([opened, toOther]).toEqual([[], []]);
});

test('a base station that leads the route to another device and reports success: the device learns nothing, no path migrates, and the minute continues', {
  tags: ['slow'],
}, async () => {
  const connection = await connected();
  await fixture.settle(station.basestation.close());
  station.kill();
  await fixture.settle(under.device.close());
  const other = await fixture.raw.device({ binds: [{ port: 0 }] });
  await fixture.settle(station.store.setFingerprint(ids.productId, ids.deviceId, other.host.fingerprint));
  await station.start();
  let asked = 0;
  const router = new Router<Session>().on('POST', StationPath.P2P_CONNECT, ({ payload, context }) => {
    const { route, routeResetToken } = decodeP2pConnectRequest(payload);
    other.host.routes.path(context, route, { resetToken: routeResetToken });
    asked++;
    return { status: 201, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeP2pConnectAnswer({}) };
  });
  await other.open(router);
  await other.attach();
  const got: Uint8Array[] = [];
  fixture.sim.onPacket = ({ to, data }: SimulatedPacket) => {
    if (to === other.environment.name && data[0] === 0x88) got.push(data.slice(9));
    return undefined;
  };
  await fixture.sim.run(20_000);
  expect(asked).toBeGreaterThan(0);
  expect(got.length).toBeGreaterThan(0);
  expect([connection.isConnected, connection.paths().rest?.code, other.incoming]).toEqual([true, 'CLOSED', []]);
  await fixture.sim.run(60_000);
  expect(connection.isConnected).toBe(false);
  expect(connection.closeReason).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('no other path within 60 s') });
});

test('a device that answers 4.04 to a bare route: the connection ends with CLOSED within a second after both are back', {
  tags: ['slow'],
}, async () => {
  const device = await fixture.raw.device({ binds: [{ port: 0 }] });
  await station.register(ids, device.host.fingerprint);
  const router = new Router<Session>().on('POST', StationPath.P2P_CONNECT, ({ payload, context }) => {
    const { route, routeResetToken, initiate } = decodeP2pConnectRequest(payload);
    if (initiate === undefined) return { status: 404 };
    const respond = device.host.routes.accept(initiate, device.host.routes.path(context, route, { resetToken: routeResetToken }));
    return { status: 201, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeP2pConnectAnswer({ respond }) };
  });
  await device.open(router);
  await device.attach();
  const { connection } = await withKey();
  await station.restart('shutdown', 1_000);
  await device.open(router);
  await device.attach();
  const back = fixture.sim.now;
  await fixture.sim.run(() => !connection.isConnected);
  expect(connection.closeReason?.code).toBe('CLOSED');
  expect(fixture.sim.now - back).toBeLessThan(1_000);
});

/** A connection that a server key admits. */
async function withKey(): Promise<{ connection: Connection }> {
  const client = fixture.client();
  const connection = client.createConnection();
  connection.updateOptions({
    PrivateKey: client.createPrivateKey(),
    ...{
      ProductId: ids.productId,
      DeviceId: ids.deviceId,
      ServerUrl: SERVER_URL,
      ServerFingerprint: station.fingerprint,
      ServerKey: 'sk-a',
    },
    Rendezvous: false,
    Local: false,
  });
  await fixture.settle(connection.connect());
  await fixture.sim.run(1_000);
  return { connection };
}
