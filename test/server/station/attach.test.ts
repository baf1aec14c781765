/** Devices at a base station in the simulator: attach, tokens, rates, routers. */
import { hex } from '@scure/base';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodeAttachAnswer,
  digestOfTokens,
  encodeAttachRequest,
  encodeTokens,
} from '../../../protocol/control/index.ts';
import { StationCode } from '../../../protocol/errors/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { errorCode, type RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
let device: RawPeer;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  device = await fixture.raw.opened();
});

describe('POST /device/attach', () => {
  test('is answered with keep-alive numbers if the operator has set them', async () => {
    const keepAlive = { interval: 30_000, retryInterval: 3_000, maxRetries: 5 };
    fixture = new ProductFixture();
    station = await fixture.station({ keepAlive });
    device = await fixture.raw.opened();
    await station.register(ids, device.host.fingerprint);
    const { payload } = await device.attach({ appName: 'thermostat' });
    expect(decodeAttachAnswer(payload)).toMatchObject({ kind: 'attached', keepAlive });
  });

  test('is answered with observed address and wall time, and without keep-alive', { tags: ['slow'] }, async () => {
    await station.register(ids, device.host.fingerprint);
    const response = await device.attach({ appName: 'thermostat', appVersion: '1.2.3' });
    expect(response.status).toBe(201);
    const answer = decodeAttachAnswer(response.payload);
    expect(answer).toMatchObject({
      kind: 'attached',
      keepAlive: null,
      observedAddress: { address: device.environment.addresses[0], port: device.host.sockets.bound[0]!.port },
    });
    const wallTime = answer.kind === 'attached' ? answer.wallTime! : 0;
    expect(Math.abs(wallTime - fixture.sim.wallTime)).toBeLessThan(1000);
    expect(station.basestation.attached).toBe(1);
  });

  test.each([
    ['an unknown key', { productId: 'pr-1', deviceId: 'de-other' }, 404, StationCode.UNKNOWN_FINGERPRINT],
    ['a wrong device id', { productId: 'pr-1', deviceId: 'de-x' }, 400, StationCode.WRONG_DEVICE_ID],
    ['a wrong product id', { productId: 'pr-2', deviceId: 'de-1' }, 400, StationCode.WRONG_PRODUCT_ID],
    ['the product of another organization', { productId: 'pr-b', deviceId: 'de-1' }, 404, StationCode.UNKNOWN_FINGERPRINT],
  ])('is refused for %s', async (what, request, status, code) => {
    if (what !== 'an unknown key') await station.register(ids, device.host.fingerprint);
    await station.register({ productId: 'pr-1', deviceId: 'de-other' }, 'ab'.repeat(32));
    const response = await device.attach(request);
    expect([response.status, errorCode(response)]).toEqual([status, code]);
    expect(station.basestation.attached).toBe(0);
  });

  test('uses a changed record at the next attempt, on the same session', async () => {
    await station.register(ids, null);
    expect(errorCode(await device.attach())).toBe(StationCode.UNKNOWN_FINGERPRINT);
    await station.store.setFingerprint(ids.productId, ids.deviceId, device.host.fingerprint);
    expect((await device.attach()).status).toBe(201);
    expect((await device.attach()).status).toBe(201);
    expect(station.basestation.attached).toBe(1);
  });

  test('replaces an earlier session, which is closed with the reason', async () => {
    await station.register(ids, device.host.fingerprint);
    await device.attach();
    const twin = await fixture.raw.client({ identity: device.identity });
    await twin.open();
    expect((await twin.attach()).status).toBe(201);
    expect(await fixture.sim.settle(device.channel.closed)).toMatchObject({ code: 'REPLACED' });
    expect(twin.channel.isOpen).toBe(true);
    expect(station.basestation.attached).toBe(1);
  });

  test('lasts until the session ends', { tags: ['slow'] }, async () => {
    await station.register(ids, device.host.fingerprint);
    await device.attach();
    await fixture.sim.settle(device.channel.close());
    await fixture.sim.run(1000);
    expect(station.basestation.attached).toBe(0);
  });

  test.each([
    ['nothing', new Uint8Array()],
    ['no CBOR', new Uint8Array([0xff, 0xff])],
    ['an array', encodeTokens(['x'])],
    ['an empty map', new Uint8Array([0xa0])],
    ['deep nesting', new Uint8Array(1000).fill(0x81)],
  ])('is answered 4.00 for %s, and the session continues', async (_what, payload) => {
    for (const path of [DevicePath.ATTACH, ClientPath.CONNECT]) {
      const peer = await fixture.raw.opened();
      expect((await peer.request('POST', path, payload)).status).toBe(400);
      expect(peer.channel.isOpen).toBe(true);
    }
  });
});

