/** Routes end with the connections on them, so neither a busy device nor the base station runs out of routes. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ClientPath, DevicePath, decodeConnectAnswer, encodeRouteRelease } from '../../../protocol/control/index.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

/** Time in which both ends of a closed connection have released its route, ms. */
const SOON = 5_000;

let fixture: ProductFixture;
let station: StationUnderTest;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station({ connectsPerDevice: 10_000, connectsPerAddress: 10_000, routes: { routesPerChannel: 20 } });
});

const routes = (): number => station.basestation.stats().routes!;

/** Rounds of connect, GET and close. */
// A channel has room for 20.
test('500 rounds of connect, GET and close leave no route', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
  const client = fixture.client();
  for (let round = 0; round < 500; round++) {
    const connection = fixture.connection({}, client);
    await fixture.settle(connection.connect());
    expect(await fixture.settle(connection.get('/hello'))).toMatchObject({ status: 205 });
    await fixture.settle(connection.close());
    if (round % 10 === 9) await fixture.sim.run(SOON);
  }
  await fixture.sim.run(SOON);
  expect(routes()).toBe(0);
});

test('a route ends when the device closes', async () => {
  const { device } = await fixture.attached();
  const connection = await fixture.connected();
  await fixture.sim.run(100);
  expect(routes()).toBe(1);
  await fixture.settle(device.connection(1).close());
  await fixture.sim.run(SOON);
  expect([routes(), connection.closeReason?.code]).toEqual([0, 'CLOSED']);
});

test('a cancelled connect leaves no route', async () => {
  await fixture.attached();
  const connection = fixture.connection();
  const connected = connection.connect();
  await fixture.sim.run(() => routes() === 1);
  void connection.close();
  await expect(fixture.settle(connected)).rejects.toMatchObject({ code: 'STOPPED' });
  await fixture.sim.run(SOON);
  expect(routes()).toBe(0);
});

test('the last bytes of a close reach the peer although the other end has released the route', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  const connection = await fixture.connected();
  await fixture.settle(connection.close());
  await fixture.sim.run(1_000);
  expect(() => device.connection(1)).toThrow('there is no connection 1');
});

describe('DELETE', () => {
  test('of one end ends the route after 3 s, and an invented, foreign or repeated id changes nothing', { tags: ['slow'] }, async () => {
    await fixture.attached();
    const [client, thief] = [await fixture.raw.client(), await fixture.raw.client()];
    await client.open();
    await thief.open();
    await thief.connect({ deviceId: 'de-other' });
    const prepared = client.host.dials.prepare({ name: 'device:pr-1.de-1' });
    const answer = decodeConnectAnswer((await client.connect({ initiate: prepared.initiate })).payload);
    if (answer.kind !== 'connected') throw new Error(answer.kind);
    await client.connect();
    const release = (peer = client, id = answer.route) => peer.request('DELETE', ClientPath.ROUTE, encodeRouteRelease(id));
    await station.register({ productId: 'pr-1', deviceId: 'de-other' }, null);
    await thief.connect({ deviceId: 'de-other' });
    const before = routes();
    expect((await release(thief)).status).toBe(202);
    expect((await release(client, new Uint8Array(8))).status).toBe(202);
    await fixture.sim.run(4_000);
    expect(routes()).toBe(before);
    expect((await release()).status).toBe(202);
    expect((await release()).status).toBe(202);
    await fixture.sim.run(2_800);
    expect(routes()).toBe(before);
    await fixture.sim.run(400);
    expect(routes()).toBe(before - 1);
  });

  test.each([
    ['nothing', new Uint8Array()],
    ['a short id', Uint8Array.of(0xa1, 0x65, 0x52, 0x6f, 0x75, 0x74, 0x65, 0x41, 0x01)],
  ])('with %s is 4.00', async (_, payload) => {
    const client = await fixture.raw.opened();
    await station.register({ productId: 'pr-1', deviceId: 'de-1' }, null);
    await client.connect();
    expect((await client.request('DELETE', ClientPath.ROUTE, payload)).status).toBe(400);
  });

  test('is not available to a session without a credential, nor on the other kind of channel', async () => {
    const client = await fixture.raw.opened();
    expect((await client.request('DELETE', ClientPath.ROUTE, encodeRouteRelease(new Uint8Array(8)))).status).toBe(404);
    expect((await client.request('DELETE', DevicePath.ROUTE, encodeRouteRelease(new Uint8Array(8)))).status).toBe(404);
  });
});
