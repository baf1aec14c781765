/** Bodies of requests and replies, from empty to many blocks, and their limits. */
import { describe, expect, test } from 'vitest';
import { decodeMessage, Exchanges, type ExchangesEvent } from '../../../protocol/coap/index.ts';
import { OptionNumber, readUint } from '../../../protocol/coap/options.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { block, blockNumber, KIB, message, next, option, path, R, responseOf } from './messages.ts';
import { answering, lone, Pair, randomBytes, seededRandom } from './pair.ts';

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
      expect([pair.client.isIdle, pair.client.requester.unmatched]).toEqual([true, 0]);
      expect([pair.server.isIdle, pair.server.responder.duplicates]).toEqual([true, 0]);
      expect(pair.client.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
      expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    },
  );

  test('that fit one message have no block option; larger ones have one', () => {
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

  test('arrive in the other direction as well', () => {
    const pair = new Pair();
    const body = randomBytes(seededRandom(5), 200_000);
    pair.server.request({ method: 'PUT', path: '/p2p/connect', payload: body }, 0);
    let answer: ExchangesEvent | undefined;
    for (let going = true; going; ) {
      for (let event = pair.client.nextEvent(); event !== null; event = pair.client.nextEvent()) {
        if (event.kind === 'request') pair.client.responder.respond(event.exchange, { status: 205, payload: event.request.payload }, 0);
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

  test('that announce a false size are refused where they pass the limit', () => {
    const server = new Exchanges({ randomToken: () => new Uint8Array(8), maxBody: 65_536 + KIB });
    server.receive(message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(65_536)), 0);
    expect(next(server)!.code).toBe(0x5f);
    server.receive(message(3, [1], [...path('a'), option(27, blockNumber(64, 1, 7))], new Uint8Array(2 * KIB)), 0);
    expect(next(server)!.code).toBe(0x8d);
    expect(server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('of a response above our limit fail the request, announced or not', () => {
    const body = new Uint8Array(200_000);
    const pair = new Pair();
    const small = new Exchanges({ randomToken: (length) => new Uint8Array(length), maxBody: 100_000 });
    small.request({ method: 'GET', path: '/' }, 0);
    pair.server.receive(small.transmit()!, 0);
    const event = pair.server.nextEvent();
    if (event?.kind !== 'request') throw new Error('no request');
    pair.server.responder.respond(event.exchange, { status: 205, payload: body }, 0);
    small.receive(pair.server.transmit()!, 0);
    const failed = small.nextEvent();
    expect(failed).toMatchObject({ kind: 'failed', error: { code: 'BAD_RESPONSE' } });
    expect(failed?.kind === 'failed' && failed.error).toBeInstanceOf(RemoteError);

    small.request({ method: 'GET', path: '/' }, 0);
    small.transmit();
    for (let offset = 0; offset < 3; offset++)
      small.receive(message(0x45, [0, 0, 0, 0, 0, 0, 0, 0], [option(23, blockNumber(offset * 40, 1, 7))], new Uint8Array(40 * KIB)), 0);
    expect(small.nextEvent()).toMatchObject({ kind: 'failed', error: { code: 'BAD_RESPONSE' } });
  });

  test('of our own reply above the limit become 5.00', () => {
    const pair = new Pair({ maxBody: 100_000 });
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run(answering(pair, () => ({ status: 205, payload: new Uint8Array(100_001) })));
    expect(responseOf(events[0]).response.status).toBe(500);
  });

  test('in small blocks do not keep the large messages that carried them', () => {
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

  test('in transfer are limited in number, and free their slot when done or given up', () => {
    const pair = new Pair({ maxTransfers: 2, transferTimeout: 1000 });
    const first = (token: number): Uint8Array => message(3, [token], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(KIB));
    for (const token of [1, 2, 3]) pair.server.receive(first(token), 0);
    expect([next(pair.server)!.code, next(pair.server)!.code, next(pair.server)!.code]).toEqual([0x5f, 0x5f, 0xa3]);
    expect(pair.server.nextTimeout()).toBe(1000);
    pair.advance(1000);
    pair.server.receive(first(4), pair.now);
    expect(next(pair.server)!.code).toBe(0x5f);
    // The upload that was given up is gone.
    pair.server.receive(message(3, [1], [...path('a'), option(27, blockNumber(1, 0, 7))], new Uint8Array(1)), pair.now);
    expect(next(pair.server)!.code).toBe(0x88);
  });

  test('of replies that are not fetched are given up', () => {
    const pair = new Pair({ maxTransfers: 1, transferTimeout: 1000 });
    pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.step();
    const event = pair.server.nextEvent();
    if (event?.kind !== 'request') throw new Error('no request');
    pair.server.responder.respond(event.exchange, { status: 205, payload: new Uint8Array(2 * R) }, 0);
    pair.server.transmit();
    expect(pair.server.nextTimeout()).toBe(1000);
    pair.advance(1000);
    expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });
});
