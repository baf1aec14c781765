/**
 * A device that answers with invalid CoAP: the tool gets an error at once, and the gateway serves it again over another
 * connection.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Connection, Gateway, type GatewayState } from '../../client/node.ts';
import { Router } from '../../protocol/coap/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import { DEVICE_PORT, ids } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { RawPeer } from '../support/fixture/raw-peer.ts';
import { option, path, Tool } from './gateway-tool.ts';

const MACHINE = 'strange';
const CONTENT = 0x45;

let fixture: ProductFixture;
let device: RawPeer;
let host: SimulatedHost;
let gateway: Gateway;
let tool: Tool;
let states: [GatewayState, SvcError | null][];

beforeEach(async () => {
  fixture = new ProductFixture({ link: { delay: 5 } });
  const router = new Router<Session>().on('GET', '/x', () => ({ status: 205 })).on('GET', '/never', () => new Promise(() => {}));
  device = await fixture.raw.device({ machine: MACHINE, router: router.on('GET', '/state', () => ({ status: 205, observe: true })) });
  const client = fixture.client();
  const connect = async (): Promise<Connection> => {
    const connection = fixture.directConnection(MACHINE, DEVICE_PORT, { ProductId: ids.productId, DeviceId: ids.deviceId }, client);
    await connection.connect();
    return connection;
  };
  host = fixture.sim.host('desk');
  states = [];
  const onState = (...state: [GatewayState, SvcError | null]): number => states.push(state);
  gateway = await Gateway.open({ environment: host, connection: await fixture.settle(connect()), connect, onState });
  tool = await Tool.open(fixture, host, '127.0.0.1', gateway.port);
  // The handshake completes at the client first.
  await fixture.sim.run(() => device.incoming.length === 1);
});
afterEach(async () => {
  tool.close();
  await fixture.settle(gateway.close());
});

/** The newest session of the device answers all later requests with an invalid option. */
function answersWithGarbage(): void {
  const { connection } = device.incoming.at(-1)!;
  const next = connection.nextEvent.bind(connection);
  connection.nextEvent = () => {
    const event = next();
    if (event?.kind !== 'message') return event;
    connection.messages.send(Uint8Array.of(8, CONTENT, ...event.data.subarray(2, 10), 0xf0));
    return connection.nextEvent();
  };
}

const answers = (): string[] => tool.received.filter(({ code }) => code !== '0.00').map(({ code, payload }) => `${code} ${payload}`);

test('the request is answered 5.02 at once, others under way 5.04, and the next one is served', { tags: ['slow'] }, async () => {
  tool.send({ code: 'GET', options: path('never'), token: Buffer.from([2]) });
  await fixture.sim.run(100);
  answersWithGarbage();
  const before = host.clock.now();
  tool.send({ code: 'GET', options: path('x') });
  await fixture.sim.run(() => answers().length === 2);
  expect(host.clock.now() - before).toBeLessThan(200);
  expect(answers().toSorted()).toEqual(["5.02 The device's answer cannot be understood", '5.04 The connection to the device was lost']);
  await fixture.sim.run(() => states.length === 3);
  expect(states).toMatchObject([
    ['connected', null],
    ['lost', { code: 'CLOSED', message: expect.stringContaining('sent a malformed message: CoAP:') }],
    ['connected', null],
  ]);
  expect((await tool.ask({ code: 'GET', options: path('x'), token: Buffer.from([3]) })).code).toBe('2.05');
});

test('the device gets BAD_MESSAGE', async () => {
  answersWithGarbage();
  tool.send({ code: 'GET', options: path('x') });
  expect(await fixture.settle(device.incoming[0]!.closed)).toMatchObject({
    code: 'CLOSED',
    message: 'the peer received a malformed message: CoAP: a message is malformed in an option nibble of 15',
  });
});

test('an invalid notification ends its observation with 5.02', { tags: ['slow'] }, async () => {
  const observe = { name: 'Observe' as const, value: Buffer.alloc(0) };
  const first = await tool.ask({ code: 'GET', options: [observe, ...path('state')], token: Buffer.from([4]) });
  expect(option(first, 'Observe')).toHaveLength(1);
  const { connection } = device.incoming[0]!;
  const send = connection.messages.send.bind(connection.messages);
  // Its last byte is a payload marker without a payload.
  connection.messages.send = (message) => send(Uint8Array.of(...message, 0xff));
  device.incoming[0]!.notify(1, { status: 205, observe: true });
  await fixture.sim.run(1000);
  expect(answers().at(-1)).toBe("5.02 The device's answer cannot be understood");
  expect(gateway.stats.observations).toBe(0);
});
