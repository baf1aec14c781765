/** Exchanges end to end and against single messages; the flows the standards show are in `rfc-exchanges.test.ts`. */
import { describe, expect, test } from 'vitest';
import {
  type CoapMessage,
  type CoapReply,
  decodeMessage,
  Exchanges,
  type ExchangesEvent,
  textReply,
} from '../../../protocol/coap/index.ts';
import { OptionNumber, readUint, uintOptionOf } from '../../../protocol/coap/options.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import { seeds, size } from '../../support/size.ts';
import { ascii, block, blockNumber, message, next, path, responseOf, textOf } from './messages.ts';
import { Pair, randomBytes, seededRandom } from './pair.ts';

const R = 66_560;
const KIB = 1024;

/** Answers every request with `reply`. */
const answering =
  (pair: Pair, reply: (event: Extract<ExchangesEvent, { kind: 'request' }>) => CoapReply) =>
  (event: ExchangesEvent): void => {
    if (event.kind === 'request') pair.server.respond(event.exchange, reply(event), pair.now);
  };

const lone = (): Exchanges => new Exchanges({ randomToken: (length) => new Uint8Array(length).fill(9) });
const option = (number: number, value: number) => uintOptionOf(number, value);

describe('bodies', () => {
  const MIB = 1 << 20;
  test.each([0, 1, 1023, 1024, 1025, 65_535, 65_536, 65_537, R - 200, R - 1, R, R + 1, 2 * 65_536, 3 * R + 5, MIB - 1, MIB])(
    'of %i bytes arrive both ways',
    (length) => {
      const pair = new Pair();
      const body = randomBytes(seededRandom(length + 1), length);
      const id = pair.client.request({ method: 'POST', path: '/echo', contentFormat: 42, payload: body }, 0);
      let seen: Uint8Array | undefined;
      const events = pair.run(
        answering(pair, ({ request }) => {
          expect([request.path, request.method, request.contentFormat]).toEqual(['/echo', 'POST', 42]);
          seen = request.payload;
          return { status: 205, contentFormat: 42, payload: request.payload, maxAge: 7 };
        }),
      );
      expect(Buffer.compare(seen!, body)).toBe(0);
      expect(events).toHaveLength(1);
      const { response, final, id: of } = responseOf(events[0]);
      expect([of, final, response.status, response.contentFormat, response.maxAge]).toEqual([id, true, 205, 42, 7]);
      expect(Buffer.compare(response.payload, body)).toBe(0);
      expect(pair.client.stats()).toEqual({ malformed: 0, ignored: 0, unmatched: 0, duplicates: 0, dropped: 0, requests: 0, incoming: 0 });
      expect(pair.server.stats()).toEqual({ malformed: 0, ignored: 0, unmatched: 0, duplicates: 0, dropped: 0, requests: 0, incoming: 0 });
      expect(pair.client.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
      expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    },
  );

  test('that fit one message have no block option, larger ones have', () => {
    const overhead = 2 + 8 + 5 + 1; // head, token, path, payload marker
    for (const [length, blocks] of [
      [R - overhead, 0],
      [R - overhead + 1, 2],
    ] as const) {
      const pair = new Pair();
      pair.client.request({ method: 'PUT', path: '/echo', payload: new Uint8Array(length) }, 0);
      pair.run(answering(pair, () => ({ status: 204 })));
      const sent = pair.log.filter(({ to }) => to === 'server').map(({ bytes }) => block(decodeMessage(bytes), OptionNumber.BLOCK1));
      expect(sent.filter((value) => value !== undefined)).toHaveLength(blocks);
    }
  });

  test('travel the other way round as well', () => {
    const pair = new Pair();
    const body = randomBytes(seededRandom(5), 200_000);
    pair.server.request({ method: 'PUT', path: '/p2p/connect', payload: body }, 0);
    let answer: ExchangesEvent | undefined;
    for (let going = true; going; ) {
      for (let event = pair.client.nextEvent(); event !== null; event = pair.client.nextEvent()) {
        if (event.kind === 'request') pair.client.respond(event.exchange, { status: 205, payload: event.request.payload }, 0);
      }
      for (let event = pair.server.nextEvent(); event !== null; event = pair.server.nextEvent()) answer = event;
      pair.collect();
      going = pair.step();
    }
    for (let event = pair.server.nextEvent(); event !== null; event = pair.server.nextEvent()) answer = event;
    expect(Buffer.compare(responseOf(answer).response.payload, body)).toBe(0);
  });

  test('above the limit of the other end are refused with 4.13 and Size1', () => {
    const pair = new Pair({ maxBody: 100_000 });
    pair.client.request({ method: 'PUT', path: '/a', payload: new Uint8Array(100_001) }, 0);
    const events = pair.run(() => {
      throw new Error('handed up');
    });
    expect(responseOf(events[0]).response.status).toBe(413);
    const refusal = decodeMessage(pair.log.find(({ to }) => to === 'client')!.bytes);
    expect(readUint(refusal.options.find(({ number }) => number === OptionNumber.SIZE1)!.value)).toBe(100_000);
    expect(pair.log).toHaveLength(2);
  });

  test('that lie about their size are refused where they pass the limit', () => {
    const server = new Exchanges({ randomToken: () => new Uint8Array(8), maxBody: 65_536 + KIB });
    server.receive(message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(65_536)), 0);
    expect(next(server)!.code).toBe(0x5f);
    server.receive(message(3, [1], [...path('a'), option(27, blockNumber(64, 1, 7))], new Uint8Array(2 * KIB)), 0);
    expect(next(server)!.code).toBe(0x8d);
    expect(server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('of a response above our limit fail, whether announced or not', () => {
    const body = new Uint8Array(200_000);
    const pair = new Pair();
    const small = new Exchanges({ randomToken: (length) => new Uint8Array(length), maxBody: 100_000 });
    small.request({ method: 'GET', path: '/' }, 0);
    pair.server.receive(small.nextMessage()!, 0);
    const event = pair.server.nextEvent();
    if (event?.kind !== 'request') throw new Error('no request');
    pair.server.respond(event.exchange, { status: 205, payload: body }, 0);
    small.receive(pair.server.nextMessage()!, 0);
    const failed = small.nextEvent();
    expect(failed).toMatchObject({ kind: 'failed', error: { code: 'BAD_RESPONSE' } });
    expect(failed?.kind === 'failed' && failed.error).toBeInstanceOf(RemoteError);

    small.request({ method: 'GET', path: '/' }, 0);
    small.nextMessage();
    for (let offset = 0; offset < 3; offset++)
      small.receive(message(0x45, [0, 0, 0, 0, 0, 0, 0, 0], [option(23, blockNumber(offset * 40, 1, 7))], new Uint8Array(40 * KIB)), 0);
    expect(small.nextEvent()).toMatchObject({ kind: 'failed', error: { code: 'BAD_RESPONSE' } });
  });

  test('of our own reply above our limit become 5.00', () => {
    const pair = new Pair({ maxBody: 100_000 });
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run(answering(pair, () => ({ status: 205, payload: new Uint8Array(100_001) })));
    expect(responseOf(events[0]).response.status).toBe(500);
  });

  test('in small blocks do not keep the large messages that brought them', () => {
    const server = lone();
    const padding = Array.from({ length: 60 }, () => ({ number: 2048, value: new Uint8Array(1034) }));
    for (let number = 0; number < 8; number++) {
      server.receive(
        message(3, [1], [...path('a'), ...padding, option(27, blockNumber(number, number < 7 ? 1 : 0, 0))], new Uint8Array(16)),
        0,
      );
    }
    const event = server.nextEvent();
    if (event?.kind !== 'request') throw new Error('no request');
    expect([event.request.payload.length, event.request.payload.buffer.byteLength]).toEqual([128, 128]);
  });

  test('under way are limited in number, and free again when done or given up', () => {
    const pair = new Pair({ maxTransfers: 2, transferTimeout: 1000 });
    const first = (token: number): Uint8Array => message(3, [token], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(KIB));
    for (const token of [1, 2, 3]) pair.server.receive(first(token), 0);
    expect([next(pair.server)!.code, next(pair.server)!.code, next(pair.server)!.code]).toEqual([0x5f, 0x5f, 0xa3]);
    expect(pair.server.nextTimeout()).toBe(1000);
    pair.advance(1000);
    pair.server.receive(first(4), pair.now);
    expect(next(pair.server)!.code).toBe(0x5f);
    // The one given up is gone.
    pair.server.receive(message(3, [1], [...path('a'), option(27, blockNumber(1, 0, 7))], new Uint8Array(1)), pair.now);
    expect(next(pair.server)!.code).toBe(0x88);
  });

  test('of replies nobody fetches are given up', () => {
    const pair = new Pair({ maxTransfers: 1, transferTimeout: 1000 });
    pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.step();
    const event = pair.server.nextEvent();
    if (event?.kind !== 'request') throw new Error('no request');
    pair.server.respond(event.exchange, { status: 205, payload: new Uint8Array(2 * R) }, 0);
    pair.server.nextMessage();
    expect(pair.server.nextTimeout()).toBe(1000);
    pair.advance(1000);
    expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('blocks', () => {
  test.each<[string, number, Uint8Array[]]>([
    [
      'a gap',
      0x88,
      [
        message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(KIB)),
        message(3, [1], [...path('a'), option(27, blockNumber(2, 0, 7))], new Uint8Array(1)),
      ],
    ],
    ['a middle without beginning', 0x88, [message(3, [1], [...path('a'), option(27, blockNumber(1, 1, 7))], new Uint8Array(KIB))]],
    [
      'another path',
      0x88,
      [
        message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(KIB)),
        message(3, [1], [...path('b'), option(27, blockNumber(1, 0, 7))], new Uint8Array(1)),
      ],
    ],
    [
      'another method',
      0x88,
      [
        message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(KIB)),
        message(2, [1], [...path('a'), option(27, blockNumber(1, 0, 7))], new Uint8Array(1)),
      ],
    ],
    ['a BERT block of no whole kilobytes', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(1000))]],
    ['an empty BERT block before the last', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))])]],
    ['a short block before the last', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 3))], new Uint8Array(127))]],
    ['a last block that is too long', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 0, 3))], new Uint8Array(129))]],
    [
      'a size announced above the limit',
      0x8d,
      [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7)), option(60, 1 << 21)], new Uint8Array(KIB))],
    ],
    ['a block of an answer that is not kept', 0x88, [message(1, [1], [...path('a'), option(23, blockNumber(1, 0, 7))])]],
  ])('%s is answered 0x%s', (_, code, messages) => {
    const server = lone();
    for (const each of messages) server.receive(each, 0);
    let last: CoapMessage | null = null;
    for (let answer = next(server); answer !== null; answer = next(server)) last = answer;
    expect(last?.code).toBe(code);
    expect(server.nextEvent()).toBeNull();
    expect(server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('a final answer before the last block ends the upload', () => {
    const client = lone();
    client.request({ method: 'PUT', path: '/a', payload: new Uint8Array(3 * R) }, 0);
    const { token } = next(client)!;
    client.receive(message(0x83, [...token], [], ascii('no')), 0);
    expect(responseOf(client.nextEvent()!).response).toEqual({ status: 403, payload: ascii('no') });
    expect(client.nextMessage()).toBeNull();
  });

  test.each<[string, CoapMessage['options']]>([
    ['for another block', [option(27, blockNumber(64, 1, 7))]],
    ['of another size', [option(27, blockNumber(0, 1, 6))]],
    ['without block', []],
  ])('2.31 %s fails the upload', (_, options) => {
    const client = lone();
    const id = client.request({ method: 'PUT', path: '/a', payload: new Uint8Array(3 * R) }, 0);
    const { token } = next(client)!;
    client.receive(message(0x5f, [...token], options), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
  });

  test('the rest of a response that is gone fails the request', () => {
    const pair = new Pair({ transferTimeout: 1000 });
    const id = pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.step();
    expect(pair.server.nextEvent()?.kind).toBe('request');
    pair.server.respond(1, { status: 205, payload: new Uint8Array(2 * R) }, 0);
    pair.step();
    pair.advance(1000);
    expect(pair.run()).toMatchObject([{ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } }]);
  });

  test('a block of another body is ignored, and the body at hand completes', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/a' }, 0);
    const { token } = next(client)!;
    const etag = (value: number) => ({ number: OptionNumber.ETAG, value: Uint8Array.of(value) });
    const send = (tag: number, number: number, more: number, fill: number): void =>
      client.receive(message(0x45, [...token], [etag(tag), option(23, blockNumber(number, more, 7))], new Uint8Array(KIB).fill(fill)), 0);
    send(1, 0, 1, 1);
    send(2, 1, 0, 2);
    send(1, 2, 0, 3);
    expect(client.stats().unmatched).toBe(2);
    send(1, 1, 0, 4);
    const { payload } = responseOf(client.nextEvent()!).response;
    expect([payload.length, payload[0], payload[KIB]]).toEqual([2 * KIB, 1, 4]);
  });
});

