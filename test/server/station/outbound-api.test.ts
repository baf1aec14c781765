/** Push and service invocation by CoAP: rates, slots, and a base station that stops meanwhile. */
import { expect, test, vi } from 'vitest';
import { type CoapResponse, parsePath, Router } from '../../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, DevicePath, encodePushRequest } from '../../../protocol/control/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { HttpAnswer, HttpRequest, StationSettings } from '../../../server/index.ts';
import { OutboundApi, type OutboundOptions } from '../../../server/station/outbound-api.ts';
import { defaultSettings } from '../../../server/station/settings.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { addProvider, http, PROJECT } from './provider.ts';

let fixture: ProductFixture;
let station: StationUnderTest;

const payload = encodePushRequest({ projectId: PROJECT, body: '{"message":{"token":"t"}}' });

async function begin(
  settings: Partial<StationSettings>,
  answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>,
): Promise<RawPeer> {
  fixture = new ProductFixture();
  station = await fixture.station(settings);
  await addProvider(station, answer);
  return fixture.raw.attached();
}

function pushing(peer: RawPeer): Promise<CoapResponse> {
  return peer.channel.request({ method: 'POST', path: DevicePath.PUSH_SEND, contentFormat: CONTENT_FORMAT_CBOR, payload });
}

const push = (peer: RawPeer): Promise<CoapResponse> => fixture.sim.settle(pushing(peer));

/** A provider that answers when the test releases it. */
function held() {
  const waiting: ((answer: HttpAnswer) => void)[] = [];
  return {
    waiting,
    answer: () => new Promise<HttpAnswer>((resolve) => void waiting.push(resolve)),
    release: (): void => {
      for (const resolve of waiting.splice(0)) resolve(http(200, 'application/json', '{}'));
    },
  };
}

test('a device above its rate gets 4.29 with the time to wait, and is served after it', async () => {
  let sent = 0;
  const peer = await begin({ outboundRate: 0.2 }, () => {
    sent++;
    return http(200, 'application/json', '{}');
  });
  const statuses = [(await push(peer)).status, (await push(peer)).status];
  const refused = await push(peer);
  expect([...statuses, refused.status]).toEqual([201, 201, 429]);
  expect(refused.maxAge).toBe(5);
  expect(sent).toBe(2);
  await fixture.sim.run(5_000);
  expect((await push(peer)).status).toBe(201);
});

test('a device without a free slot gets 4.29, and another one does not; released slots can be taken again', {
  tags: ['slow'],
}, async () => {
  const provider = held();
  const peer = await begin({ outboundPerDevice: 2 }, provider.answer);
  const other = await fixture.raw.attached({ ...ids, deviceId: 'de-2' });
  const running = [pushing(peer), pushing(peer)];
  await fixture.sim.run(500);
  const refused = await push(peer);
  expect([refused.status, refused.maxAge]).toEqual([429, 1]);
  running.push(pushing(other));
  await fixture.sim.run(500);
  expect([provider.waiting.length, station.basestation.stats().outbound]).toEqual([3, 3]);
  provider.release();
  expect((await fixture.sim.settle(Promise.all(running))).map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(station.basestation.stats().outbound).toBe(0);
});

test('devices whose calls are not answered have two each, one each once half are taken, and none once all are', async () => {
  const router = new Router<Session>();
  const api = new OutboundApi({
    environment: nativeSimulation().host('station'),
    store: { product: () => new Promise(() => {}) },
    settings: { ...defaultSettings, outbound: 4, outboundPerDevice: 2 },
    presence: { ofSession: (device: unknown) => device },
  } as unknown as OutboundOptions);
  api.addTo(router);
  const sizes: number[] = [];
  for (const deviceId of ['a', 'a', 'b', 'b', 'c', 'd']) {
    const request = {
      method: 'POST',
      path: DevicePath.PUSH_SEND,
      segments: parsePath(DevicePath.PUSH_SEND),
      query: [],
      exchange: 1,
      observe: false,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload,
    };
    void router.handle(request as never, { ...ids, deviceId } as never);
    await new Promise(setImmediate);
    sizes.push(api.size);
  }
  expect(sizes).toEqual([1, 2, 3, 3, 4, 4]);
});

test('waiting notifications end when the base station stops, and nothing is sent afterwards', { tags: ['slow'] }, async () => {
  let sent = 0;
  const warned = vi.spyOn(process, 'emitWarning');
  const peer = await begin({ outboundPerDevice: 20 }, () => {
    sent++;
    return { ...http(429, 'application/json', '{}'), headers: { 'retry-after': '30' } };
  });
  const running = Array.from({ length: 20 }, () => pushing(peer));
  const ended = Promise.allSettled(running);
  await fixture.sim.run(1_000);
  expect([sent, station.basestation.stats().outbound]).toEqual([20, 20]);
  await fixture.sim.settle(station.basestation.close());
  const outcomes = (await fixture.sim.settle(ended)).map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value.status : outcome.reason.code,
  );
  expect(outcomes).toEqual(new Array(20).fill('CLOSED'));
  await fixture.sim.run(100_000);
  expect([sent, station.basestation.stats().outbound]).toEqual([20, 0]);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
