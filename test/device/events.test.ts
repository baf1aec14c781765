/** Device and connection events that need an incident in the network or in the data plane. */
import { beforeEach, expect, test } from 'vitest';
import type { Core } from '../../bindings/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { ids } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

test('CHANNEL_CHANGED when a client arrives from another address', { tags: ['slow'] }, async () => {
  const { device, host } = await fixture.device({ basestationAttach: false });
  await fixture.settle(device.start());
  const events: string[] = [];
  device.onConnectionEvent(({ ref, type }, event) => events.push(`${ref} ${event} ${type}`));
  const place = fixture.sim.host('phone');
  const client = fixture.client(place);
  const connection = fixture.directConnection(host, device.localPort, {}, client);
  await fixture.settle(connection.connect());
  await fixture.sim.run(1_000);
  fixture.sim.rebind(place, 'port');
  expect((await fixture.coap(connection, 'GET', '/')).status).toBe(404);
  await fixture.sim.run(1_000);
  expect(events).toEqual(['1 OPENED DIRECT', '1 CHANNEL_CHANGED DIRECT']);
  await fixture.settle(client.stop());
  await fixture.sim.run(1_000);
  expect(events.at(-1)).toBe('1 CLOSED DIRECT');
});

test('WRONG_PRODUCT_ID when the key is registered for a device of another product', async () => {
  const under = await fixture.device({ productId: 'pr-2', registered: false });
  await station.register(ids, under.device.deviceFingerprint);
  await station.register({ ...ids, productId: 'pr-2' }, 'ab'.repeat(32));
  await fixture.start(under);
  await fixture.until(under, 'WRONG_PRODUCT_ID');
  expect(under.reasons[0]?.code).toBe('WRONG_PRODUCT_ID');
});

test('PLATFORM_FAILURE once when the data plane cannot be started again; ATTACHED when it later can', { tags: ['slow'] }, async () => {
  const home = fixture.sim.host('home');
  const cores: Core[] = [];
  let memory = true;
  const { clock, crypto, network, log } = home;
  const createCore = async (options: Parameters<typeof home.createCore>[0]) => {
    if (!memory) throw new LocalError('OUT_OF_MEMORY', 'no memory for a core');
    const core = await home.createCore(options);
    cores.push(core);
    return core;
  };
  const under = await fixture.attached({ environment: { clock, crypto, network, log, createCore } });
  memory = false;
  expect(() => cores[0]?.failForTest()).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
  await fixture.until(under, 'PLATFORM_FAILURE');
  expect(under.reasons.at(-1)?.code).toBe('OUT_OF_MEMORY');
  await fixture.sim.run(60_000);
  memory = true;
  await fixture.until(under, 'ATTACHED', 2);
  expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'PLATFORM_FAILURE', 'ATTACHED']);
});