describe('requests', () => {
  test.each(seeds(10, 100))('in parallel find their answers whatever the order (seed %i)', (seed) => {
    const pair = new Pair({ maxRequests: 200 }, seed);
    const random = seededRandom(seed + 1);
    const expected = new Map<number, string>();
    for (let i = 0; i < 60; i++) {
      const length = random(10) === 0 ? random(2 * R) : random(100);
      const payload = randomBytes(random, length);
      expected.set(pair.client.request({ method: 'POST', path: `/r/${i}`, payload }, 0), `${i} ${Buffer.from(payload).toString('base64')}`);
    }
    const waiting: ExchangesEvent[] = [];
    const answers = new Map<number, string>();
    const note = (events: ExchangesEvent[]): void => {
      for (const event of events) answers.set(responseOf(event).id, textOf(responseOf(event).response.payload));
    };
    const answer = (event: ExchangesEvent): void => {
      if (event.kind !== 'request') throw new Error(event.kind);
      const { segments, payload } = event.request;
      const reply = ascii(`${segments[1]} ${Buffer.from(payload).toString('base64')}`);
      if (!pair.server.respond(event.exchange, { status: 205, payload: reply }, 0)) throw new Error('nobody waits');
    };
    // Some are answered at once and some later, in any order.
    note(pair.run((event) => (random(2) === 0 ? answer(event) : waiting.push(event))));
    while (waiting.length > 0) {
      answer(waiting.splice(random(waiting.length), 1)[0]!);
      note(pair.run(answer));
    }
    const outOfRoom = [...answers.values()].filter((text) => text === 'Out of resources').length;
    expect(answers.size).toBe(60);
    for (const [id, text] of expected) if (answers.get(id) !== 'Out of resources') expect(answers.get(id)).toBe(text);
    expect(outOfRoom).toBeLessThan(60);
    expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
  });

  test('time out after two minutes, or as asked', () => {
    const pair = new Pair();
    const slow = pair.client.request({ method: 'GET', path: '/' }, 0);
    const quick = pair.client.request({ method: 'GET', path: '/' }, 0, { timeout: 500 });
    pair.client.request({ method: 'GET', path: '/' }, 0, { timeout: Number.POSITIVE_INFINITY });
    expect(pair.client.nextTimeout()).toBe(500);
    pair.advance(499);
    expect(pair.client.nextEvent()).toBeNull();
    pair.advance(1);
    expect(pair.client.nextEvent()).toEqual({ kind: 'timeout', id: quick });
    expect(pair.client.nextTimeout()).toBe(120_000);
    pair.advance(119_500);
    expect(pair.client.nextEvent()).toEqual({ kind: 'timeout', id: slow });
    expect(pair.client.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    // The late answers are dropped and counted.
    pair.run(answering(pair, () => ({ status: 205 })));
    expect(pair.client.stats()).toMatchObject({ unmatched: 2, requests: 0 });
  });

  test('can be cancelled: the answer is dropped', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.client.cancel(id);
    pair.client.cancel(id);
    expect(pair.run(answering(pair, () => ({ status: 205 })))).toEqual([]);
    expect(pair.client.stats()).toMatchObject({ unmatched: 1, requests: 0 });
    expect(pair.log).toHaveLength(2);
  });

  test('above the limit are answered 5.03 "Out of resources" until one is answered', () => {
    const pair = new Pair({ maxRequests: 2 });
    for (let i = 0; i < 3; i++) pair.client.request({ method: 'GET', path: '/' }, 0);
    const open: number[] = [];
    const [refused] = pair.run((event) => event.kind === 'request' && open.push(event.exchange));
    expect(responseOf(refused).response).toEqual({ status: 503, payload: ascii('Out of resources') });
    expect(open).toHaveLength(2);
    pair.server.respond(open[0]!, { status: 205 }, 0);
    // Open until the channel has taken the answer.
    expect(pair.server.stats().incoming).toBe(2);
    pair.run();
    expect(pair.server.stats().incoming).toBe(1);
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run(answering(pair, () => ({ status: 204 })));
    expect(responseOf(events[0]).response.status).toBe(204);
    pair.server.limitRequests(1);
    pair.client.request({ method: 'GET', path: '/' }, 0);
    expect(responseOf(pair.run()[0]).response.status).toBe(503);
  });

  test('let go without an answer get 5.00 "Request unhandled"', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run((event) => event.kind === 'request' && pair.server.release(event.exchange, 0));
    expect(responseOf(events[0]).response).toEqual({ status: 500, payload: ascii('Request unhandled') });
  });

  test('are answered once', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const results: boolean[] = [];
    pair.run((event) => {
      if (event.kind !== 'request') return;
      for (const status of [205, 204]) results.push(pair.server.respond(event.exchange, { status }, 0));
      pair.server.release(event.exchange, 0);
      results.push(pair.server.respond(event.exchange, { status: 205, observe: true }, 0));
    });
    expect(results).toEqual([true, false, false]);
    expect(pair.log).toHaveLength(2);
  });

  test('a reply that cannot be sent raises a local error and leaves the request open', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run((event) => {
      if (event.kind !== 'request') return;
      for (const reply of [{ status: 99 }, { status: 300 }, { status: 205, contentFormat: 70_000 }, { status: 205, maxAge: -1 }]) {
        expect(() => pair.server.respond(event.exchange, reply, 0)).toThrow(LocalError);
      }
      pair.server.respond(event.exchange, textReply(205, 'well'), 0);
    });
    expect(textOf(responseOf(events[0]).response.payload)).toBe('well');
  });

  test.each([
    { method: 'PATCH', path: '/' },
    { method: 'get', path: '/' },
    { method: 'constructor', path: '/' },
    { method: 'GET', path: 'x' },
    { method: 'GET', path: '/', contentFormat: -1 },
    { method: 'GET', path: '/', query: ['x'.repeat(300)] },
  ])('%j cannot be asked', (request) => {
    const pair = new Pair();
    expect(() => pair.client.request(request as never, 0)).toThrow(LocalError);
    expect(pair.client.stats().requests).toBe(0);
    expect(pair.client.nextMessage()).toBeNull();
  });

  test('end with the channel', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.step();
    expect(pair.server.nextEvent()).toMatchObject({ kind: 'request' });
    const error = new RemoteError('CLOSED', 'gone');
    pair.client.close(error);
    pair.server.close(error);
    expect(pair.client.nextEvent()).toEqual({ kind: 'failed', id, error });
    expect(pair.server.nextEvent()).toEqual({ kind: 'cancelled', exchange: 1 });
    expect(pair.server.respond(1, { status: 205 }, 0)).toBe(false);
    expect(() => pair.client.request({ method: 'GET', path: '/' }, 0)).toThrow(error);
    pair.server.receive(message(1, [1], []), 0);
    expect([pair.server.nextEvent(), pair.server.nextMessage(), pair.client.nextTimeout()]).toEqual([null, null, Number.POSITIVE_INFINITY]);
  });
});

