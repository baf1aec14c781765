/**
 * What is left of a search: when a connection switches to another direct path than the one that is being tried, and
 * after a while.
 */
import { expect, test } from 'vitest';
import { Scene } from '../../../bench/nat/scene.ts';
import type { Path } from '../../../protocol/path.ts';
import type { ServingSession } from '../../../runtime/rendezvous/index.ts';

test('leaves neither the tried path nor its socket behind', async () => {
  // Random ports at the client: the pair that answers is on a socket of a sprayed stage.
  const scene = new Scene({ client: 'random', device: 'port', seed: 1 });
  const { simulation, signalling, client } = scene;
  const tried: Path[] = [];
  const { migrate } = signalling;
  signalling.migrate = (path) => {
    tried.push(path);
    return migrate.call(signalling, path);
  };
  const search = await scene.begin();
  await simulation.run(() => tried.length > 0, 60_000);
  expect([tried[0]!.socket === client.host.socket.index, client.host.adopted]).toEqual([false, 1]);
  signalling.active = client.host.socket.path(scene.device.home.outside, 4_000);
  search.migrated(signalling.active);
  expect([client.host.adopted, signalling.all.includes(tried[0]!)]).toEqual([0, false]);
  client.host.environment.clock.schedule(30_000, () => {});
  await simulation.run(30_000);
  expect([tried.length, signalling.type, search.report().whyNotDirect]).toEqual([1, 'DIRECT', null]);
  scene.close();
});

test('leaves the results of its last attempt for a minute', async () => {
  const scene = new Scene({ client: 'port', device: 'port', seed: 1 });
  const { simulation, signalling } = scene;
  const search = await scene.begin();
  await simulation.run(() => signalling.type === 'DIRECT', 5_000);
  await simulation.run(50_000);
  expect(search.report().pairs).not.toEqual([]);
  await simulation.run(30_000);
  expect(search.report().pairs).toEqual([]);
  scene.close();
});

test('a device keeps the socket of a path as long as the connection has the path', async () => {
  const scene = new Scene({ client: 'port', device: 'random', seed: 1 });
  const { simulation, signalling, device } = scene;
  const end: ServingSession = signalling.device;
  let changed = (): void => {};
  const { on } = end;
  signalling.device.on = (event, listener) => {
    if (event === 'path') changed = listener as () => void;
    return on.call(end, event, listener as () => void);
  };
  let paths: readonly Path[] = [];
  Object.defineProperty(end.paths, 'all', { get: () => paths });
  const { adopt } = device.host;
  device.host.adopt = (socket) => {
    paths = [socket.path(scene.client.home.outside, 4_000)];
    return adopt.call(device.host, socket);
  };
  await scene.begin();
  await simulation.run(() => signalling.type === 'DIRECT', 60_000);
  await simulation.run(30_000);
  expect(device.host.adopted).toBe(1);
  paths = [];
  changed();
  expect(device.host.adopted).toBe(0);
  scene.close();
});
