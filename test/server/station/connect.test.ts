/** Clients at a base station in the simulator: refusals, routes, their end, waiting. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type CoapReply, type CoapResponse, Router } from '../../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodeConnectAnswer,
  encodeConnectRequest,
  encodeTokens,
  type RouteGrant,
  StationPath,
} from '../../../protocol/control/index.ts';
import { StationCode } from '../../../protocol/errors/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { errorCode, type RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
let client: RawPeer;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  client = await fixture.raw.opened();
});

const name = `device:${ids.productId}.${ids.deviceId}`;

function connected(payload: Uint8Array): RouteGrant {
  const answer = decodeConnectAnswer(payload);
  if (answer.kind !== 'connected') throw new Error(`not connected: ${answer.kind}`);
  return answer;
}

const together = (answers: Promise<CoapResponse>[]): Promise<CoapResponse[]> => fixture.sim.settle(Promise.all(answers));

/** Attaches a device with a given answer to /p2p/connect. */
async function deviceThat(answers: () => CoapReply | Promise<CoapReply>): Promise<RawPeer> {
  const device = await fixture.raw.client();
  await station.register(ids, device.host.fingerprint);
  await device.open(new Router<Session>().on('POST', StationPath.P2P_CONNECT, answers));
  await device.attach();
  return device;
}

describe('refusals', () => {
  test.each([
    ['an unknown product', { productId: 'pr-x' }, 404, StationCode.UNKNOWN_PRODUCT_ID],
    ['an unknown device', { deviceId: 'de-x' }, 404, StationCode.UNKNOWN_DEVICE_ID],
    ['a device that is not attached', {}, 404, StationCode.NOT_ATTACHED],
    ['an unknown server key', { serverKey: 'sk-x' }, 404, StationCode.UNKNOWN_SERVER_KEY],
    ['the key of another organization', { serverKey: 'sk-b' }, 404, StationCode.UNKNOWN_SERVER_KEY],
    ['a key that asks for a JWT', { serverKey: 'sk-jwt' }, 403, StationCode.SERVER_KEY_MISMATCH],
    ['a key that asks for a JWT, with one', { serverKey: 'sk-jwt', jwt: 'x.y.z' }, 401, StationCode.INVALID_JWT],
    ['a token the device does not have', { sct: 'wrong' }, 401, StationCode.TOKEN_REJECTED],
  ])('%s', async (_what, request, status, code) => {
    await station.register(ids, 'ab'.repeat(32));
    const response = await client.connect(request);
    expect([response.status, errorCode(response)]).toEqual([status, code]);
  });

  test('a device that does not answer within 4 s counts as not attached, and leaves no route', async () => {
    await deviceThat(() => new Promise(() => {}));
    const before = fixture.sim.now;
    expect(errorCode(await client.connect())).toBe(StationCode.NOT_ATTACHED);
    expect(fixture.sim.now - before).toBeGreaterThan(3_900);
    expect(fixture.sim.now - before).toBeLessThan(4_500);
    expect(station.basestation.stats().routes).toBe(0);
  });

  test.each<[string, CoapReply, number, number | undefined]>([
    ['4.29 with its time', { status: 429, maxAge: 7 }, 429, 7],
    ['4.29 with an infinite time', { status: 429, maxAge: 0xffff_ffff }, 429, 60],
    ['5.03', { status: 503 }, 503, undefined],
    ['4.04', { status: 404 }, 502, undefined],
    ['5.00', { status: 500 }, 502, undefined],
    ['no CBOR', { status: 201, contentFormat: CONTENT_FORMAT_CBOR, payload: new Uint8Array([0xff]) }, 502, undefined],
  ])("the device's %s", async (_what, reply, status, maxAge) => {
    await deviceThat(() => reply);
    const response = await client.connect();
    expect([response.status, response.maxAge]).toEqual([status, maxAge]);
    expect(station.basestation.stats().routes).toBe(0);
  });

  test('more than five connects a second to one device are 4.29 with a time, for all clients together', { tags: ['slow'] }, async () => {
    await fixture.raw.attached();
    const other = await fixture.raw.opened();
    const answers = await together([client, other, client, other, client, other].map((peer) => peer.connecting()));
    expect(answers.map(({ status }) => status)).toEqual(expect.arrayContaining([201, 429]));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.map(({ maxAge }) => maxAge)).toEqual([1]);
    await fixture.sim.run(1000);
    expect((await other.connect()).status).toBe(201);
  });

  test('more connects from one address than its rate are 4.29', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) {
      const answers = await together(Array.from({ length: 50 }, () => client.connecting({ productId: 'pr-x' })));
      statuses.push(...answers.map(({ status }) => status));
    }
    expect(statuses.filter((status) => status === 404).length).toBeGreaterThanOrEqual(200);
    expect(statuses.filter((status) => status === 404).length).toBeLessThan(220);
    expect(new Set(statuses)).toEqual(new Set([404, 429]));
    expect((await (await fixture.raw.opened()).connect({ productId: 'pr-x' })).status).toBe(404);
  });
});

