/** Meaningless and malformed messages are dropped, refused or counted, and never throw. */
import { describe, expect, test } from 'vitest';
import { type CoapMessage, Exchanges } from '../../../protocol/coap/index.ts';
import { OptionNumber } from '../../../protocol/coap/options.ts';
import { seeds } from '../../support/tiered.ts';
import { ascii, block, blockNumber, message, next, option, path, R, responseOf, textOf, textOption } from './messages.ts';
import { answering, lone, Pair, randomBytes, seededRandom } from './pair.ts';

describe('meaningless messages', () => {
  test.each<[string, Uint8Array, 'malformed' | 'ignored' | 'unmatched']>([
    ['an empty message', message(0, [], []), 'ignored'],
    ['a signal', message(0xe1, [], []), 'ignored'],
    ['a response to no request', message(0x45, [1, 2], []), 'unmatched'],
    ['a response with an empty token', message(0x45, [], []), 'unmatched'],
    ['class 1', message(0x21, [], []), 'malformed'],
    ['class 3', message(0x60, [], []), 'malformed'],
    ['class 6', message(0xdf, [], []), 'malformed'],
    ['code 0.00 with a token', message(0, [1], []), 'malformed'],
    ['code 0.00 with an option', message(0, [], [option(14, 1)]), 'malformed'],
    ['code 0.00 with a payload', message(0, [], [], ascii('x')), 'malformed'],
    ['bytes that do not decode', Uint8Array.of(0xff, 1), 'malformed'],
    ['no bytes', new Uint8Array(0), 'malformed'],
  ])('%s is dropped and reported', (_, bytes, kind) => {
    const end = lone();
    end.receive(bytes, 0);
    expect([end.requester.unmatched, end.responder.open]).toEqual([kind === 'unmatched' ? 1 : 0, 0]);
    const error = expect.objectContaining({ code: 'PARSE' });
    if (kind === 'malformed') expect(end.nextEvent()).toEqual({ kind: 'malformed', error });
    expect([end.nextEvent(), end.transmit()]).toEqual([null, null]);
  });

  test.each<[string, Uint8Array]>([
    ['an answer', Uint8Array.of(8, 0x45, 9, 9, 9, 9, 9, 9, 9, 9, 0xff)],
    ['a message without a class', Uint8Array.of(8, 0x25, 9, 9, 9, 9, 9, 9, 9, 9)],
  ])('a malformed message (%s) fails the request with its token', (_, bytes) => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/' }, 0);
    client.receive(bytes, 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE' } });
    expect(client.nextEvent()).toMatchObject({ kind: 'malformed', error: { code: 'PARSE' } });
    expect([client.requester.open, client.nextEvent()]).toEqual([0, null]);
  });

  test('a malformed request does not fail our own request with the same token', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/' }, 0);
    client.receive(Uint8Array.of(8, 1, 9, 9, 9, 9, 9, 9, 9, 9, 0xff), 0);
    expect(client.nextEvent()).toMatchObject({ kind: 'malformed' });
    expect([client.requester.open, client.nextEvent()]).toEqual([1, null]);
  });

  test.each<[string, number, CoapMessage['options'], number, string]>([
    ['If-Match', 1, [{ number: 1, value: ascii('x') }], 0x80, 'Critical option 1 is not supported'],
    ['If-None-Match', 3, [{ number: 5, value: new Uint8Array(0) }], 0x80, 'Critical option 5 is not supported'],
    ['Uri-Query', 1, [{ number: 15, value: ascii('u=Cel') }], 0x80, 'Critical option 15 is not supported'],
    ['Accept', 1, [option(17, 60)], 0x80, 'Critical option 17 is not supported'],
    ['Proxy-Uri', 1, [{ number: 35, value: ascii('coap://a') }], 0x80, 'Critical option 35 is not supported'],
    ['an unknown odd option', 1, [{ number: 2049, value: new Uint8Array(0) }], 0x80, 'Critical option 2049 is not supported'],
    ['a Uri-Path of 256 bytes', 1, path('x'.repeat(256)), 0x82, 'Critical option 11 has a wrong length'],
    ['an empty Uri-Host', 1, [textOption(3, '')], 0x82, 'Critical option 3 has a wrong length'],
    ['Uri-Port of 3 bytes', 1, [option(7, 65_536)], 0x82, 'Critical option 7 has a wrong length'],
    ['Block1 of 4 bytes', 3, [{ number: 27, value: new Uint8Array(4) }], 0x82, 'Critical option 27 has a wrong length'],
    ['Block2 of 4 bytes', 1, [{ number: 23, value: new Uint8Array(4) }], 0x82, 'Critical option 23 has a wrong length'],
    ['Uri-Host twice', 1, [textOption(3, 'a'), textOption(3, 'a')], 0x82, 'Critical option 3 is repeated'],
    ['Uri-Port twice', 1, [option(7, 1), option(7, 1)], 0x82, 'Critical option 7 is repeated'],
    ['Block1 twice', 3, [option(27, 7), option(27, 7)], 0x82, 'Critical option 27 is repeated'],
    ['Block2 twice', 1, [option(23, 7), option(23, 7)], 0x82, 'Critical option 23 is repeated'],
    ['a path that is not UTF-8', 1, [{ number: 11, value: Uint8Array.of(0xff) }], 0x80, 'The path or query is not UTF-8'],
    ['a path of 257 bytes', 1, path('x'.repeat(128), 'y'.repeat(127)), 0x80, 'The path is longer than 256 bytes'],
    ['a dot segment', 1, path('..'), 0x80, 'The path has a dot segment'],
    ['FETCH', 5, [], 0x84, 'Unknown method'],
    ['method 0.31', 31, [], 0x84, 'Unknown method'],
  ])('a request with %s is refused with a reason', (_, code, options, status, text) => {
    const server = lone();
    server.receive(message(code, [4], options), 0);
    const answer = next(server)!;
    expect([answer.code, textOf(answer.payload), answer.options.length, [...answer.token]]).toEqual([status, text, 0, [4]]);
    expect(server.nextEvent()).toBeNull();
  });

  test('Uri-Host, Uri-Port and unknown elective options are accepted', () => {
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

  test('Uri-Query is accepted where the application reads it', () => {
    const server = new Exchanges({ randomToken: () => new Uint8Array(8), criticalOptions: [OptionNumber.URI_QUERY] });
    const client = lone();
    client.request({ method: 'GET', path: '/sensors', query: ['u=Cel', 'ü'] }, 0);
    server.receive(client.transmit()!, 0);
    expect(server.nextEvent()).toMatchObject({ kind: 'request', request: { query: ['u=Cel', 'ü'] } });
  });

  test('the first value of a repeated elective option counts, and one of a wrong length is ignored', () => {
    const server = lone();
    const options = [option(6, 0), option(6, 1), option(12, 60), option(12, 50), { number: 60, value: new Uint8Array(5).fill(255) }];
    server.receive(message(1, [4], options), 0);
    expect(server.nextEvent()).toMatchObject({ kind: 'request', request: { contentFormat: 60, observe: true } });
    server.receive(message(1, [5], [{ number: 6, value: new Uint8Array(4) }]), 0);
    expect(server.nextEvent()).toMatchObject({ kind: 'request', request: { observe: false } });
  });

  test.each<[string, CoapMessage['options'], string]>([
    ['no endpoint knows', [{ number: 2049, value: new Uint8Array(0) }], 'option 2049 is not supported'],
    ['that is repeated', [option(23, 7), option(23, 7)], 'option 23 is repeated'],
    ['of a wrong length', [{ number: 27, value: new Uint8Array(4) }], 'option 27 has a wrong length'],
  ])('a response with a critical option %s fails the request', (_, options, problem) => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/' }, 0);
    client.receive(message(0x45, [...next(client)!.token], options), 0);
    const text = `CoAP: the response is rejected: critical ${problem}`;
    expect(client.nextEvent()).toMatchObject({ kind: 'failed', id, error: { code: 'BAD_RESPONSE', message: text } });
  });

  test('in a response the first value of a repeated elective option counts, and one of a wrong length is ignored', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/' }, 0);
    const { token } = next(client)!;
    const options = [option(14, 5), option(14, 6), { number: 6, value: new Uint8Array(4) }, { number: 12, value: new Uint8Array(3) }];
    client.receive(message(0x45, [...token], options), 0);
    expect(responseOf(client.nextEvent()).response).toEqual({ status: 205, maxAge: 5, payload: new Uint8Array(0) });
  });

  test('a request with the token of an open one is dropped', () => {
    const server = lone();
    for (let i = 0; i < 3; i++) server.receive(message(1, [4], []), 0);
    expect([server.responder.open, server.responder.duplicates]).toEqual([1, 2]);
  });

  test('automatic answers that the peer does not take are bounded', { tags: ['slow'] }, () => {
    const server = lone();
    for (let i = 0; i < 10_000; i++) server.receive(message(5, [i & 255, i >> 8], []), 0);
    let waiting = 0;
    while (server.transmit() !== null) waiting++;
    expect(waiting).toBe(256);
  });

  test('repeated requests for the same block queue one answer', { tags: ['slow'] }, () => {
    const server = lone();
    server.receive(message(1, [4], []), 0);
    server.responder.respond(1, { status: 205, payload: new Uint8Array(3 * R) }, 0);
    for (let i = 0; i < 1000; i++) server.receive(message(1, [4], [option(23, blockNumber(64, 0, 7))]), 0);
    expect([next(server), next(server), next(server)].map((each) => each && block(each, 23))).toEqual(['0/1/7', '64/1/7', null]);
  });
});

describe.each(seeds(1, 2))('seed %i', (seed) => {
  test('random and mutated messages throw nothing and leave both ends usable', { tags: ['slow'] }, () => {
    const random = seededRandom(seed);
    const pair = new Pair({ maxRequests: 8, maxTransfers: 4 });
    for (let i = 0; i < 5; i++)
      pair.client.request(
        { method: 'POST', path: `/${i}`, payload: randomBytes(random, i * 30_000), ...(i === 3 ? { observe: 0 as const } : {}) },
        0,
      );
    const seen: Uint8Array[] = [];
    for (let i = 0; i < 4_000; i++) {
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
            each.responder.respond(
              event.exchange,
              { status: 205, payload: randomBytes(random, random(20) === 0 ? 70_000 : 5), observe: random(2) === 0 },
              i,
            );
        }
      }
      if (random(50) === 0) for (const each of [pair.client, pair.server]) each.handleTimeout(i);
    }
    expect(pair.server.responder.open).toBeLessThanOrEqual(8);
    const fresh = new Pair();
    fresh.client.request({ method: 'GET', path: '/' }, 0);
    expect(responseOf(fresh.run(answering(fresh, () => ({ status: 205 })))[0]).response.status).toBe(205);
  });
});
