/** CoAP requests over a relayed connection, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ContentFormat } from '../../../client/node.ts';
import type { Device } from '../../../device/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

let fixture: ProductFixture;
let under: DeviceUnderTest;
let device: Device;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  under = await fixture.attached();
  ({ device } = under);
});

describe('CoAP', () => {
  test('a client has no access to the path of base stations', async () => {
    expect((await fixture.coap(await fixture.connected(), 'POST', '/p2p/connect')).status).toBe(404);
  });

  test('a text as payload is sent as UTF-8', async () => {
    device.addCoapResource('POST', '/echo', ({ payload, contentFormat = 60 }) => ({ status: 205, contentFormat, payload }));
    const coap = (await fixture.connected()).createCoap('POST', '/echo');
    coap.setRequestPayload(ContentFormat.TEXT_PLAIN, 'größer als 20 °C');
    const response = await fixture.settle(coap.execute());
    expect(response).toBe(coap.getResponse());
    expect(new TextDecoder().decode(response.payload)).toBe('größer als 20 °C');
    expect(coap.getResponsePayload()).toBe(response.payload);
    expect(coap.getResponseContentFormat()).toBe(ContentFormat.TEXT_PLAIN);
  });

  test('a payload of 300,000 bytes passes both ways', { tags: ['slow'] }, async () => {
    device.addCoapResource('POST', '/echo', ({ payload }) => ({ status: 205, contentFormat: 42, payload }));
    const connection = await fixture.connected();
    const coap = connection.createCoap('POST', '/echo');
    const payload = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) & 0xff);
    coap.setRequestPayload(42, payload);
    await fixture.settle(coap.execute());
    expect(coap.getResponseContentFormat()).toBe(42);
    expect(Buffer.compare(coap.getResponsePayload(), payload)).toBe(0);
  });

  test('a request above the limit is answered 5.03', { tags: ['slow'] }, async () => {
    device.limitCoapServerRequests(2);
    const release: (() => void)[] = [];
    device.addCoapResource('GET', '/slow', () => new Promise((resolve) => release.push(() => resolve({ status: 205 }))));
    const connection = await fixture.connected();
    const requests = [1, 2, 3].map(() => connection.createCoap('GET', '/slow'));
    const done = requests.map((request) => request.execute());
    await fixture.settle(done[2]!);
    expect(requests[2]?.getResponseStatusCode()).toBe(503);
    for (const answer of release) answer();
    await fixture.settle(Promise.all(done));
    expect(requests.map((request) => request.getResponseStatusCode())).toEqual([205, 205, 503]);
  });

  test('a pending request ends with STOPPED when the device closes or disappears', { tags: ['slow'] }, async () => {
    under.device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const connection = await fixture.connected();
    const other = await fixture.connected({ KeepAliveInterval: 1000, KeepAliveRetryInterval: 500, KeepAliveMaxRetries: 3 });
    const request = connection.createCoap('GET', '/never').execute();
    const lost = other.createCoap('GET', '/never').execute();
    for (const each of [request, lost]) each.catch(() => {});
    await fixture.sim.run(100);
    void under.device.connection(1).close();
    expect(await fixture.code(request)).toBe('STOPPED');
    fixture.sim.link(under.host, 'station', { delay: 10, loss: 1 });
    expect(await fixture.code(lost)).toBe('STOPPED');
    expect([connection.closeReason?.code, other.closeReason?.code]).toEqual(['CLOSED', 'TIMEOUT']);
  });

  test('a request runs once at a time, and can run again', async () => {
    device.addCoapResource('GET', '/hello', () => ({ status: 205 }));
    const coap = (await fixture.connected()).createCoap('GET', '/hello');
    const executing = coap.execute();
    await expect(coap.execute()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    await fixture.settle(executing);
    await fixture.settle(coap.execute());
    expect(coap.getResponseStatusCode()).toBe(205);
  });

  test('a CoAP request is stopped by its signal', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const stop = new AbortController();
    const request = (await fixture.connected()).createCoap('GET', '/never').execute({ signal: stop.signal });
    stop.abort();
    expect(await fixture.code(request)).toBe('STOPPED');
  });

  test('a request without answer is TIMEOUT after two minutes', async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const connection = await fixture.connected();
    const began = fixture.sim.now;
    expect(await fixture.code(connection.createCoap('GET', '/never').execute())).toBe('TIMEOUT');
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(120_000);
    expect(fixture.sim.now - began).toBeLessThan(121_000);
  });
});
