/** The two paths to the outside through CoAP: rates, slots, and a base station that stops meanwhile. */
import { afterEach, expect, test, vi } from 'vitest';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, DevicePath, encodePushRequest } from '../../../protocol/control/index.ts';
import type { HttpAnswer, HttpRequest, StationSettings } from '../../../server/index.ts';
import { addProvider, http, PROJECT } from './provider.ts';
import { ids, type Party, World } from './world.ts';

let world: World;
afterEach(() => world.close());

const payload = encodePushRequest({ projectId: PROJECT, body: '{"message":{"token":"t"}}' });

async function begin(
  settings: Partial<StationSettings>,
  answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>,
): Promise<Party> {
  world = await World.make(settings);
  await addProvider(world, answer);
  return world.device();
}

function pushing(party: Party): Promise<CoapResponse> {
  return party.channel.request({ method: 'POST', path: DevicePath.PUSH_SEND, contentFormat: CONTENT_FORMAT_CBOR, payload });
}

const push = (party: Party): Promise<CoapResponse> => world.sim.settle(pushing(party));

/** A provider that answers when it is told. */
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
  const party = await begin({ outboundRate: 0.2 }, () => {
    sent++;
    return http(200, 'application/json', '{}');
  });
  const statuses = [(await push(party)).status, (await push(party)).status];
  const refused = await push(party);
  expect([...statuses, refused.status]).toEqual([201, 201, 429]);
  expect(refused.maxAge).toBe(5);
  expect(sent).toBe(2);
  await world.sim.run(5_000);
  expect((await push(party)).status).toBe(201);
});

test('a device whose slots are taken gets 4.29, another one does not; a released slot can be taken again', async () => {
  const provider = held();
  const party = await begin({ outboundPerDevice: 2 }, provider.answer);
  const other = await world.device({ ...ids, deviceId: 'de-2' });
  const running = [pushing(party), pushing(party)];
  await world.sim.run(500);
  const refused = await push(party);
  expect([refused.status, refused.maxAge]).toEqual([429, 1]);
  running.push(pushing(other));
  await world.sim.run(500);
  expect([provider.waiting.length, world.station.stats().outbound]).toEqual([3, 3]);
  provider.release();
  expect((await world.sim.settle(Promise.all(running))).map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(world.station.stats().outbound).toBe(0);
});

test('when all slots are taken every device gets 4.29', async () => {
  const provider = held();
  const party = await begin({ outbound: 1 }, provider.answer);
  const other = await world.device({ ...ids, deviceId: 'de-2' });
  const running = pushing(party);
  await world.sim.run(500);
  expect((await push(other)).status).toBe(429);
  provider.release();
  expect((await world.sim.settle(running)).status).toBe(201);
});

test('a base station that stops while notifications wait: they end, nothing is sent afterwards', async () => {
  let sent = 0;
  const warned = vi.spyOn(process, 'emitWarning');
  const party = await begin({ outboundPerDevice: 20 }, () => {
    sent++;
    return { ...http(429, 'application/json', '{}'), headers: { 'retry-after': '30' } };
  });
  const running = Array.from({ length: 20 }, () => pushing(party));
  const ended = Promise.allSettled(running);
  await world.sim.run(1_000);
  expect([sent, world.station.stats().outbound]).toEqual([20, 20]);
  await world.sim.settle(world.station.close());
  for (const outcome of await world.sim.settle(ended)) {
    if (outcome.status === 'fulfilled') expect(outcome.value.status).toBe(503);
    else expect(outcome.reason).toMatchObject({ code: expect.any(String) });
  }
  await world.sim.run(100_000);
  expect([sent, world.station.stats().outbound]).toEqual([20, 0]);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
