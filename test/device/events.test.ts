/** Device and connection events that need something to happen to the network or to the data plane. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Core } from '../../bindings/index.ts';
import { SvcClient } from '../../client/node.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { ids, Scene } from '../client/scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.make();
});
afterEach(() => scene.close());

test('CHANNEL_CHANGED when a client comes from another address', async () => {
  const { device, host } = await scene.device({ basestationAttach: false });
  await scene.settle(device.start());
  const events: string[] = [];
  device.onConnectionEvent(({ ref, type }, event) => events.push(`${ref} ${event} ${type}`));
  const place = scene.world.sim.host('phone');
  const client = SvcClient.create({ environment: place });
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey() });
  connection.enableDirectCandidates();
  connection.addDirectCandidate(host, device.localPort);
  connection.endOfDirectCandidates();
  await scene.settle(connection.connect());
  await scene.world.sim.run(1_000);
  scene.world.sim.rebind(place, 'port');
  expect((await scene.coap(connection, 'GET', '/')).status).toBe(404);
  await scene.world.sim.run(1_000);
  expect(events).toEqual(['1 OPENED DIRECT', '1 CHANNEL_CHANGED DIRECT']);
  await scene.settle(client.stop());
  await scene.world.sim.run(1_000);
  expect(events.at(-1)).toBe('1 CLOSED DIRECT');
});

test('WRONG_PRODUCT_ID when the key is registered for a device of another product', async () => {
  const under = await scene.device({ productId: 'pr-2', registered: false });
  await scene.world.register(ids, under.device.deviceFingerprint);
  await scene.world.register({ ...ids, productId: 'pr-2' }, 'ab'.repeat(32));
  await scene.start(under);
  await scene.until(under, 'WRONG_PRODUCT_ID');
  expect(under.reasons[0]?.code).toBe('WRONG_PRODUCT_ID');
});

test('PLATFORM_FAILURE once, when the data plane cannot be started again; ATTACHED when it could after all', async () => {
  const home = scene.world.sim.host('home');
  const cores: Core[] = [];
  let memory = true;
  const { clock, crypto, network, log } = home;
  const createCore = async (options: Parameters<typeof home.createCore>[0]) => {
    if (!memory) throw new LocalError('OUT_OF_MEMORY', 'no memory for a core');
    const core = await home.createCore(options);
    cores.push(core);
    return core;
  };
  const under = await scene.attached({ environment: { clock, crypto, network, log, createCore } });
  memory = false;
  expect(() => cores[0]?.failForTest()).toThrow();
  await scene.until(under, 'PLATFORM_FAILURE');
  expect(under.reasons.at(-1)?.code).toBe('OUT_OF_MEMORY');
  await scene.world.sim.run(60_000);
  memory = true;
  await scene.until(under, 'ATTACHED', 2);
  expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'PLATFORM_FAILURE', 'ATTACHED']);
});