describe('messages that mean nothing', () => {
  test.each<[string, Uint8Array, 'malformed' | 'ignored' | 'unmatched']>([
    ['an empty message', message(0, [], []), 'ignored'],
    ['a signal', message(0xe1, [], []), 'ignored'],
    ['class 1', message(0x21, [], []), 'ignored'],
    ['a response nobody asked for', message(0x45, [1, 2], []), 'unmatched'],
    ['a response with an empty token', message(0x45, [], []), 'unmatched'],
    ['bytes that do not decode', Uint8Array.of(0xff, 1), 'malformed'],
    ['no bytes', new Uint8Array(0), 'malformed'],
  ])('%s is dropped and counted', (_, bytes, counter) => {
    const end = lone();
    end.receive(bytes, 0);
    expect(end.stats()).toEqual({
      malformed: 0,
      ignored: 0,
      unmatched: 0,
      duplicates: 0,
      dropped: 0,
      requests: 0,
      incoming: 0,
      [counter]: 1,
    });
    expect([end.nextEvent(), end.nextMessage()]).toEqual([null, null]);
  });

  test.each<[string, number, CoapMessage['options'], number, string]>([
    ['If-Match', 1, [{ number: 1, value: ascii('x') }], 0x80, 'Critical option 1 is not supported'],
    ['If-None-Match', 3, [{ number: 5, value: new Uint8Array(0) }], 0x80, 'Critical option 5 is not supported'],
    ['Uri-Query', 1, [{ number: 15, value: ascii('u=Cel') }], 0x80, 'Critical option 15 is not supported'],
    ['Accept', 1, [option(17, 60)], 0x80, 'Critical option 17 is not supported'],
    ['Proxy-Uri', 1, [{ number: 35, value: ascii('coap://a') }], 0x80, 'Critical option 35 is not supported'],
    ['an unknown odd option', 1, [{ number: 2049, value: new Uint8Array(0) }], 0x80, 'Critical option 2049 is not supported'],
    ['a Uri-Path of 256 bytes', 1, path('x'.repeat(256)), 0x80, 'Critical option 11 is not supported'],
    ['Block1 twice', 3, [option(27, 7), option(27, 7)], 0x80, 'Critical option 27 is not supported'],
    ['Block2 of 4 bytes', 1, [{ number: 23, value: new Uint8Array(4) }], 0x80, 'Critical option 23 is not supported'],
    [
      'Uri-Host twice',
      1,
      [
        { number: 3, value: ascii('a') },
        { number: 3, value: ascii('a') },
      ],
      0x80,
      'Critical option 3 is not supported',
    ],
    ['a path that is not UTF-8', 1, [{ number: 11, value: Uint8Array.of(0xff) }], 0x80, 'The path or query is not UTF-8'],
    ['a path of 257 bytes', 1, path('x'.repeat(128), 'y'.repeat(127)), 0x80, 'The path is longer than 256 bytes'],
    ['a dot segment', 1, path('..'), 0x80, 'The path has a dot segment'],
    ['FETCH', 5, [], 0x84, 'Unknown method'],
    ['method 0.31', 31, [], 0x84, 'Unknown method'],
  ])('a request with %s is refused with a text', (_, code, options, status, text) => {
    const server = lone();
    server.receive(message(code, [4], options), 0);
    const answer = next(server)!;
    expect([answer.code, textOf(answer.payload), answer.options.length, [...answer.token]]).toEqual([status, text, 0, [4]]);
    expect(server.nextEvent()).toBeNull();
  });

  test('Uri-Host, Uri-Port and unknown elective options are taken', () => {
    const server = lone();
    server.receive(
      message(
        1,
        [4],
        [
          { number: 3, value: ascii('host') },
          option(7, 5683),
          option(60, 4),
          { number: 2048, value: ascii('?') },
          { number: 12, value: new Uint8Array(3) },
        ],
      ),
      0,
    );
    expect(server.nextEvent()).toEqual({
      kind: 'request',
      exchange: 1,
      request: { exchange: 1, method: 'GET', path: '/', segments: [], query: [], payload: new Uint8Array(0), observe: false },
    });
  });

  test('Uri-Query is taken where the application wants it', () => {
    const server = new Exchanges({ randomToken: () => new Uint8Array(8), criticalOptions: [OptionNumber.URI_QUERY] });
    const client = lone();
    client.request({ method: 'GET', path: '/sensors', query: ['u=Cel', 'ü'] }, 0);
    server.receive(client.nextMessage()!, 0);
    expect(server.nextEvent()).toMatchObject({ kind: 'request', request: { query: ['u=Cel', 'ü'] } });
  });

  test('a response with a critical option nobody knows fails the request', () => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/' }, 0);
    client.receive(message(0x45, [...next(client)!.token], [{ number: 2049, value: new Uint8Array(0) }]), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
  });

  test('a request with the token of an open one is dropped', () => {
    const server = lone();
    for (let i = 0; i < 3; i++) server.receive(message(1, [4], []), 0);
    expect(server.stats()).toMatchObject({ incoming: 1, duplicates: 2 });
  });

  test('automatic answers that nobody takes are bounded', () => {
    const server = lone();
    for (let i = 0; i < 10_000; i++) server.receive(message(5, [i & 255, i >> 8], []), 0);
    let waiting = 0;
    while (server.nextMessage() !== null) waiting++;
    expect(waiting).toBe(256);
    expect(server.stats().dropped).toBe(10_000 - 256);
  });

  test('asking for the same block again and again queues one answer', () => {
    const server = lone();
    server.receive(message(1, [4], []), 0);
    server.respond(1, { status: 205, payload: new Uint8Array(3 * R) }, 0);
    for (let i = 0; i < 1000; i++) server.receive(message(1, [4], [option(23, blockNumber(64, 0, 7))]), 0);
    expect([next(server), next(server), next(server)].map((each) => each && block(each, 23))).toEqual(['0/1/7', '64/1/7', null]);
  });
});