describe('PUT /device/sct', () => {
  beforeEach(async () => {
    await station.register(ids, device.host.fingerprint);
    await device.attach();
  });

  test('stores the hashes of all tokens in place of the previous ones', { tags: ['slow'] }, async () => {
    expect((await device.request('PUT', DevicePath.SCT, encodeTokens(['tokenA', 'tokenB']))).status).toBe(201);
    expect(await station.tokens('tokenA', 'tokenB', 'other')).toEqual(['tokenA', 'tokenB']);
    await device.request('PUT', DevicePath.SCT, encodeTokens([]));
    expect(await station.tokens('tokenA', 'tokenB')).toEqual([]);
  });

  test('refuses too many tokens and other bodies, and keeps the previous ones', { tags: ['slow'] }, async () => {
    await device.request('PUT', DevicePath.SCT, encodeTokens(['tokenA']));
    const many = Array.from({ length: 2_001 }, (_, i) => `token${i}`);
    expect((await device.request('PUT', DevicePath.SCT, encodeTokens(many))).status).toBe(413);
    for (const bytes of [[0xa0], [0x81, 0x01], [0x81, 0x60], []])
      expect((await device.request('PUT', DevicePath.SCT, new Uint8Array(bytes))).status).toBe(400);
    expect(await station.tokens('tokenA', 'token0')).toEqual(['tokenA']);
  });
});

describe('the answer to an attach', () => {
  const digest = (...tokens: string[]) => digestOfTokens(tokens, device.environment.crypto);
  const attach = async (tokens: Uint8Array | null) => decodeAttachAnswer((await device.attach({ tokens })).payload);
  const upload = (...tokens: string[]) => device.request('PUT', DevicePath.SCT, encodeTokens(tokens));

  test('has the limit of tokens, and whether the list is known', async () => {
    await station.register(ids, device.host.fingerprint);
    expect(await attach(digest())).toMatchObject({ maxTokens: 2_000, tokensKnown: false });
    await upload('b', 'a');
    expect(await attach(digest('a', 'b'))).toMatchObject({ tokensKnown: true });
    expect(await attach(digest('a'))).toMatchObject({ tokensKnown: false });
    expect(await attach(null)).toMatchObject({ tokensKnown: false });
    await upload();
    expect(await attach(digest())).toMatchObject({ tokensKnown: true });
  });

  test('has nothing about tokens before the key of the device was checked', async () => {
    await station.register(ids, 'ab'.repeat(32));
    await station.store.replaceTokens(ids.productId, ids.deviceId, { hashes: [], digest: hex.encode(digest()) });
    expect(errorCode(await device.attach({ tokens: digest() }))).toBe(StationCode.UNKNOWN_FINGERPRINT);
  });

  test('has the digest of an unchanged list, which is written once', async () => {
    await station.register(ids, device.host.fingerprint);
    await device.attach();
    const write = vi.spyOn(station.store, 'replaceTokens');
    for (let round = 0; round < 5; round++) expect((await upload('a', 'b')).status).toBe(201);
    expect((await upload('b', 'a')).status).toBe(201);
    expect(write).toHaveBeenCalledTimes(1);
  });
});