describe('a connect', () => {
  test('opens an end-to-end session that the station relays and cannot read', async () => {
    const device = await fixture.raw.attached();
    const session = await client.reach();
    expect(session.paths.type).toBe('RELAY');
    expect(session.peer.fingerprint).toBe(device.host.fingerprint);
    await fixture.sim.run(() => device.incoming.length === 1);
    device.incoming[0]!.router = new Router<Session>().on('GET', '/temperature', () => ({
      status: 205,
      payload: new TextEncoder().encode('21.5'),
    }));
    const response = await fixture.sim.settle(session.request({ method: 'GET', path: '/temperature' }));
    expect([response.status, new TextDecoder().decode(response.payload)]).toEqual([205, '21.5']);
    expect(station.basestation.stats()).toMatchObject({ routes: 1, attached: 1, unknown: 0, wrongPath: 0 });
    expect(station.basestation.stats().forwarded).toBeGreaterThan(3);
  });

  test("works with one of the device's tokens", async () => {
    const device = await fixture.raw.attached();
    await device.request('PUT', DevicePath.SCT, encodeTokens(['secretToken1']));
    const noKey = encodeConnectRequest({ ...ids, sct: 'secretToken1' });
    expect((await client.request('POST', ClientPath.CONNECT, noKey)).status).toBe(201);
  });

  test('without an Initiate opens a bare route', async () => {
    await fixture.raw.attached();
    const answer = connected((await client.connect()).payload);
    expect(answer.respond).toBeUndefined();
    expect(answer.route).toHaveLength(8);
    expect(answer.routeResetToken).toHaveLength(16);
    expect(answer.observedAddress).toEqual({ address: client.environment.addresses[0], port: client.host.sockets.bound[0]!.port });
  });

  test('fails with a removed key, while an existing session stays', { tags: ['slow'] }, async () => {
    await fixture.raw.attached();
    const session = await client.reach();
    await station.store.removeApp('ap-a');
    expect(errorCode(await client.connect())).toBe(StationCode.UNKNOWN_SERVER_KEY);
    await fixture.sim.run(5_000);
    expect(session.isOpen).toBe(true);
  });
});

describe('the end of a route', () => {
  test("follows that of the device's channel, and the client is notified at once", async () => {
    const device = await fixture.raw.attached();
    const session = await client.reach();
    await fixture.sim.run(100);
    const before = fixture.sim.now;
    void device.channel.close();
    const reason = await fixture.sim.settle(session.closed);
    expect(reason).toMatchObject({ code: 'CLOSED', message: expect.stringMatching(/route/) });
    expect(fixture.sim.now - before).toBeLessThan(1000);
    expect(station.basestation.stats().routes).toBe(0);
  });

  test("follows that of the client's channel, and the device is notified at once", async () => {
    const device = await fixture.raw.attached();
    await client.reach();
    await fixture.sim.run(() => device.incoming.length === 1);
    void client.channel.close();
    expect(await fixture.sim.settle(device.incoming[0]!.closed)).toMatchObject({ code: 'CLOSED' });
  });

  test('follows that of the station, which notifies every session', async () => {
    const device = await fixture.raw.attached();
    const session = await client.reach();
    await fixture.sim.run(100);
    await fixture.sim.settle(station.basestation.close());
    expect(await fixture.sim.settle(session.closed)).toMatchObject({ code: 'CLOSED' });
    expect(await fixture.sim.settle(device.channel.closed)).toMatchObject({
      code: 'CLOSED',
      message: expect.stringMatching(/shutting down/),
    });
    expect(await fixture.sim.settle(client.channel.closed)).toMatchObject({ code: 'CLOSED' });
  });
});