describe('observation', () => {
  const observing = (pair: Pair): { exchange: () => number; events: ExchangesEvent[]; cancelled: number[]; run: () => void } => {
    let exchange = 0;
    const state = {
      exchange: () => exchange,
      events: [] as ExchangesEvent[],
      cancelled: [] as number[],
      run: () => {
        state.events.push(
          ...pair.run((event) => {
            if (event.kind === 'request') exchange = event.exchange;
            if (event.kind === 'cancelled') state.cancelled.push(event.exchange);
          }),
        );
      },
    };
    return state;
  };

  test('goes on until a reply without it', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    for (const value of ['1', '2', '3']) {
      expect(pair.server.respond(observer.exchange(), { status: 205, payload: ascii(value), observe: true }, 0)).toBe(true);
      observer.run();
      pair.advance(600_000);
    }
    expect(pair.server.respond(observer.exchange(), { status: 404 }, 0)).toBe(true);
    observer.run();
    expect(pair.server.respond(observer.exchange(), { status: 205, observe: true }, 0)).toBe(false);
    expect(
      observer.events.map((event) => [
        responseOf(event).id,
        textOf(responseOf(event).response.payload),
        responseOf(event).response.observe,
        responseOf(event).final,
      ]),
    ).toEqual([
      [id, '1', 0, false],
      [id, '2', 1, false],
      [id, '3', 2, false],
      [id, '', undefined, true],
    ]);
    expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
  });

  test('is ended by cancel, at both ends', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    pair.server.respond(observer.exchange(), { status: 205, observe: true }, 0);
    observer.run();
    const first = observer.exchange();
    pair.client.cancel(id);
    observer.run();
    expect(observer.cancelled).toEqual([first]);
    expect(pair.server.respond(first, { status: 205, observe: true }, 0)).toBe(false);
    // The message that ends it is a request of its own and wants its answer.
    expect(observer.exchange()).not.toBe(first);
    pair.server.respond(observer.exchange(), { status: 205 }, 0);
    observer.run();
    expect(observer.events).toHaveLength(1);
    expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
  });

  test('of a POST is ended without a second POST', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'POST', path: '/client/connect', payload: ascii('wait'), observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    const first = observer.exchange();
    pair.server.respond(first, { status: 205, observe: true }, 0);
    observer.run();
    expect(responseOf(observer.events[0]).final).toBe(false);
    pair.client.cancel(id);
    observer.run();
    expect([observer.cancelled, observer.exchange()]).toEqual([[first], first]);
    expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
  });

  test('is not begun where the request or the reply does not want it', () => {
    for (const [observe, reply] of [
      [undefined, true],
      [0, false],
    ] as const) {
      const pair = new Pair();
      pair.client.request(observe === undefined ? { method: 'GET', path: '/' } : { method: 'GET', path: '/', observe }, 0);
      const events = pair.run(answering(pair, () => ({ status: 205, observe: reply })));
      expect(responseOf(events[0]).final).toBe(true);
      expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
    }
  });

  test('its end may overtake its beginning: the next notification is answered with the end again', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    pair.client.cancel(id);
    const [begin, end] = [pair.client.nextMessage()!, pair.client.nextMessage()!];
    const exchanges: number[] = [];
    const deliver = (bytes: Uint8Array): void => {
      pair.server.receive(bytes, 0);
      for (let event = pair.server.nextEvent(); event !== null; event = pair.server.nextEvent()) {
        if (event.kind !== 'request') continue;
        exchanges.push(event.exchange);
        pair.server.respond(event.exchange, { status: 205, observe: event.request.observe }, 0);
      }
    };
    deliver(end);
    deliver(begin);
    pair.run((event) => event.kind === 'request' && pair.server.respond(event.exchange, { status: 205 }, 0));
    expect(pair.server.respond(exchanges[1]!, { status: 205, observe: true }, 0)).toBe(false);
    expect(pair.server.stats().incoming).toBe(0);
  });

  test('only the newest of notifications that wait is sent', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    for (let i = 0; i < 100; i++) pair.server.respond(observer.exchange(), { status: 205, payload: ascii(`${i}`), observe: true }, 0);
    observer.run();
    expect(observer.events.map((event) => textOf(responseOf(event).response.payload))).toEqual(['99']);
  });

  test('notifications that were overtaken are dropped', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/', observe: 0 }, 0);
    const { token } = next(client)!;
    const notify = (sequence: number): void => client.receive(message(0x45, [...token], [option(6, sequence)], ascii(`${sequence}`)), 0);
    for (const sequence of [5, 7, 6, 7, 0xffffff, 0x7ffff0, 0xffffe0, 1, 0xffffff, 2]) notify(sequence);
    const seen: string[] = [];
    for (let event = client.nextEvent(); event !== null; event = client.nextEvent()) seen.push(textOf(responseOf(event).response.payload));
    expect(seen).toEqual(['5', '7', '7', `${0x7ffff0}`, `${0xffffe0}`, '1', '2']);
  });

  test('the first answer has a timeout, later ones do not', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/', observe: 0 }, 0, { timeout: 1000 });
    pair.advance(1000);
    expect(pair.client.nextEvent()).toEqual({ kind: 'timeout', id });
    // The end follows the beginning, so that the other end forgets it too.
    const codes = [next(pair.client)!, next(pair.client)!].map(({ options }) =>
      readUint(options.find(({ number }) => number === 6)!.value),
    );
    expect(codes).toEqual([0, 1]);
  });

  test.each(seeds(10, 100))('with bodies in blocks ends with the newest state (seed %i)', (seed) => {
    const pair = new Pair({}, seed);
    const random = seededRandom(seed);
    pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    let newest = new Uint8Array(0);
    for (let i = 0; i < 8; i++) {
      newest = randomBytes(random, random(3) * 70_000 + random(100)) as Uint8Array<ArrayBuffer>;
      pair.server.respond(observer.exchange(), { status: 205, payload: newest, observe: true }, 0);
      // A few messages travel, then the state changes again.
      for (let steps = random(6); steps > 0; steps--) pair.step();
    }
    observer.run();
    for (let event = pair.client.nextEvent(); event !== null; event = pair.client.nextEvent()) observer.events.push(event);
    const last = responseOf(observer.events.at(-1)).response;
    expect(Buffer.compare(last.payload, newest)).toBe(0);
    expect(pair.client.stats().requests).toBe(1);
  });
});

