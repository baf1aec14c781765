/**
 * Blocks that do not fit what came before (RFC 7959, RFC 8323 §6). `rfc-exchanges.test.ts` has the flows of the
 * standards.
 */
import { describe, expect, test } from 'vitest';
import type { CoapMessage } from '../../../protocol/coap/index.ts';
import { OptionNumber } from '../../../protocol/coap/options.ts';
import { ascii, blockNumber, KIB, message, next, option, path, R, responseOf } from './messages.ts';
import { lone, Pair } from './pair.ts';

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
    ['a middle block without a first one', 0x88, [message(3, [1], [...path('a'), option(27, blockNumber(1, 1, 7))], new Uint8Array(KIB))]],
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
    [
      'a BERT block that is not a multiple of 1 KiB',
      0x80,
      [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))], new Uint8Array(1000))],
    ],
    ['an empty BERT block before the last', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7))])]],
    ['a short block before the last', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 3))], new Uint8Array(127))]],
    ['a last block that is too long', 0x80, [message(3, [1], [...path('a'), option(27, blockNumber(0, 0, 3))], new Uint8Array(129))]],
    [
      'an announced size above the limit',
      0x8d,
      [message(3, [1], [...path('a'), option(27, blockNumber(0, 1, 7)), option(60, 1 << 21)], new Uint8Array(KIB))],
    ],
    ['a request for a block of an answer that is not kept', 0x88, [message(1, [1], [...path('a'), option(23, blockNumber(1, 0, 7))])]],
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
    expect(client.transmit()).toBeNull();
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
    pair.server.responder.respond(1, { status: 205, payload: new Uint8Array(2 * R) }, 0);
    pair.step();
    pair.advance(1000);
    expect(pair.run()).toMatchObject([{ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } }]);
  });

  test('a pause of the channel does not count against a response in blocks, and nothing is due meanwhile', () => {
    const pair = new Pair({ transferTimeout: 1000 });
    const id = pair.client.request({ method: 'GET', path: '/' }, 0, { timeout: Number.POSITIVE_INFINITY });
    pair.step();
    pair.server.nextEvent();
    pair.server.responder.respond(1, { status: 205, payload: new Uint8Array(3 * R) }, 0);
    pair.step();
    pair.server.transfers.pause(0);
    expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    pair.advance(60_000);
    pair.server.transfers.resume(60_000);
    expect(pair.server.nextTimeout()).toBe(61_000);
    expect(pair.run()).toMatchObject([{ kind: 'response', id, response: { status: 205 } }]);
  });

  test('a pause does not count against an upload either, which is given up in its time afterwards', () => {
    const pair = new Pair({ transferTimeout: 1000 });
    const id = pair.client.request({ method: 'PUT', path: '/', payload: new Uint8Array(3 * R) }, 0, { timeout: Number.POSITIVE_INFINITY });
    pair.step();
    pair.step();
    pair.server.transfers.pause(0);
    pair.advance(60_000);
    pair.server.transfers.resume(60_000);
    pair.advance(999);
    pair.step();
    pair.step();
    pair.advance(1000);
    expect(pair.run()).toMatchObject([{ kind: 'response', id, response: { status: 408 } }]);
  });

  const etag = (value: number) => ({ number: OptionNumber.ETAG, value: Uint8Array.of(value) });

  test('a block of another body of an observed resource is ignored, and the current body completes', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/a', observe: 0 }, 0);
    const { token } = next(client)!;
    const send = (tag: number, number: number, more: number, fill: number): void => {
      const options = [etag(tag), option(23, blockNumber(number, more, 7)), ...(number === 0 ? [option(6, 1)] : [])];
      client.receive(message(0x45, [...token], options, new Uint8Array(KIB).fill(fill)), 0);
    };
    send(1, 0, 1, 1);
    send(2, 1, 0, 2);
    send(1, 2, 0, 3);
    expect(client.requester.unmatched).toBe(2);
    send(1, 1, 0, 4);
    const { payload } = responseOf(client.nextEvent()!).response;
    expect([payload.length, payload[0], payload[KIB]]).toEqual([2 * KIB, 1, 4]);
  });

  test.each<[string, [tag: number, number: number, more: number][]]>([
    ['begins with a middle block', [[1, 1, 0]]],
    [
      'continues with a block of another body (RFC 7959 §2.4)',
      [
        [1, 0, 1],
        [2, 1, 0],
      ],
    ],
    [
      'leaves a block out',
      [
        [1, 0, 1],
        [1, 2, 0],
      ],
    ],
    [
      'repeats a block',
      [
        [1, 0, 1],
        [1, 1, 1],
        [1, 1, 0],
      ],
    ],
  ])('an answer that %s fails its request at once', (_, blocks) => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/a' }, 0);
    const { token } = next(client)!;
    for (const [tag, number, more] of blocks)
      client.receive(message(0x45, [...token], [etag(tag), option(23, blockNumber(number, more, 7))], new Uint8Array(KIB)), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
    expect(client.nextEvent()).toBeNull();
  });

  test('an observation fails at once when its first answer begins with a middle block', () => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/a', observe: 0 }, 0);
    const { token } = next(client)!;
    client.receive(message(0x45, [...token], [etag(1), option(23, blockNumber(1, 0, 7))], new Uint8Array(KIB)), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
  });

  test('4.08 with the ETag of an unknown body fails a request that observes nothing', () => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/a' }, 0);
    const { token } = next(client)!;
    client.receive(message(0x88, [...token], [etag(1)]), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
  });
});