describe('Wait', () => {
  /** Collects the answers to an observing connect. */
  function observe(peer: RawPeer, initiate?: Uint8Array) {
    const seen: { status: number; kind: string; payload: Uint8Array; code?: number }[] = [];
    const payload = encodeConnectRequest({ ...ids, serverKey: 'sk-a', wait: true, ...(initiate ? { initiate } : {}) });
    const { cancel } = peer.channel.observe(
      { method: 'POST', path: ClientPath.CONNECT, contentFormat: CONTENT_FORMAT_CBOR, payload, observe: 0 },
      (response) => {
        const kind = response.status < 300 ? decodeConnectAnswer(response.payload).kind : 'refused';
        seen.push({ status: response.status, kind, payload: response.payload });
      },
    );
    return Object.assign(seen, { cancel });
  }

  test('ends when the client cancels it', { tags: ['slow'] }, async () => {
    const device = await fixture.raw.client({ responder: () => [name] });
    await station.register(ids, device.host.fingerprint);
    for (let i = 0; i < 40; i++) {
      const seen = observe(client);
      await fixture.sim.run(() => seen.length > 0);
      expect(seen[0]?.kind).toBe('waiting');
      seen.cancel();
      await fixture.sim.run(100);
    }
    expect(station.basestation.stats().waiting).toBe(0);
    await device.open(device.acceptsRelayed());
    await device.attach();
    await fixture.sim.run(1000);
    expect(station.basestation.stats().routes).toBe(0);
  });

  test('is answered with "waiting", and connected when the device attaches', async () => {
    const device = await fixture.raw.client({ responder: () => [name] });
    await station.register(ids, device.host.fingerprint);
    const prepared = client.host.dials.prepare({ name, timeout: 3_600_000 });
    const seen = observe(client, prepared.initiate);
    await fixture.sim.run(60_000);
    expect(seen.map(({ kind }) => kind)).toEqual(['waiting']);
    expect(station.basestation.stats().waiting).toBe(1);
    await device.open(device.acceptsRelayed());
    await device.attach();
    await fixture.sim.run(() => seen.length > 1);
    expect(seen.map(({ kind }) => kind)).toEqual(['waiting', 'connected']);
    const { route, routeResetToken, respond } = connected(seen[1]!.payload);
    const session = await fixture.sim.settle(
      prepared.establish(respond!, client.host.routes.path(client.channel, route, { resetToken: routeResetToken })),
    );
    expect(session.peer.fingerprint).toBe(device.host.fingerprint);
    expect(station.basestation.stats().waiting).toBe(0);
  });

  test('serves many waiting clients five a second', async () => {
    const device = await fixture.raw.client({ responder: () => [name] });
    await station.register(ids, device.host.fingerprint);
    const waiting: ReturnType<typeof observe>[] = [];
    for (let i = 0; i < 8; i++) waiting.push(observe(client));
    await fixture.sim.run(1000);
    await device.open(device.acceptsRelayed());
    await device.attach();
    const served = (): number => waiting.filter((seen) => seen.some(({ kind }) => kind === 'connected')).length;
    await fixture.sim.run(500);
    expect(served()).toBe(5);
    await fixture.sim.run(3000);
    expect(served()).toBe(8);
  });

  test('ends with a refusal when the client may no longer connect', async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    const seen = observe(client);
    await fixture.sim.run(1000);
    await station.store.removeApp('ap-a');
    await device.open();
    await device.attach();
    await fixture.sim.run(() => seen.length > 1);
    expect(seen[1]).toMatchObject({ status: 404, kind: 'refused' });
  });

  test('is forgotten with the client, and bounded per client', async () => {
    await station.register(ids, 'ab'.repeat(32));
    const all = Array.from({ length: 18 }, () => observe(client));
    await fixture.sim.run(1000);
    expect(all.filter(([first]) => first?.kind === 'waiting')).toHaveLength(16);
    expect(all.filter(([first]) => first?.status === 503)).toHaveLength(2);
    await fixture.sim.settle(client.channel.close());
    await fixture.sim.run(1000);
    expect(station.basestation.stats().waiting).toBe(0);
  });

  test('without Observe is answered "not attached" at once', async () => {
    await station.register(ids, 'ab'.repeat(32));
    expect(errorCode(await client.connect({ wait: true }))).toBe(StationCode.NOT_ATTACHED);
  });
});

describe('a killed station', () => {
  test('is noticed by Reset at the next keep-alive: channel and relayed session end', { tags: ['slow'] }, async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ keepAlive: { interval: 1_000, retryInterval: 500, maxRetries: 5 } });
    client = await fixture.raw.opened();
    const device = await fixture.raw.attached();
    device.channel.setKeepAlive({ interval: 1_000, retryInterval: 500, maxRetries: 5 });
    const session = await client.reach();
    await fixture.sim.run(2_000);
    station.kill();
    await fixture.sim.run(200);
    await station.start();
    const before = fixture.sim.now;
    const reason = await fixture.sim.settle(device.channel.closed);
    expect(reason).toMatchObject({ code: 'CLOSED' });
    expect(fixture.sim.now - before).toBeLessThan(2_000);
    const relayed = await fixture.sim.settle(device.incoming[0]!.closed);
    expect(relayed).toMatchObject({ code: 'CLOSED' });
    expect(await fixture.sim.settle(session.closed)).toMatchObject({ code: 'CLOSED' });
    await device.open(device.acceptsRelayed());
    expect((await device.attach()).status).toBe(201);
    await client.open();
    expect((await client.reach()).isOpen).toBe(true);
  });
});