describe.each(seeds(2, 10))('seed %i', (seed) => {
  test('random and mutated messages never throw, and both ends stay usable', () => {
    const random = seededRandom(seed);
    const pair = new Pair({ maxRequests: 8, maxTransfers: 4 });
    for (let i = 0; i < 5; i++)
      pair.client.request(
        { method: 'POST', path: `/${i}`, payload: randomBytes(random, i * 30_000), ...(i === 3 ? { observe: 0 as const } : {}) },
        0,
      );
    const seen: Uint8Array[] = [];
    for (let i = 0; i < size(4_000, 20_000); i++) {
      pair.collect();
      seen.push(...pair.wire.splice(0).map(({ bytes }) => bytes));
      const base = random(4) === 0 || seen.length === 0 ? randomBytes(random, random(40)) : seen[random(seen.length)]!.slice();
      if (seen.length > 200) seen.splice(0, 100);
      for (let j = random(3); j > 0 && base.length > 0; j--) base[random(Math.min(base.length, 40))] = random(256);
      const end = random(2) === 0 ? pair.client : pair.server;
      end.receive(base, i);
      for (const each of [pair.client, pair.server]) {
        for (let event = each.nextEvent(); event !== null; event = each.nextEvent()) {
          if (event.kind === 'request' && random(3) > 0)
            each.respond(
              event.exchange,
              { status: 205, payload: randomBytes(random, random(20) === 0 ? 70_000 : 5), observe: random(2) === 0 },
              i,
            );
        }
      }
      if (random(50) === 0) for (const each of [pair.client, pair.server]) each.handleTimeout(i);
    }
    expect(pair.server.stats().incoming).toBeLessThanOrEqual(8);
    const fresh = new Pair();
    fresh.client.request({ method: 'GET', path: '/' }, 0);
    expect(responseOf(fresh.run(answering(fresh, () => ({ status: 205 })))[0]).response.status).toBe(205);
  });
});
