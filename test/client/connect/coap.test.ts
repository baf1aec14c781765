/** CoAP requests over a relayed connection, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Body, ContentFormat } from '../../../client/node.ts';
import type { Device } from '../../../device/index.ts';
import { thrownCode } from '../../support/code-of.ts';
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
    const answer = await fixture.settle((await fixture.connected()).post('/echo', 'größer als 20 °C'));
    expect(answer.text).toBe('größer als 20 °C');
    expect(answer).toMatchObject({ status: 205, ok: true, format: ContentFormat.TEXT_PLAIN });
  });

  test('bytes and objects have the content format of bytes and of CBOR, unless another is given', async () => {
    device.addCoapResource('PUT', '/echo', ({ payload, contentFormat = 0 }) => ({ status: 205, contentFormat, payload }));
    const connection = await fixture.connected();
    const put = (body: Body, options = {}) => fixture.settle(connection.put('/echo', body, options));
    expect(await put(Uint8Array.of(1, 2))).toMatchObject({ format: 42, bytes: Uint8Array.of(1, 2) });
    expect((await put({ a: [1, 'b'] })).cbor()).toEqual({ a: [1, 'b'] });
    expect(await put({ a: 1 })).toMatchObject({ format: 60 });
    expect(await put('<a/>', { format: ContentFormat.APPLICATION_XML })).toMatchObject({ format: 41 });
    expect(await put('x', { format: 'none' })).toMatchObject({ format: 0 });
  });

  test('a body that is not CBOR is BAD_RESPONSE where it is read as such', async () => {
    device.addCoapResource('GET', '/text', () => ({ status: 205, payload: 'no CBOR' }));
    const answer = await fixture.settle((await fixture.connected()).get('/text'));
    expect(thrownCode(() => answer.cbor())).toBe('BAD_RESPONSE');
  });

  test('an answer without a body has no CBOR', async () => {
    device.addCoapResource('DELETE', '/it', () => ({ status: 202 }));
    const connection = await fixture.connected();
    const answers = [await fixture.settle(connection.delete('/it')), await fixture.settle(connection.request('DELETE', '/it'))];
    for (const answer of answers) expect([answer.status, answer.text, thrownCode(() => answer.cbor())]).toEqual([202, '', 'NO_DATA']);
  });

  test('a payload of 300,000 bytes passes both ways', { tags: ['slow'] }, async () => {
    device.addCoapResource('POST', '/echo', ({ payload }) => ({ status: 205, contentFormat: 42, payload }));
    const connection = await fixture.connected();
    const payload = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) & 0xff);
    const { format, bytes } = await fixture.settle(connection.post('/echo', payload));
    expect(format).toBe(42);
    expect(Buffer.compare(bytes, payload)).toBe(0);
  });

  test('a request above the limit is answered 5.03', { tags: ['slow'] }, async () => {
    device.limitCoapServerRequests(2);
    const release: (() => void)[] = [];
    device.addCoapResource('GET', '/slow', () => new Promise((resolve) => release.push(() => resolve({ status: 205 }))));
    const connection = await fixture.connected();
    const done = [1, 2, 3].map(() => connection.get('/slow'));
    expect(await fixture.settle(done[2]!)).toMatchObject({ status: 503 });
    for (const answer of release) answer();
    const answers = await fixture.settle(Promise.all(done));
    expect(answers.map(({ status }) => status)).toEqual([205, 205, 503]);
  });

  test('a pending request ends with STOPPED when the device closes or disappears', { tags: ['slow'] }, async () => {
    under.device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const connection = await fixture.connected();
    const other = await fixture.connected({ KeepAliveInterval: 1000, KeepAliveRetryInterval: 500, KeepAliveMaxRetries: 3 });
    const request = connection.get('/never');
    const lost = other.get('/never');
    for (const each of [request, lost]) each.catch(() => {});
    await fixture.sim.run(100);
    void under.device.connection(1).close();
    expect(await fixture.code(request)).toBe('STOPPED');
    fixture.sim.link(under.host, 'station', { delay: 10, loss: 1 });
    expect(await fixture.code(lost)).toBe('STOPPED');
    expect([connection.closeReason?.code, other.closeReason?.code]).toEqual(['CLOSED', 'TIMEOUT']);
  });

  test('a CoAP request is stopped by its signal', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const stop = new AbortController();
    const request = (await fixture.connected()).get('/never', { signal: stop.signal });
    stop.abort();
    expect(await fixture.code(request)).toBe('STOPPED');
  });

  test('a request without answer is TIMEOUT after two minutes', async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    const connection = await fixture.connected();
    const began = fixture.sim.now;
    expect(await fixture.code(connection.get('/never'))).toBe('TIMEOUT');
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(120_000);
    expect(fixture.sim.now - began).toBeLessThan(121_000);
  });
});
