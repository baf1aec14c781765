/**
 * A connection that switches to another direct path than the one that is being tried.
 */
import { expect, test } from 'vitest';
import { Scene } from '../../../bench/nat/scene.ts';
import type { Path } from '../../../protocol/path.ts';

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
  signalling.path = client.host.socket.path(scene.device.home.outside, 4_000);
  search.migrated(signalling.path);
  expect([client.host.adopted, signalling.paths.includes(tried[0]!)]).toEqual([0, false]);
  client.host.environment.clock.schedule(30_000, () => {});
  await simulation.run(30_000);
  expect([tried.length, signalling.type, search.report().whyNotDirect]).toEqual([1, 'DIRECT', null]);
  scene.close();
});
