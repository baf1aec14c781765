/**
 * Refused and ignored options through the gateway: `gateway-request.test.ts` has which options these are. A confirmable
 * request with a critical option that the gateway does not recognize is answered 4.02, any other rejected (RFC 7252
 * §5.4.1, §4.3).
 */
import type { NamedOption, Packet } from 'coap-packet';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Gateway } from '../../client/node.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { block, path, Tool } from './gateway-tool.ts';

let fixture: ProductFixture;
let gateway: Gateway;
let tool: Tool;
let runs: number;

beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  const { device } = await fixture.attached();
  runs = 0;
  for (const method of ['GET', 'PUT']) device.addCoapResource(method, '/x', () => ({ status: 205, payload: `${++runs}` }));
  const connect = async () => {
    const connection = fixture.connection({ DeviceFingerprint: device.deviceFingerprint });
    await connection.connect();
    return connection;
  };
  const host = fixture.sim.host('desk');
  gateway = await Gateway.open({ environment: host, connection: await fixture.settle(connect()), connect });
  tool = await Tool.open(fixture, host, '127.0.0.1', gateway.port);
});
afterEach(async () => {
  tool.close();
  await fixture.settle(gateway.close());
});

const named = (name: string, value: Buffer | string = ''): NamedOption => ({ name: name as 'Uri-Path', value: Buffer.from(value) });

describe('an unrecognized critical option', () => {
  const first = named('Block1', block(0, true, 0));
  /** The diagnostic that the tool gets, and the method. */
  const unrecognized: [string, NamedOption[], string][] = [
    ['GET', [named('2049')], 'option 2049 is not supported'],
    // Refused before anything else that the request might be answered with.
    ['GET', [named('Proxy-Uri', 'coap://a'), named('2049')], 'option 2049 is not supported'],
    ['FETCH', [named('2049')], 'option 2049 is not supported'],
    ['PUT', [first, named('2049')], 'option 2049 is not supported'],
    ['PUT', [first, named('Block1', block(0, false, 0))], 'option 27 is repeated'],
  ];
  const packets = unrecognized.map(
    ([code, options]): Packet => ({
      code,
      options: [...path('x'), ...options],
      ...(code === 'PUT' && { payload: Buffer.alloc(16) }),
    }),
  );

  test('a confirmable request is answered 4.02', { tags: ['slow'] }, async () => {
    const answers: unknown[] = [];
    for (const packet of packets) {
      const { code, ack, payload } = await tool.ask(packet);
      answers.push([code, ack, `${payload}`]);
    }
    expect(answers).toEqual(unrecognized.map(([, , problem]) => ['4.02', true, `Critical ${problem}`]));
    expect(runs).toBe(0);
  });

  test('a non-confirmable request is reset, once', { tags: ['slow'] }, async () => {
    const messageIds: number[] = [];
    for (const packet of packets) {
      const messageId = tool.send({ ...packet, confirmable: false });
      tool.send({ ...packet, confirmable: false, messageId });
      messageIds.push(messageId);
    }
    await fixture.sim.run(10_000);
    const reset = { code: '0.00', reset: true, token: Buffer.alloc(0) };
    expect(tool.received).toMatchObject(messageIds.map((messageId) => ({ ...reset, messageId })));
    expect(runs).toBe(0);
  });
});

test('another refusal, of the gateway or of the device, answers a non-confirmable request, too', async () => {
  for (const [option, code] of [
    [named('Proxy-Uri', 'coap://a'), '5.05'],
    [named('2050'), '4.02'],
    [named('Uri-Query', 'a=b'), '4.00'],
  ] as const)
    for (const confirmable of [true, false]) {
      const answer = await tool.ask({ code: 'GET', options: [...path('x'), option], confirmable });
      expect([answer.code, answer.reset, runs]).toEqual([code, false, 0]);
    }
});

test('an ignored option leads to a plain request', async () => {
  for (const confirmable of [true, false]) {
    const ignored = [named('Observe', Buffer.alloc(4)), named('Size1', Buffer.alloc(5, 255))];
    const { code, options } = await tool.ask({ code: 'GET', options: [...path('x'), ...ignored], confirmable });
    expect([code, options.some(({ name }) => name === 'Observe')]).toEqual(['2.05', false]);
  }
});
