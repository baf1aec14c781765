/**
 * Limits of a device that change while it runs.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { SCT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;

test('connections: raised and lowered, and a connection above the limit gets the reason', async () => {
  fixture = new ProductFixture();
  await fixture.station({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  const under = await fixture.device();
  under.device.limitConnections(2);
  await fixture.start(under);
  await fixture.until(under, 'ATTACHED');
  const client = fixture.client();
  const refused = new Map<Connection, string>();
  const open = async (count: number): Promise<Connection[]> => {
    const all = Array.from({ length: count }, () => fixture.connection({}, client));
    for (const each of all) await fixture.settle(each.connect().catch(({ code }) => void refused.set(each, code)));
    await fixture.sim.run(2000);
    return all;
  };
  const ends = (all: Connection[]): (string | undefined)[] => all.map((each) => refused.get(each) ?? each.closeReason?.code);
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

test('handshakes that begin through the base station: above the limit 4.29 with a time to wait', async () => {
  fixture = new ProductFixture();
  await fixture.station({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  await fixture.attached();
  const peer = await fixture.raw.opened();
  const answers: [number, number | undefined][] = [];
  for (let i = 0; i < 66; i++) {
    const { initiate } = peer.host.dials.prepare({ name: 'device:pr-1.de-1' });
    const { status, maxAge } = await peer.connect({ sct: SCT, initiate });
    answers.push([status, maxAge]);
  }
  expect(answers.slice(0, 64).map(([status]) => status)).toEqual(Array(64).fill(201));
  expect(answers.slice(64)).toEqual(Array(2).fill([429, 1]));
});

test('stream segments: raised and lowered while streams run, which wait and lose nothing', async () => {
  fixture = await ProductFixture.withStation();
  const under = await fixture.device();
  under.device.limitStreamSegments(128);
  const received: number[] = [];
  under.device.addStreamListener(1, async (arriving) => {
    let length = 0;
    for await (const chunk of arriving.accept().readable) length += chunk.length;
    received.push(length);
  });
  await fixture.start(under);
  await fixture.until(under, 'ATTACHED');
  const connection = await fixture.connected();
  const send = async (): Promise<number> => {
    const began = fixture.sim.now;
    const stream = connection.openStream(1);
    await fixture.settle(stream.opened);
    await fixture.settle(stream.write(new Uint8Array(1_000_000)));
    await fixture.settle(stream.close());
    return fixture.sim.now - began;
  };
  const slow = await send();
  under.device.limitStreamSegments(10_000);
  const fast = await send();
  under.device.limitStreamSegments(128);
  const slowAgain = await send();
  expect(received).toEqual([1_000_000, 1_000_000, 1_000_000]);
  expect(slow).toBeGreaterThan(2 * fast);
  expect(slowAgain).toBeGreaterThan(2 * fast);
});
