/** The gateway in virtual time: a CoAP tool on the same host, the device behind a base station. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../client/node.ts';
import type { CoapResource, Device, DeviceCoapRequest } from '../../device/index.ts';
import { GatewayBench, observe } from './gateway-bench.ts';
import { block, option, path, type Tool } from './gateway-tool.ts';

let bench: GatewayBench;
let device: Device;
let gateway: Gateway;
let tool: Tool;

beforeEach(async () => {
  bench = await GatewayBench.start();
  ({ device, gateway, tool } = bench);
});
afterEach(() => bench.close());

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

  test.each([
    ['payload and content format they have neither', {}, 0],
    ['content format a payload stays without', { payload: Buffer.from('ab') }, 2],
  ])('without %s at the device', async (_, packet, length) => {
    const seen: unknown[] = [];
    device.addCoapResource('PUT', '/x', ({ payload, contentFormat }) => {
      seen.push(payload.length, contentFormat);
      return { status: 204 };
    });
    expect((await tool.ask({ code: 'PUT', options: path('x'), ...packet })).code).toBe('2.04');
    expect(seen).toEqual([length, undefined]);
  });

  test('a repeated request is answered again and reaches the device once', async () => {
    let runs = 0;
    device.addCoapResource('POST', '/count', () => ({ status: 205, payload: `${++runs}` }));
    for (let i = 0; i < 3; i++) tool.send({ code: 'POST', options: path('count'), messageId: 7 });
    await bench.run();
    tool.send({ code: 'POST', options: path('count'), messageId: 7 });
    await bench.run();
    expect(runs).toBe(1);
    expect(bench.texts()).toEqual(['2.05 1', '2.05 1']);
  });

  test('a slow answer is acknowledged first, then sent and repeated until it is acknowledged', { tags: ['slow'] }, async () => {
    device.addCoapResource(
      'GET',
      '/slow',
      () => new Promise((resolve) => bench.host.clock.schedule(3000, () => resolve({ status: 205, payload: 'x' }))),
    );
    const messageId = tool.send({ code: 'GET', options: path('slow') });
    await bench.run(700);
    expect(tool.received).toMatchObject([{ code: '0.00', ack: true, messageId }]);
    await bench.run(6000);
    const [, first, second] = tool.received;
    expect([first, second]).toMatchObject(Array(2).fill({ code: '2.05', confirmable: true, ack: false, messageId: first?.messageId }));
    tool.settle(second, 'ack');
    await bench.run(100_000);
    expect(tool.received).toHaveLength(3);
  });

  test('a non-confirmable request gets a non-confirmable answer', { tags: ['slow'] }, async () => {
    device.addCoapResource('GET', '/x', () => ({ status: 205, payload: 'x' }));
    const answer = await tool.ask({ code: 'GET', options: path('x'), confirmable: false });
    expect(answer).toMatchObject({ code: '2.05', confirmable: false, ack: false });
  });

  test('a ping is reset, and so is an unknown message; garbage is ignored', { tags: ['slow'] }, async () => {
    const ping = tool.send({ code: '0.00', token: Buffer.alloc(0) });
    tool.raw(Buffer.from('4001', 'hex'));
    tool.raw(Buffer.from('80010001', 'hex'));
    tool.raw(Buffer.from('500100 02f0'.replace(' ', ''), 'hex'));
    tool.raw(Buffer.from('40010003ff', 'hex'));
    tool.raw(Buffer.from('49010004', 'hex'));
    tool.raw(Buffer.from('40450005', 'hex'));
    await bench.run();
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

  test('a body is sent in blocks of the requested size, whatever the tokens', { tags: ['slow'] }, async () => {
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

  test('a block of a discarded body comes from a new answer; with another method it is refused', { tags: ['slow'] }, async () => {
    let runs = 0;
    device.addCoapResource('GET', '/large', () => ({ status: 205, payload: Buffer.alloc(5000, `${++runs}`) }));
    device.addCoapResource('POST', '/large', () => ({ status: 205, payload: Buffer.alloc(5000, `${++runs}`) }));
    await tool.ask({ code: 'GET', options: path('large') });
    await tool.ask({ code: 'POST', options: path('large') });
    await bench.run(61_000);
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

  test('a payload in blocks reaches the device whole and once', { tags: ['slow'] }, async () => {
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

  test('abandoned bodies block others for at most a minute', { tags: ['slow'] }, async () => {
    device.addCoapResource('PUT', '/up', () => ({ status: 204 }));
    const begin = (i: number): Parameters<Tool['send']>[0] => upload(body, 0, 6, [{ name: '292', value: Buffer.from([i]) }]);
    for (let i = 0; i < 64; i++) expect((await tool.ask(begin(i))).code).toBe('2.31');
    expect((await tool.ask(begin(64))).code).toBe('5.03');
    await bench.run(61_000);
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
    await bench.run(ms);
  };

  test('delivers the first answer and each change, in rising sequence, until it is cancelled', { tags: ['slow'] }, async () => {
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
    await bench.run();
    await change('four');
    expect(bench.texts()).toEqual(['2.05 one', '2.05 two', '2.05 three', '2.05 three']);
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test.each([
    ['renewed', 0],
    ['cancelled', 1],
  ])('%s before its first answer: only the later request is answered', { tags: ['slow'] }, async (_, value) => {
    let calls = 0;
    device.addCoapResource('GET', '/slow', () => (++calls === 1 ? new Promise(() => {}) : { status: 205, payload: 'now' }), {
      observable: true,
    });
    const slow = { code: 'GET', token: Buffer.from('s') };
    tool.send({ ...slow, options: [observe(0), ...path('slow')] });
    await bench.run(400);
    expect(gateway.stats.requests).toBe(1);
    tool.send({ ...slow, options: [observe(value), ...path('slow')] });
    await bench.run();
    expect(gateway.stats).toEqual({ requests: 0, observations: 1 - value });
    await bench.run(61_000);
    expect(bench.texts().filter((text) => text !== '0.00 ')).toEqual(['2.05 now']);
  });

  test('ends at a reset, also of a non-confirmable notification', async () => {
    await tool.ask({ ...register, confirmable: false });
    await change('two');
    expect(tool.received[1]).toMatchObject({ confirmable: false, payload: Buffer.from('two') });
    tool.settle(tool.received[1], 'reset');
    await bench.run();
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test('keeps only the newest notification while one is unacknowledged, and ends if none is acknowledged', { tags: ['slow'] }, async () => {
    await tool.ask(register);
    for (const to of ['two', 'three', 'four']) await change(to, 100);
    expect(bench.texts()).toEqual(['2.05 one', '2.05 two']);
    tool.settle(tool.received[1], 'ack');
    await bench.run(100);
    expect(bench.texts()).toEqual(['2.05 one', '2.05 two', '2.05 four']);
    await bench.run(200_000);
    expect(bench.texts().slice(3)).toEqual(Array(4).fill('2.05 four'));
    expect([gateway.stats.observations, resource.observers]).toEqual([0, 0]);
  });

  test('makes every eighth non-confirmable notification confirmable, to see whether a client listens', { tags: ['slow'] }, async () => {
    await tool.ask({ ...register, confirmable: false });
    for (let i = 0; i < 8; i++) await change(`${i}`, 100);
    expect(tool.received.map(({ confirmable }) => confirmable)).toEqual([...Array(8).fill(false), true]);
    await bench.run(200_000);
    expect(gateway.stats.observations).toBe(0);
  });

  test('ends when an answer ends it at the device', { tags: ['slow'] }, async () => {
    await tool.ask(register);
    resource.remove();
    await bench.run();
    expect(bench.texts()).toEqual(['2.05 one', '4.04 Not found']);
    expect([option(tool.received[1], 'Observe'), gateway.stats.observations]).toEqual([[], 0]);
  });

  test('is answered once for a resource that cannot be observed', { tags: ['slow'] }, async () => {
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

  test('above 32 is ignored: the GET is like any other', { tags: ['slow'] }, async () => {
    for (let i = 0; i < 33; i++) await tool.ask({ ...register, token: Buffer.from([i]) });
    expect(tool.received.map((each) => option(each, 'Observe').length)).toEqual([...Array(32).fill(1), 0]);
    expect(gateway.stats).toEqual({ requests: 0, observations: 32 });
  });

  test('continues with the next connection', { tags: ['slow'] }, async () => {
    await tool.ask(register);
    state = 'two';
    void device.connection(1).close();
    await bench.run(5000);
    expect(bench.states).toEqual(['connected', 'lost', 'connected']);
    expect(bench.texts()[1]).toBe('2.05 two');
    tool.settle(tool.received[1], 'ack');
    await change('three');
    expect(bench.texts().at(-1)).toBe('2.05 three');
    expect(resource.observers).toBe(1);
  });
});
