/** The gateway over real sockets: the client of the package coap, the gateway, and a device on loopback. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, type ObserveReadStream, type OptionValue, request } from 'coap';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Gateway, nodeEnvironment } from '../../client/node.ts';
import { LARGE, StateDevice } from './state-device.ts';

let scene: StateDevice;
let gateway: Gateway;

beforeAll(async () => {
  scene = await StateDevice.start();
  gateway = await Gateway.open({ environment: nodeEnvironment(), connect: (signal) => scene.connect(signal) });
  // It connects in the background.
  for (let code = '5.03'; code === '5.03'; ) ({ code } = await ask('GET', '/state'));
});
afterAll(async () => {
  await gateway.close();
  await scene.close();
});

async function ask(
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  pathname: string,
  payload?: Buffer,
  options: Record<string, OptionValue> = {},
): Promise<IncomingMessage> {
  const outgoing = request({ hostname: '127.0.0.1', port: gateway.port, method, pathname, agent: false, options });
  outgoing.end(payload);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

test('each method passes', async () => {
  const done: string[] = [];
  for (const method of ['GET', 'PUT', 'POST', 'DELETE'] as const) {
    scene.device.addCoapResource(method, '/echo', ({ payload }) => ({
      status: 205,
      payload: `${done.push(method)} ${Buffer.from(payload)}`,
    }));
    const { code, payload } = await ask(method, '/echo', Buffer.from(method));
    expect([code, payload.toString()]).toEqual(['2.05', `${done.length} ${method}`]);
  }
  expect((await ask('GET', '/none')).code).toBe('4.04');
});

test('100,000 bytes pass both ways in blocks', { tags: ['slow'] }, async () => {
  expect((await ask('PUT', '/state', LARGE, { Block1: Buffer.from([6]) })).code).toBe('2.04');
  expect(scene.stored.equals(LARGE)).toBe(true);
  const { code, payload, headers } = await ask('GET', '/state');
  expect([code, headers['Content-Format']]).toEqual(['2.05', 'application/octet-stream']);
  expect(payload.equals(LARGE)).toBe(true);
});

test('observers receive each change', async () => {
  await ask('PUT', '/state', Buffer.from('first'));
  const agent = new Agent({ type: 'udp4' });
  const [one, other] = [await observe(agent), await observe(agent)];
  for (const state of ['second', 'third']) {
    const answered = Promise.all([one.next(), other.next()]);
    await ask('PUT', '/state', Buffer.from(state));
    await answered;
  }
  expect([one.seen, other.seen]).toEqual(Array(2).fill(['first', 'second', 'third']));
  expect(scene.resource.observers).toBe(2);
  for (const { stream } of [one, other]) stream.close();
});

/** An observation of the state that has received its first answer. */
async function observe(agent: Agent): Promise<{ stream: ObserveReadStream; seen: string[]; next: () => Promise<void> }> {
  const outgoing = request({ hostname: '127.0.0.1', port: gateway.port, pathname: '/state', observe: true, agent });
  outgoing.end();
  const [stream] = (await once(outgoing, 'response')) as [ObserveReadStream];
  const seen: string[] = [];
  let answered = (): void => {};
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      answered = resolve;
    });
  const first = next();
  stream.on('data', (data: Buffer) => {
    seen.push(data.toString());
    answered();
  });
  await first;
  return { stream, seen, next };
}
