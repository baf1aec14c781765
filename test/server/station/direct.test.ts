/**
 * What a device learns about its client: the address that the base station observes if the client asked for a direct
 * path, else nothing.
 */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Attacher } from '../../../device/attacher.ts';
import { ServerConnectTokens } from '../../../device/tokens.ts';
import { Router, Status } from '../../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  type ConnectRequest,
  DevicePath,
  decodeAttachAnswer,
  decodeConnectAnswer,
  decodeP2pConnectRequest,
  encodeP2pConnectAnswer,
  encodeTokens,
  type P2pConnectRequest,
  type SocketAddress,
  StationPath,
} from '../../../protocol/control/index.ts';
import { type Session, SessionPaths } from '../../../runtime/session/index.ts';
import { askAddress } from '../../../runtime/station/index.ts';
import { ids, SCT, STATION_PORT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
let device: RawPeer;
/** Requests that the device received. */
let asked: P2pConnectRequest[];

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  device = await fixture.raw.device();
  asked = [];
  await station.register(ids, device.host.fingerprint);
  const router = new Router<Session>().on('POST', StationPath.P2P_CONNECT, ({ payload }) => {
    asked.push(decodeP2pConnectRequest(payload));
    return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeP2pConnectAnswer({}) };
  });
  await device.open(router);
});

async function attach() {
  return decodeAttachAnswer((await device.attach()).payload);
}

const seen = ({ environment, host }: RawPeer): SocketAddress => ({
  address: environment.addresses[0]!,
  port: host.sockets.bound[0]!.port,
});

describe("a client's address", () => {
  test.each<[string, Partial<ConnectRequest>, boolean]>([
    ['no request', {}, false],
    ['a request for no direct path', { direct: false }, false],
    ['a request for a direct path', { direct: true }, true],
  ])('reaches the device on request only: %s', async (_, request, learns) => {
    await attach();
    const client = await fixture.raw.opened();
    expect((await client.connect(request)).status).toBe(201);
    expect(asked.map(({ peerAddress }) => peerAddress)).toEqual([learns ? seen(client) : undefined]);
  });

  test.each<[boolean, number]>([
    [false, 0],
    [true, 1],
  ])('reaches the device with the option Rendezvous %s', async (Rendezvous, addresses) => {
    await attach();
    await device.request('PUT', DevicePath.SCT, encodeTokens([SCT]));
    // The device of this test sends no Respond.
    const connect = fixture.connection({ Rendezvous }).connect();
    await expect(fixture.settle(connect)).rejects.toMatchObject({ code: 'NO_CHANNELS' });
    expect(asked).toHaveLength(1);
    expect(asked.filter(({ peerAddress }) => peerAddress !== undefined)).toHaveLength(addresses);
  });
});

test("the device gets the client's validated address, not the source of its packets", async () => {
  await attach();
  const client = await fixture.raw.opened();
  const validated = { ...client.channel.paths.active, address: '203.0.113.5', port: 9 };
  const spy = vi.spyOn(SessionPaths.prototype, 'validated', 'get').mockReturnValue(validated);
  onTestFinished(() => spy.mockRestore());
  await client.connect({ direct: true });
  expect(asked[0]?.peerAddress).toEqual({ address: '203.0.113.5', port: 9 });
  spy.mockReturnValue({ ...validated, kind: 'websocket', address: '', port: 0 });
  await client.connect({ direct: true });
  expect(asked[1]).not.toHaveProperty('peerAddress');
});

describe('an end that asks for its observed address', () => {
  test.each(['device', 'client'] as const)('a %s gets the last validated address of its channel', async (who) => {
    await attach();
    const client = await fixture.raw.opened();
    const [{ channel }, path] = who === 'device' ? [device, DevicePath.ADDRESS] : [client, ClientPath.ADDRESS];
    expect(await fixture.settle(askAddress(channel, path))).toEqual(seen(who === 'device' ? device : client));
    const validated = { ...channel.paths.active, address: '203.0.113.5', port: 9 };
    const spy = vi.spyOn(SessionPaths.prototype, 'validated', 'get').mockReturnValue(validated);
    onTestFinished(() => spy.mockRestore());
    expect(await fixture.settle(askAddress(channel, path))).toEqual({ address: '203.0.113.5', port: 9 });
    expect(channel.observedAddress).toEqual({ address: '203.0.113.5', port: 9 });
    spy.mockReturnValue({ ...validated, kind: 'websocket', address: '', port: 0 });
    expect(await fixture.settle(askAddress(channel, path))).toBeNull();
    expect(channel.observedAddress).toEqual({ address: '203.0.113.5', port: 9 });
  });
});

describe('both ends get the STUN ports', () => {
  test('in the answers to attach and connect', { tags: ['slow'] }, async () => {
    const attached = await attach();
    const client = await fixture.raw.opened();
    const connected = decodeConnectAnswer((await client.connect()).payload);
    expect(attached).toMatchObject({ kind: 'attached', stun: [{ port: STATION_PORT + 1 }] });
    expect(connected).toMatchObject({ kind: 'connected', stun: [{ port: STATION_PORT + 1 }] });
  });

  test('and get nothing without STUN', { tags: ['slow'] }, async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ stunPort: 0 });
    const raw = await fixture.raw.opened();
    await station.register(ids, raw.host.fingerprint);
    expect(decodeAttachAnswer((await raw.attach()).payload)).not.toHaveProperty('stun');
  });
});

describe("the client's address at the device", () => {
  /** Opens a relayed connection to the device with both SDKs. @returns the device's end of it */
  async function relayed(request: Partial<ConnectRequest>): Promise<{ session: Session; client: RawPeer }> {
    const attacher = new Attacher({
      environment: device.environment,
      host: device.host,
      station: { host: station.address, port: STATION_PORT, fingerprint: station.fingerprint },
      tokens: new ServerConnectTokens(),
      names: { ...ids, appName: null, appVersion: null },
      onChannel: () => {},
      onEvent: () => {},
    });
    attacher.start();
    fixture.ends(() => attacher.stop());
    await fixture.sim.run(() => station.basestation.attached === 1);
    const client = await fixture.raw.opened();
    await client.reach(request);
    await fixture.sim.run(() => device.incoming.length > 0);
    return { session: device.incoming[0]!, client };
  }

  test('is kept with the route, and belongs to no other path', async () => {
    const { session, client } = await relayed({ direct: true });
    expect(session.paths.type).toBe('RELAY');
    expect(device.host.routes.peerAddress(session.paths.active)).toEqual(seen(client));
    expect(device.host.routes.peerAddress(device.channel.paths.active)).toBeUndefined();
  });

  test('is not known without Direct', { tags: ['slow'] }, async () => {
    const { session } = await relayed({});
    expect(session.paths.type).toBe('RELAY');
    expect(device.host.routes.peerAddress(session.paths.active)).toBeUndefined();
  });

  test('is dropped with the route', async () => {
    const { session } = await relayed({ direct: true });
    const path = session.paths.active;
    await fixture.settle(session.close());
    await fixture.sim.run(5_000);
    expect(device.host.routes.peerAddress(path)).toBeUndefined();
  });
});
