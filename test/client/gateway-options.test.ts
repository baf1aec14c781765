/**
 * Critical options that the gateway does not recognize: a confirmable request is answered 4.02, any other rejected
 * (RFC 7252 §5.4.1, §4.3).
 */
import { generate, type NamedOption, type Packet } from 'coap-packet';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deviceRequest, unrecognizedOption } from '../../client/gateway/request.ts';
import { Gateway } from '../../client/node.ts';
import type { CoapMessage } from '../../protocol/coap/index.ts';
import { decodeDatagram } from '../../protocol/coap-udp/message.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { block, path, Tool } from './gateway-tool.ts';

const named = (name: string, value: Buffer | string = ''): NamedOption => ({ name: name as 'Uri-Path', value: Buffer.from(value) });
const short = block(0, false, 0);

type Refused = [string, NamedOption[], string, string?];

/** The diagnostic that the tool gets, and the method if it is not GET. */
const unrecognized: Refused[] = [
  ['unknown', [named('2049')], 'option 2049 is not supported'],
  ['If-Match', [named('If-Match', 'a')], 'option 1 is not supported', 'PUT'],
  ['If-None-Match', [named('If-None-Match')], 'option 5 is not supported', 'PUT'],
  ['Accept, with a method that acts before it answers', [named('Accept', Buffer.of(50))], 'option 17 is not supported', 'PUT'],
  ['Accept of 3 bytes', [named('Accept', Buffer.alloc(3))], 'option 17 has a wrong length'],
  ['Accept twice', [named('Accept'), named('Accept')], 'option 17 is repeated'],
  ['Uri-Host, empty', [named('Uri-Host')], 'option 3 has a wrong length'],
  ['Uri-Host twice', [named('Uri-Host', 'a'), named('Uri-Host', 'a')], 'option 3 is repeated'],
  ['Uri-Port of 3 bytes', [named('Uri-Port', Buffer.alloc(3))], 'option 7 has a wrong length'],
  ['Uri-Port twice', [named('Uri-Port'), named('Uri-Port')], 'option 7 is repeated'],
  ['Uri-Path of 256 bytes', path('x'.repeat(256)), 'option 11 has a wrong length'],
  ['Uri-Query of 256 bytes', [named('Uri-Query', 'x'.repeat(256))], 'option 15 has a wrong length'],
  ['Block1 of 4 bytes', [named('Block1', Buffer.alloc(4))], 'option 27 has a wrong length', 'PUT'],
  ['Block1 twice', [named('Block1', block(0, true, 0)), named('Block1', short)], 'option 27 is repeated', 'PUT'],
  ['Block2 of 4 bytes', [named('Block2', Buffer.alloc(4))], 'option 23 has a wrong length'],
  ['Block2 twice', [named('Block2', short), named('Block2', short)], 'option 23 is repeated'],
  ['Proxy-Uri of 1,035 bytes', [named('Proxy-Uri', 'x'.repeat(1035))], 'option 35 has a wrong length'],
  ['Proxy-Scheme twice', [named('Proxy-Scheme', 'http'), named('Proxy-Scheme', 'http')], 'option 39 is repeated'],
  ['unknown, beside Proxy-Uri', [named('Proxy-Uri', 'coap://a'), named('2049')], 'option 2049 is not supported'],
  ['unknown, with an unknown method', [named('2049')], 'option 2049 is not supported', 'FETCH'],
  ['unknown, in the first of many blocks', [named('Block1', block(0, true, 0)), named('2049')], 'option 2049 is not supported', 'PUT'],
];

/** The message that the gateway decodes from a packet. */
function messageOf(packet: Packet): CoapMessage {
  const datagram = decodeDatagram(generate({ token: Buffer.from([1]), messageId: 1, ...packet }, 65_000));
  if (datagram?.message === undefined) throw new Error('the packet is no message');
  return datagram.message;
}

function packetOf([, options, , code = 'GET']: Refused): Packet {
  return { code, options: [...path('x'), ...options], ...(code === 'PUT' && { payload: Buffer.alloc(16) }) };
}

describe('an unrecognized critical option', () => {
  test.each(unrecognized)('%s', (...refused) => {
    const reply = unrecognizedOption(messageOf(packetOf(refused)));
    expect([reply?.status, new TextDecoder().decode(reply?.payload)]).toEqual([402, `Critical ${refused[2]}`]);
  });
});

describe('an elective option is ignored', () => {
  test.each<[string, NamedOption[]]>([
    ['Observe of 4 bytes', [named('Observe', Buffer.alloc(4))]],
    ['Content-Format of 3 bytes', [named('Content-Format', Buffer.alloc(3))]],
    ['Content-Format twice', [named('Content-Format', Buffer.of(60)), named('Content-Format', Buffer.of(50))]],
    ['ETag of 9 bytes', [named('ETag', Buffer.alloc(9))]],
    ['Max-Age twice', [named('Max-Age'), named('Max-Age')]],
    ['Size1 of 5 bytes', [named('Size1', Buffer.alloc(5, 255))]],
  ])('%s', (_, options) => {
    const message = messageOf({ code: 'GET', options: [...path('x'), ...options] });
    expect(unrecognizedOption(message)).toBeUndefined();
    expect(deviceRequest(message)).toMatchObject({ method: 'GET', path: '/x', query: [], observe: undefined });
  });
});

describe('over the network', () => {
  let fixture: ProductFixture;
  let gateway: Gateway;
  let tool: Tool;
  let runs: number;

  beforeEach(async () => {
    fixture = new ProductFixture();
    await fixture.station();
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

  const [first, last] = [unrecognized[0], unrecognized.at(-1)] as [Refused, Refused];
  test.each([first, last])('%s: a confirmable request is answered 4.02', async (...refused) => {
    const { code, ack, payload } = await tool.ask(packetOf(refused));
    expect([code, ack, `${payload}`, runs]).toEqual(['4.02', true, `Critical ${refused[2]}`, 0]);
  });

  test.each([first, last])('%s: a non-confirmable request is reset, once', async (...refused) => {
    const packet = { ...packetOf(refused), confirmable: false };
    const messageId = tool.send(packet);
    tool.send({ ...packet, messageId });
    await fixture.sim.run(10_000);
    expect(tool.received).toMatchObject([{ code: '0.00', reset: true, messageId, token: Buffer.alloc(0) }]);
    expect(runs).toBe(0);
  });

  // More of them: `gateway-request.test.ts`.
  describe('another refusal answers a non-confirmable request, too:', () => {
    test.each<[string, NamedOption, string]>([
      ['of the gateway', named('Proxy-Uri', 'coap://a'), '5.05'],
      ['of the device', named('Uri-Query', 'a=b'), '4.00'],
    ])('%s', async (_, option, code) => {
      for (const confirmable of [true, false]) {
        const answer = await tool.ask({ code: 'GET', options: [...path('x'), option], confirmable });
        expect([answer.code, answer.reset, runs]).toEqual([code, false, 0]);
      }
    });
  });

  test('an elective option is ignored', async () => {
    for (const confirmable of [true, false]) {
      const options = [...path('x'), named('Observe', Buffer.alloc(4))];
      const { code, options: answered } = await tool.ask({ code: 'GET', options, confirmable });
      expect([code, answered.some(({ name }) => name === 'Observe')]).toEqual(['2.05', false]);
    }
  });
});
