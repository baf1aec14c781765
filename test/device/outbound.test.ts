/** Push notifications and service invocations of a device, through a base station in virtual time. */
import { beforeEach, expect, test } from 'vitest';
import type { Device } from '../../device/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import type { HttpAnswer, HttpRequest } from '../../server/index.ts';
import { serviceRecord } from '../../server/storage/sealing.ts';
import { addProvider, http, PROJECT } from '../server/station/provider.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

const created = '2026-01-02T03:04:05.678Z';
let fixture: ProductFixture;
let station: StationUnderTest;
let answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  await addProvider(station, (request) => answer(request));
  const service = {
    serviceId: 'se-1',
    organizationId: 'or-a',
    name: null,
    url: 'https://8.8.8.8/',
    timeout: 5_000,
    allowPrivate: false,
    created,
  };
  await station.store.outbound.addService({ ...service, sealedSecret: station.sealer.seal('whsec_AA==', serviceRecord(service)) }, [
    'pr-1',
  ]);
});

function push(device: Device, projectId = PROJECT) {
  const notification = device.createPushNotification();
  notification.setProjectId(projectId);
  notification.setPayload('{"message":{"token":"t"}}');
  return notification;
}

function invocation(device: Device, serviceId = 'se-1') {
  const made = device.createServiceInvocation();
  made.setServiceId(serviceId);
  made.setMessage(Uint8Array.of(1, 2));
  return made;
}

test('the answers of provider and service arrive unchanged', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  answer = () => http(404, 'application/json', '{"error":1}');
  const notification = push(device);
  expect(() => notification.getResponseBody()).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  await fixture.settle(notification.send());
  expect([notification.getResponseStatusCode(), notification.getResponseBody()]).toEqual([404, '{"error":1}']);
  answer = () => http(200, 'text/plain', 'hi');
  const invoked = invocation(device);
  await fixture.settle(invoked.execute());
  expect([invoked.getResponseStatusCode(), invoked.getResponseMessageFormat()]).toEqual([200, 'TEXT']);
  expect(invoked.getResponseMessage()).toEqual(new TextEncoder().encode('hi'));
});

test('a service gets the message in the chosen format', async () => {
  const { device } = await fixture.attached();
  let body: string | Uint8Array = '';
  answer = (request) => {
    body = request.body;
    return http(200, 'text/plain', '');
  };
  await fixture.settle(invocation(device).execute());
  expect(JSON.parse(String(body))).toMatchObject({ message: 'AQI=' });
});

test('errors of the base station keep their names', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  await expect(fixture.settle(push(device, 'other').send())).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await expect(fixture.settle(invocation(device, 'se-2').execute())).rejects.toMatchObject({ code: 'FAILED' });
  answer = () => Promise.reject(new RemoteError('TIMEOUT', 'no answer'));
  await expect(fixture.settle(push(device).send())).rejects.toMatchObject({ code: 'TIMEOUT' });
  await expect(fixture.settle(invocation(device).execute())).rejects.toMatchObject({ code: 'FAILED' });
});

test('a push or an invocation is refused when not attached, incomplete or too long', async () => {
  const { device } = await fixture.device();
  await expect(push(device).send()).rejects.toMatchObject({ code: 'NOT_ATTACHED' });
  await expect(invocation(device).execute()).rejects.toMatchObject({ code: 'NOT_ATTACHED' });
  await expect(device.createPushNotification().send()).rejects.toMatchObject({ code: 'INVALID_STATE' });
  await expect(device.createServiceInvocation().execute()).rejects.toMatchObject({ code: 'INVALID_STATE' });
  device.createServiceInvocation().setMessage(new Uint8Array(65_536));
  expect(() => device.createServiceInvocation().setMessage(new Uint8Array(65_537))).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});

test('a send in progress can be stopped, and cannot begin twice', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  answer = () => new Promise(() => {});
  const notification = push(device);
  const sending = notification.send();
  await expect(notification.send()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
  notification.stop();
  await expect(fixture.settle(sending)).rejects.toMatchObject({ code: 'STOPPED' });
});

test('an invocation in progress can be stopped, and cannot begin twice', async () => {
  const { device } = await fixture.attached();
  answer = () => new Promise(() => {});
  const invoked = invocation(device);
  const executing = invoked.execute();
  await expect(invoked.execute()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
  invoked.stop();
  await expect(fixture.settle(executing)).rejects.toMatchObject({ code: 'STOPPED' });
});