test('attaches from one address and uploads of one device have a rate limit', { tags: ['slow'] }, async () => {
  const attach = (): Promise<CoapResponse> => {
    const payload = encodeAttachRequest({ svcVersion: '', appName: null, appVersion: null, redirected: false, tokens: null, ...ids });
    return device.channel.request({ method: 'POST', path: DevicePath.ATTACH, contentFormat: CONTENT_FORMAT_CBOR, payload });
  };
  const upload = (): Promise<CoapResponse> =>
    device.channel.request({ method: 'PUT', path: DevicePath.SCT, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeTokens(['x']) });
  const statuses = async (ask: () => Promise<CoapResponse>, rounds: number): Promise<Set<number>> => {
    const seen = new Set<number>();
    for (let i = 0; i < rounds; i++)
      for (const { status } of await fixture.sim.settle(Promise.all(Array.from({ length: 60 }, ask)))) seen.add(status);
    return seen;
  };
  await station.register(ids, device.host.fingerprint);
  expect(await statuses(attach, 2)).toEqual(new Set([201]));
  expect(await statuses(upload, 1)).toEqual(new Set([201, 429]));
  expect(await statuses(attach, 25)).toEqual(new Set([201, 429]));
  await fixture.sim.run(10_000);
  expect((await device.attach()).status).toBe(201);
});

describe('each kind of channel has its own router', () => {
  test('a new session may only attach or connect', async () => {
    for (const [method, path] of [
      ['PUT', DevicePath.SCT],
      ['GET', '/iam/me'],
      ['POST', '/p2p/connect'],
      ['GET', DevicePath.ATTACH],
    ] as const)
      expect((await device.request(method, path)).status).toBe(404);
  });

  test("a device's channel cannot connect, a client's cannot attach or upload", { tags: ['slow'] }, async () => {
    await station.register(ids, device.host.fingerprint);
    await device.attach();
    expect((await device.connect()).status).toBe(404);
    const client = await fixture.raw.client({ identity: device.identity });
    await client.open();
    expect((await client.connect({ deviceId: 'de-1' })).status).not.toBe(400);
    expect((await client.attach()).status).toBe(404);
    expect((await client.request('PUT', DevicePath.SCT, encodeTokens(['x']))).status).toBe(404);
    expect(station.basestation.attached).toBe(1);
  });

  test('a refused attach leaves the session new', { tags: ['slow'] }, async () => {
    expect((await device.attach()).status).toBe(404);
    expect((await device.request('PUT', DevicePath.SCT, encodeTokens(['x']))).status).toBe(404);
    expect(errorCode(await device.connect({ productId: 'pr-x' }))).toBe(StationCode.UNKNOWN_PRODUCT_ID);
  });

  test('a session that neither attaches nor connects is closed, and others stay', { tags: ['slow'] }, async () => {
    await station.register(ids, device.host.fingerprint);
    const silent = await fixture.raw.opened();
    await device.attach();
    await fixture.sim.run(31_000);
    expect(silent.channel.isOpen).toBe(false);
    expect(device.channel.isOpen).toBe(true);
  });
});

test('the log has when and why a device leaves, except for a newer session of it and the end of the station', async () => {
  const logged: Record<string, unknown>[] = [];
  fixture = new ProductFixture({
    log: (_host, _level, message, fields = {}) => void (message === 'device detached' && logged.push(fields)),
  });
  station = await fixture.station();
  device = await fixture.raw.opened();
  const lines = () => logged.splice(0);
  await station.register(ids, device.host.fingerprint);
  await device.attach();
  const twin = await fixture.raw.client({ identity: device.identity });
  await twin.open();
  await twin.attach();
  await fixture.sim.settle(device.channel.closed);
  expect(lines()).toEqual([]);
  await fixture.sim.settle(twin.channel.close());
  await fixture.sim.run(1_000);
  expect(lines()).toEqual([{ device: 'pr-1.de-1', reason: 'the peer closed the connection' }]);
  await device.open();
  await device.attach();
  await fixture.sim.settle(station.basestation.close());
  expect(lines()).toEqual([]);
});

test('the station reports which devices are attached, since when, and from where', async () => {
  await station.register(ids, device.host.fingerprint);
  expect(station.basestation.devices).toEqual([]);
  await device.attach();
  const address = `${device.environment.addresses[0]}:${device.host.sockets.bound[0]!.port}`;
  const [first] = station.basestation.devices;
  expect(first).toMatchObject({ ...ids, address });
  expect(Math.abs(Date.parse(first!.since) - fixture.sim.wallTime)).toBeLessThan(1_000);
  await fixture.sim.run(10_000);
  await device.attach();
  expect(station.basestation.devices).toEqual([first]);
});
