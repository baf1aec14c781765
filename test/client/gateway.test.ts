/** The gateway in virtual time: a CoAP tool on the same host, the device behind a base station. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Connection, Gateway, type GatewayOptions, type SvcClient } from '../../client/node.ts';
import type { CoapResource, Device, DeviceCoapRequest } from '../../device/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import type { SimulatedHost } from '../../transport/sim/index.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { block, option, path, Tool } from './gateway-tool.ts';

const LOOPBACK = '127.0.0.1';

let fixture: ProductFixture;
let under: DeviceUnderTest;
let device: Device;
let host: SimulatedHost;
let client: SvcClient;
let gateway: Gateway;
let tool: Tool;
let states: string[];

beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  under = await fixture.attached();
  ({ device } = under);
  host = fixture.sim.host('desk');
  client = fixture.client();
  states = [];
  await open();
});
afterEach(async () => {
  tool.close();
  await fixture.settle(gateway.close());
});

async function connect(): Promise<Connection> {
  const connection = fixture.connection(
    { DeviceFingerprint: device.deviceFingerprint, KeepAliveInterval: 1000, KeepAliveMaxRetries: 3 },
    client,
  );
  await connection.connect();
  return connection;
}

async function open(options: Partial<GatewayOptions> = {}): Promise<void> {
  gateway = await Gateway.open({
    environment: host,
    connection: await fixture.settle(connect()),
    connect,
    onState: (state) => states.push(state),
    ...options,
  });
  tool = await Tool.open(fixture, host, LOOPBACK, gateway.port);
}

const run = (ms = 1000): Promise<boolean> => fixture.sim.run(ms);
const texts = (): string[] => tool.received.map(({ code, payload }) => `${code} ${payload}`);
const observe = (value: number): { name: 'Observe'; value: Buffer } => ({
  name: 'Observe',
  value: Buffer.from(value === 0 ? [] : [value]),
});

describe('requests', () => {
  test.each(['GET', 'POST', 'PUT', 'DELETE'])(
    '%s reaches its resource with payload and content format, and the answer comes back whole',
    async (method) => {
      const seen: Partial<DeviceCoapRequest>[] = [];
      device.addCoapResource(method, '/rooms/{room}', ({ parameters, payload, contentFormat }) => {
        seen.push({ parameters, payload, ...(contentFormat !== undefined && { contentFormat }) });
        return { status: 205, contentFormat: 50, payload: '{}', maxAge: 5 };
      });
      const options = [...path('rooms', 'k l'), { name: 'Content-Format' as const, value: Buffer.from([60]) }];
      const answer = await tool.ask({ code: method, options, payload: Buffer.from('body'), token: Buffer.from('abcdefgh') });
      expect(seen).toEqual([{ parameters: { room: 'k l' }, payload: new Uint8Array(Buffer.from('body')), contentFormat: 60 }]);
      expect(answer).toMatchObject({ code: '2.05', ack: true, token: Buffer.from('abcdefgh'), payload: Buffer.from('{}') });
      expect([option(answer, 'Content-Format'), option(answer, 'Max-Age')]).toEqual([['32'], ['05']]);
    },
  );

  test('without payload and content format they have neither at the device', async () => {
    const seen: unknown[] = [];
    device.addCoapResource('PUT', '/x', ({ payload, contentFormat }) => {
      seen.push(payload.length, contentFormat);
      return { status: 204 };
    });
    expect((await tool.ask({ code: 'PUT', options: path('x') })).code).toBe('2.04');
    expect(seen).toEqual([0, undefined]);
  });

  test('a payload without content format stays without', async () => {
    const seen: unknown[] = [];
    device.addCoapResource('PUT', '/x', ({ payload, contentFormat }) => {
      seen.push(payload.length, contentFormat);
      return { status: 204 };
    });
    await tool.ask({ code: 'PUT', options: path('x'), payload: Buffer.from('ab') });
    expect(seen).toEqual([2, undefined]);
  });

  test('a repeated request is answered again and reaches the device once', async () => {
    let runs = 0;
    device.addCoapResource('POST', '/count', () => ({ status: 205, payload: `${++runs}` }));
    for (let i = 0; i < 3; i++) tool.send({ code: 'POST', options: path('count'), messageId: 7 });
    await run();
    tool.send({ code: 'POST', options: path('count'), messageId: 7 });
    await run();
    expect(runs).toBe(1);
    expect(texts()).toEqual(['2.05 1', '2.05 1']);
  });

  test('a slow answer is acknowledged first, then sent and repeated until it is acknowledged', async () => {
    device.addCoapResource(
      'GET',
      '/slow',
      () => new Promise((resolve) => host.clock.schedule(3000, () => resolve({ status: 205, payload: 'x' }))),
    );
    const messageId = tool.send({ code: 'GET', options: path('slow') });
    await run(700);
    expect(tool.received).toMatchObject([{ code: '0.00', ack: true, messageId }]);
    await run(6000);
    const [, first, second] = tool.received;
    expect([first, second]).toMatchObject(Array(2).fill({ code: '2.05', confirmable: true, ack: false, messageId: first?.messageId }));
    tool.settle(second, 'ack');
    await run(100_000);
    expect(tool.received).toHaveLength(3);
  });

  test('a non-confirmable request gets a non-confirmable answer', async () => {
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    const answer = await tool.ask({ code: 'GET', options: path('x'), confirmable: false });
    expect(answer).toMatchObject({ code: '2.05', confirmable: false, ack: false });
  });

  test('a ping is reset, and so is an unknown message; garbage is ignored', async () => {
    const ping = tool.send({ code: '0.00', token: Buffer.alloc(0) });
    tool.raw(Buffer.from('4001', 'hex'));
    tool.raw(Buffer.from('80010001', 'hex'));
    tool.raw(Buffer.from('500100 02f0'.replace(' ', ''), 'hex'));
    tool.raw(Buffer.from('40010003ff', 'hex'));
    tool.raw(Buffer.from('49010004', 'hex'));
    tool.raw(Buffer.from('40450005', 'hex'));
    await run();
    expect(tool.received.map(({ code, reset, messageId }) => [code, reset, messageId])).toEqual(
      [ping, 3, 4, 5].map((id) => ['0.00', true, id]),
    );
  });
});

describe('an error answers', () => {
  test.each<[string, Parameters<Tool['send']>[0], string]>([
    ['a path that the device has not', { code: 'GET', options: path('.well-known', 'nothing') }, '4.04'],
    ['a query', { code: 'GET', options: [...path('x'), { name: 'Uri-Query', value: Buffer.from('a=b') }] }, '4.00'],
    ['Accept of another format', { code: 'GET', options: [...path('x'), { name: 'Accept', value: Buffer.from([50]) }] }, '4.06'],
  ])('%s', async (_, packet, code) => {
    let runs = 0;
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: `${++runs}` }));
    expect((await tool.ask(packet)).code).toBe(code);
    expect(runs).toBe(code === '4.06' ? 1 : 0);
  });
});

describe('blocks', () => {
  const body = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 31 + (i >> 8)) & 255));

  test('a body is sent in blocks of the requested size, whatever the tokens', async () => {
    let runs = 0;
    device.addCoapResource('GET', '/large', () => ({ status: 205, payload: body, contentFormat: 42, maxAge: runs++ }));
    const parts: Buffer[] = [];
    const etags = new Set<string>();
    for (let number = 0; ; number++) {
      const options = number === 0 ? path('large') : [...path('large'), { name: 'Block2' as const, value: block(number, false, 6) }];
      const answer = await tool.ask({ code: 'GET', options, token: Buffer.from([number, 9]) });
      expect(answer).toMatchObject({ code: '2.05', token: Buffer.from([number, 9]) });
      parts.push(answer.payload);
      for (const each of option(answer, 'ETag')) etags.add(each);
      expect(option(answer, 'Size2')).toEqual(['1388']);
      if (number === 4) {
        expect(option(answer, 'Block2')).toEqual([block(4, false, 6).toString('hex')]);
        break;
      }
    }
    expect(Buffer.concat(parts).equals(body)).toBe(true);
    expect([etags.size, runs]).toEqual([1, 1]);
    const small = await tool.ask({ code: 'GET', options: [...path('large'), { name: 'Block2', value: block(0, false, 2) }] });
    expect(small.payload.equals(body.subarray(0, 64))).toBe(true);
    const last = await tool.ask({ code: 'GET', options: [...path('large'), { name: 'Block2', value: block(78, false, 2) }] });
    expect(last.payload.equals(body.subarray(78 * 64))).toBe(true);
    expect((await tool.ask({ code: 'GET', options: [...path('large'), { name: 'Block2', value: block(79, false, 2) }] })).code).toBe(
      '4.00',
    );
  });

  test('a block of a discarded body comes from a new answer; with another method it is refused', async () => {
    let runs = 0;
    device.addCoapResource('GET', '/large', () => ({ status: 205, payload: Buffer.alloc(5000, `${++runs}`) }));
    device.addCoapResource('POST', '/large', () => ({ status: 205, payload: Buffer.alloc(5000, `${++runs}`) }));
    await tool.ask({ code: 'GET', options: path('large') });
    await tool.ask({ code: 'POST', options: path('large') });
    await run(61_000);
    const options = [...path('large'), { name: 'Block2' as const, value: block(1, false, 6) }];
    expect(await tool.ask({ code: 'GET', options })).toMatchObject({ code: '2.05', payload: Buffer.alloc(1024, '3') });
    expect((await tool.ask({ code: 'POST', options })).code).toBe('4.08');
    expect(runs).toBe(3);
  });

  const upload = (
    payload: Buffer,
    number: number,
    exponent = 6,
    extra: Parameters<Tool['send']>[0]['options'] = [],
  ): Parameters<Tool['send']>[0] => {
    const size = 16 << exponent;
    const more = (number + 1) * size < payload.length;
    const options = [...path('up'), { name: 'Block1' as const, value: block(number, more, exponent) }, ...extra];
    return { code: 'PUT', options, payload: payload.subarray(number * size, (number + 1) * size), token: Buffer.from([number]) };
  };

  test('a payload in blocks reaches the device whole and once', async () => {
    const seen: Buffer[] = [];
    device.addCoapResource('PUT', '/up', ({ payload }) => {
      seen.push(Buffer.from(payload));
      return { status: 204 };
    });
    for (let number = 0; number < 4; number++) {
      const answer = await tool.ask(upload(body, number));
      expect([answer.code, option(answer, 'Block1')]).toEqual(['2.31', [block(number, true, 6).toString('hex')]]);
    }
    const last = await tool.ask(upload(body, 4));
    expect([last.code, option(last, 'Block1')]).toEqual(['2.04', [block(4, false, 6).toString('hex')]]);
    expect(seen.map((each) => each.equals(body))).toEqual([true]);
  });

  test('two concurrent bodies for one path are distinguished by their Request-Tag', async () => {
    const seen: string[] = [];
    device.addCoapResource('PUT', '/up', ({ payload }) => {
      seen.push(`${payload.length} ${payload[0]} ${payload.at(-1)}`);
      return { status: 204 };
    });
    const [one, two] = [Buffer.alloc(40, 1), Buffer.alloc(40, 2)];
    const tag = (value: number): Parameters<typeof upload>[3] => [{ name: '292', value: Buffer.from([value]) }];
    for (let number = 0; number < 3; number++) {
      await tool.ask(upload(one, number, 0, tag(1)));
      await tool.ask(upload(two, number, 0, tag(2)));
    }
    expect(seen).toEqual(['40 1 1', '40 2 2']);
  });

  test.each<[string, Parameters<Tool['send']>[0], string]>([
    ['a gap', upload(body, 2), '4.08'],
    [
      'the highest block number',
      { ...upload(body, 0), options: [...path('up'), { name: 'Block1', value: block(0xfffff, false, 6) }] },
      '4.08',
    ],
    ['a block shorter than it says', { ...upload(body, 0), payload: Buffer.from('short') }, '4.00'],
    ['the reserved size', { ...upload(body, 0), options: [...path('up'), { name: 'Block1', value: block(0, true, 7) }] }, '4.00'],
    ['too large a size announced', upload(body, 0, 6, [{ name: 'Size1', value: Buffer.from([255, 255, 255]) }]), '4.13'],
  ])('%s is refused', async (_, packet, code) => {
    let runs = 0;
    device.addCoapResource('PUT', '/up', () => ({ status: 200 + ++runs }));
    expect((await tool.ask(packet)).code).toBe(code);
    expect(runs).toBe(0);
  });

  test('abandoned bodies block others for at most a minute', async () => {
    device.addCoapResource('PUT', '/up', () => ({ status: 204 }));
    const begin = (i: number): Parameters<Tool['send']>[0] => upload(body, 0, 6, [{ name: '292', value: Buffer.from([i]) }]);
    for (let i = 0; i < 64; i++) expect((await tool.ask(begin(i))).code).toBe('2.31');
    expect((await tool.ask(begin(64))).code).toBe('5.03');
    await run(61_000);
    expect((await tool.ask(begin(64))).code).toBe('2.31');
  });
});

describe('Observe', () => {
  let state: string;
  let resource: CoapResource;
  const register = { code: 'GET', options: [observe(0), ...path('state')], token: Buffer.from('t') };
  beforeEach(() => {
    state = 'one';
    resource = device.addCoapResource('GET', '/state', () => ({ status: 205, payload: state }), { observable: true });
  });
  const change = async (to: string, ms = 1000): Promise<void> => {
    state = to;
    resource.notify();
    await run(ms);
  };

  test('delivers the first answer and each change, in rising sequence, until it is cancelled', async () => {
    const first = await tool.ask(register);
    expect([first.ack, option(first, 'Observe').length]).toEqual([true, 1]);
    await change('two');
    tool.settle(tool.received[1], 'ack');
    await change('three');
    tool.settle(tool.received[2], 'ack');
    const sequences = tool.received.map((each) => Number.parseInt(`0${option(each, 'Observe')[0]}`, 16));
    expect(sequences).toEqual([0, 1, 2]);
    expect(tool.received.slice(1)).toMatchObject(Array(2).fill({ confirmable: true, token: Buffer.from('t') }));
    const last = await tool.ask({ ...register, options: [observe(1), ...path('state')] });
    expect([`${last.code} ${last.payload}`, option(last, 'Observe')]).toEqual(['2.05 three', []]);
    await run();
    await change('four');
    expect(texts()).toEqual(['2.05 one', '2.05 two', '2.05 three', '2.05 three']);
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test.each([
    ['renewed', 0],
    ['cancelled', 1],
  ])('%s before its first answer: only the later request is answered', async (_, value) => {
    let calls = 0;
    device.addCoapResource('GET', '/slow', () => (++calls === 1 ? new Promise(() => {}) : { status: 205, payload: 'now' }), {
      observable: true,
    });
    const slow = { code: 'GET', token: Buffer.from('s') };
    tool.send({ ...slow, options: [observe(0), ...path('slow')] });
    await run(400);
    expect(gateway.stats.requests).toBe(1);
    tool.send({ ...slow, options: [observe(value), ...path('slow')] });
    await run();
    expect(gateway.stats).toEqual({ requests: 0, observations: 1 - value });
    await run(61_000);
    expect(texts().filter((text) => text !== '0.00 ')).toEqual(['2.05 now']);
  });

  test('ends at a reset, also of a non-confirmable notification', async () => {
    await tool.ask({ ...register, confirmable: false });
    await change('two');
    expect(tool.received[1]).toMatchObject({ confirmable: false, payload: Buffer.from('two') });
    tool.settle(tool.received[1], 'reset');
    await run();
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test('keeps only the newest notification while one is unacknowledged, and ends if none is acknowledged', async () => {
    await tool.ask(register);
    for (const to of ['two', 'three', 'four']) await change(to, 100);
    expect(texts()).toEqual(['2.05 one', '2.05 two']);
    tool.settle(tool.received[1], 'ack');
    await run(100);
    expect(texts()).toEqual(['2.05 one', '2.05 two', '2.05 four']);
    await run(200_000);
    expect(texts().slice(3)).toEqual(Array(4).fill('2.05 four'));
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test('makes every eighth non-confirmable notification confirmable, to see whether a client listens', async () => {
    await tool.ask({ ...register, confirmable: false });
    for (let i = 0; i < 8; i++) await change(`${i}`, 100);
    expect(tool.received.map(({ confirmable }) => confirmable)).toEqual([...Array(8).fill(false), true]);
    await run(200_000);
    expect(gateway.stats.observations).toBe(0);
  });

  test('ends when an answer ends it at the device', async () => {
    await tool.ask(register);
    resource.remove();
    await run();
    expect(texts()).toEqual(['2.05 one', '4.04 Not found']);
    expect([option(tool.received[1], 'Observe'), gateway.stats.observations]).toEqual([[], 0]);
  });

  test('is answered once for a resource that cannot be observed', async () => {
    device.addCoapResource('GET', '/plain', () => ({ status: 205, payload: 'x' }));
    const answer = await tool.ask({ ...register, options: [observe(0), ...path('plain')] });
    expect([answer.code, option(answer, 'Observe'), gateway.stats]).toEqual(['2.05', [], { requests: 0, observations: 0 }]);
  });

  test('sends a large state as a notification with its first block; the tool requests the rest', async () => {
    await tool.ask(register);
    await change('x'.repeat(3000));
    const [, notification] = tool.received;
    expect([notification?.payload.length, option(notification, 'Block2')]).toEqual([1024, [block(0, true, 6).toString('hex')]]);
    tool.settle(notification, 'ack');
    const rest = await tool.ask({
      code: 'GET',
      options: [...path('state'), { name: 'Block2', value: block(2, false, 6) }],
      token: Buffer.from('u'),
    });
    expect([rest.payload.length, option(rest, 'ETag')]).toEqual([3000 - 2048, option(notification, 'ETag')]);
  });

  test('above 32 is ignored: the GET is like any other', async () => {
    for (let i = 0; i < 33; i++) await tool.ask({ ...register, token: Buffer.from([i]) });
    expect(tool.received.map((each) => option(each, 'Observe').length)).toEqual([...Array(32).fill(1), 0]);
    expect(gateway.stats).toEqual({ requests: 0, observations: 32 });
  });

  test('continues with the next connection', async () => {
    await tool.ask(register);
    state = 'two';
    void device.connection(1).close();
    await run(5000);
    expect(states).toEqual(['connected', 'lost', 'connected']);
    expect(texts()[1]).toBe('2.05 two');
    tool.settle(tool.received[1], 'ack');
    await change('three');
    expect(texts().at(-1)).toBe('2.05 three');
    expect(resource.observers).toBe(1);
  });
});

describe('limits and loss', () => {
  test('a device that takes too long: 5.04, and its late answer is dropped', async () => {
    let answer: (() => void) | undefined;
    device.addCoapResource('GET', '/never', () => new Promise((resolve) => (answer = () => resolve({ status: 205 }))));
    tool.send({ code: 'GET', options: path('never') });
    await run(60_500);
    expect(texts()).toEqual(['0.00 ', '5.04 The device did not answer in time']);
    tool.settle(tool.received[1], 'ack');
    answer?.();
    await run();
    expect(tool.received).toHaveLength(2);
    expect(gateway.stats.requests).toBe(0);
  });

  test('above 24 requests under way: 5.03 with a time to wait', async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    for (let i = 0; i < 25; i++) tool.send({ code: 'GET', options: path('never'), token: Buffer.from([i]) });
    await run(400);
    expect(tool.received).toMatchObject([{ code: '5.03', token: Buffer.from([24]) }]);
    expect(option(tool.received[0], 'Max-Age')).toEqual(['01']);
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    await run(61_000);
    expect((await tool.ask({ code: 'GET', options: path('x'), token: Buffer.from('x') })).code).toBe('2.05');
  });

  test('a connection that ended before the gateway had it is opened again', async () => {
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    tool.close();
    await fixture.settle(gateway.close());
    states = [];
    const ended = await fixture.settle(connect());
    await fixture.settle(ended.close());
    await open({ connection: ended });
    await run(60_000);
    expect(states).toEqual(['lost', 'connected']);
    expect((await tool.ask({ code: 'GET', options: path('x') })).code).toBe('2.05');
  });

  test('a connection lost meanwhile: 5.04; while there is none: 5.03; then it serves again', async () => {
    device.addCoapResource('GET', '/never', () => new Promise(() => {}));
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    tool.send({ code: 'GET', options: path('never') });
    await run(100);
    fixture.sim.link(under.host, 'station', { delay: 10, loss: 1 });
    await run(30_000);
    expect(tool.received.filter(({ code }) => code !== '0.00').at(-1)).toMatchObject({ code: '5.04' });
    const down = await tool.ask({ code: 'GET', options: path('x') });
    expect([down.code, option(down, 'Max-Age').length]).toEqual(['5.03', 1]);
    fixture.sim.link(under.host, 'station', { delay: 10, loss: 0 });
    await fixture.sim.run(() => states.at(-1) === 'connected', 600_000);
    await run(20_000);
    expect((await tool.ask({ code: 'GET', options: path('x'), token: Buffer.from('z') })).code).toBe('2.05');
  });

  test('a device with another key ends it', async () => {
    const connection = await fixture.settle(connect());
    await fixture.settle(gateway.close());
    tool.close();
    states.length = 0;
    const wrong = async (): Promise<Connection> => {
      const other = fixture.connection({ DeviceFingerprint: 'ab'.repeat(32) }, client);
      await other.connect();
      return other;
    };
    await open({ connection, connect: wrong });
    void connection.close();
    await run(60_000);
    expect(states).toEqual(['connected', 'lost', 'ended']);
    device.addCoapResource('GET', '/x', () => ({ status: 205 }));
    expect((await tool.ask({ code: 'GET', options: path('x') })).code).toBe('5.03');
  });

  test.each([
    [false, 'ended'],
    [true, 'lost'],
  ])('a token that the base station rejects ends it, unless the next connect may have another one (%s)', async (renewsToken, state) => {
    const connection = await fixture.settle(connect());
    await fixture.settle(gateway.close());
    tool.close();
    const rejected = () => Promise.reject(new RemoteError('TOKEN_REJECTED', 'no'));
    await open({ connection, connect: rejected, renewsToken });
    void connection.close();
    await run(60_000);
    expect(states.at(-1)).toBe(state);
  });

  test('after close it answers nothing, and the device has neither connection nor observer', async () => {
    const resource = device.addCoapResource('GET', '/state', () => ({ status: 205 }), { observable: true });
    await tool.ask({ code: 'GET', options: [observe(0), ...path('state')] });
    await fixture.settle(gateway.close());
    await fixture.settle(gateway.close());
    tool.send({ code: 'GET', options: path('state') });
    await run(60_000);
    expect(tool.received).toHaveLength(1);
    expect(resource.observers).toBe(0);
    expect(() => device.connection(1)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test.each([1, 2, 3])('mutated datagrams break nothing (seed %i)', async (seed) => {
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
      tool.raw(bytes);
      if (i % 200 === 0) await run(100);
    }
    await run(70_000);
    expect((await tool.ask({ code: 'GET', options: path('x'), messageId: 60_000, token: Buffer.from('end') })).code).toBe('2.05');
    expect(gateway.stats.requests).toBe(0);
  });
});
