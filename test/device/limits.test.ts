/** Limits of a device that are changed while it runs. */
import { afterEach, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { SCT, Scene } from '../client/scene.ts';

let scene: Scene;
afterEach(() => scene.close());

test('connections: raised and lowered, the one above is told so', async () => {
  scene = await Scene.make({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  const under = await scene.device();
  under.device.limitConnections(2);
  await scene.start(under);
  await scene.until(under, 'ATTACHED');
  const client = scene.client();
  const open = async (count: number): Promise<Connection[]> => {
    const all = Array.from({ length: count }, () => scene.connection({}, client));
    for (const each of all) await scene.settle(each.connect());
    await scene.world.sim.run(2000);
    return all;
  };
  const ends = (all: Connection[]): (string | undefined)[] => all.map(({ closeReason }) => closeReason?.code);
  expect(ends(await open(3))).toEqual([undefined, undefined, 'DEVICE_INTERNAL_ERROR']);
  under.device.limitConnections(20);
  const more = await open(20);
  expect(ends(more).slice(0, 18)).toEqual(Array(18).fill(undefined));
  expect(ends(more).slice(18)).toEqual(Array(2).fill('DEVICE_INTERNAL_ERROR'));
  under.device.limitConnections(1);
  expect(ends(await open(1))).toEqual(['DEVICE_INTERNAL_ERROR']);
  expect(ends(more).slice(0, 18)).toEqual(Array(18).fill(undefined));
  expect(() => under.device.limitConnections(5000)).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
});

test('handshakes begun through the base station: above the limit 4.29 with a time to wait', async () => {
  scene = await Scene.make({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  await scene.attached();
  const party = await scene.world.party();
  await party.open();
  const answers: [number, number | undefined][] = [];
  for (let i = 0; i < 66; i++) {
    const { initiate } = party.host.prepare({ name: 'device:pr-1.de-1' });
    const { status, maxAge } = await party.connect({ sct: SCT, initiate });
    answers.push([status, maxAge]);
  }
  expect(answers.slice(0, 64).map(([status]) => status)).toEqual(Array(64).fill(201));
  expect(answers.slice(64)).toEqual(Array(2).fill([429, 1]));
});

test('stream segments: raised and lowered while streams run, which wait and lose nothing', async () => {
  scene = await Scene.make();
  const under = await scene.device();
  under.device.limitStreamSegments(16);
  const received: number[] = [];
  under.device.addStreamListener(1, async (arriving) => {
    let length = 0;
    for await (const chunk of arriving.accept().readable) length += chunk.length;
    received.push(length);
  });
  await scene.start(under);
  await scene.until(under, 'ATTACHED');
  const connection = await scene.connected();
  const send = async (): Promise<number> => {
    const began = scene.world.sim.now;
    const stream = connection.createStream();
    await scene.settle(stream.open(1));
    await scene.settle(stream.write(new Uint8Array(1_000_000)));
    await scene.settle(stream.close());
    return scene.world.sim.now - began;
  };
  const slow = await send();
  under.device.limitStreamSegments(10_000);
  const fast = await send();
  under.device.limitStreamSegments(0);
  const slowAgain = await send();
  expect(received).toEqual([1_000_000, 1_000_000, 1_000_000]);
  expect(slow).toBeGreaterThan(2 * fast);
  expect(slowAgain).toBeGreaterThan(2 * fast);
});
