/**
 * The limits of the gateway, connections that it loses, and mutated datagrams, in virtual time.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import type { Device } from '../../device/index.ts';
import type { ProductFixture } from '../support/fixture/products.ts';
import { GatewayBench, observe } from './gateway-bench.ts';
import { option, path } from './gateway-tool.ts';

let bench: GatewayBench;
let fixture: ProductFixture;
let device: Device;

beforeEach(async () => {
  bench = await GatewayBench.start();
  ({ fixture, device } = bench);
});
afterEach(() => bench.close());

describe('limits and loss', () => {
  test('a device that takes too long: 5.04, and its late answer is dropped', { tags: ['slow'] }, async () => {
    let answer: (() => void) | undefined;
    device.addCoapResource('GET', '/never', () => new Promise((resolve) => (answer = () => resolve({ status: 205 }))));
    bench.tool.send({ code: 'GET', options: path('never') });
    await bench.run(60_500);
    expect(bench.texts()).toEqual(['0.00 ', '5.04 The device did not answer in time']);
    bench.tool.settle(bench.tool.received[1], 'ack');
    answer?.();
    await bench.run();
    expect(bench.tool.received).toHaveLength(2);
    expect(bench.gateway.stats.requests).toBe(0);
  });

  test('above 24 requests under way: 5.03 with a time to wait', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    for (let i = 0; i < 25; i++) bench.tool.send({ code: 'GET', options: path('never'), token: Buffer.from([i]) });
    await bench.run(400);
    expect(bench.tool.received).toMatchObject([{ code: '5.03', token: Buffer.from([24]) }]);
    expect(option(bench.tool.received[0], 'Max-Age')).toEqual(['01']);
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    await bench.run(61_000);
    expect((await bench.tool.ask({ code: 'GET', options: path('x'), token: Buffer.from('x') })).code).toBe('2.05');
  });

  test('a connection that ended before the gateway had it is opened again', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    bench.tool.close();
    await fixture.settle(bench.gateway.close());
    bench.states = [];
    const ended = await fixture.settle(bench.connect());
    await fixture.settle(ended.close());
    await bench.open({ connection: ended });
    await bench.run(60_000);
    expect(bench.states).toEqual(['lost', 'connected']);
    expect((await bench.tool.ask({ code: 'GET', options: path('x') })).code).toBe('2.05');
  });

  test('a connection lost meanwhile: 5.04; while there is none: 5.03; then it serves again', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    bench.tool.send({ code: 'GET', options: path('never') });
    await bench.run(100);
    fixture.sim.link(bench.under.host, 'station', { delay: 10, loss: 1 });
    await bench.run(30_000);
    expect(bench.tool.received.filter(({ code }) => code !== '0.00').at(-1)).toMatchObject({ code: '5.04' });
    const down = await bench.tool.ask({ code: 'GET', options: path('x') });
    expect([down.code, option(down, 'Max-Age').length]).toEqual(['5.03', 1]);
    fixture.sim.link(bench.under.host, 'station', { delay: 10, loss: 0 });
    await fixture.sim.run(() => bench.states.at(-1) === 'connected', 600_000);
    await bench.run(20_000);
    expect((await bench.tool.ask({ code: 'GET', options: path('x'), token: Buffer.from('z') })).code).toBe('2.05');
  });

  test('a device with another key ends it', { tags: ['slow'] }, async () => {
    const connection = await fixture.settle(bench.connect());
    await fixture.settle(bench.gateway.close());
    bench.tool.close();
    bench.states.length = 0;
    const wrong = async (): Promise<Connection> => {
      const other = fixture.connection({ DeviceFingerprint: 'ab'.repeat(32) }, bench.client);
      await other.connect();
      return other;
    };
    await bench.open({ connection, connect: wrong });
    void connection.close();
    await bench.run(60_000);
    expect(bench.states).toEqual(['connected', 'lost', 'ended']);
    device.addCoapResource('GET', '/x', () => ({ status: 205 }));
    expect((await bench.tool.ask({ code: 'GET', options: path('x') })).code).toBe('5.03');
  });

  test('after close it answers nothing, and the device has neither connection nor observer', async () => {
    const resource = device.addCoapResource('GET', '/state', () => ({ status: 205 }), { observable: true });
    await bench.tool.ask({ code: 'GET', options: [observe(0), ...path('state')] });
    await fixture.settle(bench.gateway.close());
    await fixture.settle(bench.gateway.close());
    bench.tool.send({ code: 'GET', options: path('state') });
    await bench.run(60_000);
    expect(bench.tool.received).toHaveLength(1);
    expect(resource.observers).toBe(0);
    expect(() => device.connection(1)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test.each([1, 2, 3])('mutated datagrams break nothing (seed %i)', { tags: ['slow'] }, async (seed) => {
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    let random = seed * 2_654_435_761;
    const draw = (below: number): number => {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((random / 2 ** 32) * below);
    };
    const base = Buffer.from('44010001deadbeef60b178d1060a00ff31323334', 'hex');
    for (let i = 0; i < 2000; i++) {
      const bytes = Buffer.from(base).subarray(0, 1 + draw(base.length));
      for (let flips = draw(5); flips > 0; flips--) bytes[draw(bytes.length)] = draw(256);
      bench.tool.raw(bytes);
      if (i % 200 === 0) await bench.run(100);
    }
    await bench.run(70_000);
    expect((await bench.tool.ask({ code: 'GET', options: path('x'), messageId: 60_000, token: Buffer.from('end') })).code).toBe('2.05');
    expect(bench.gateway.stats.requests).toBe(0);
  });
});
