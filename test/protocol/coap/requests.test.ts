/** Requests and answers end to end: in parallel, late, cancelled, refused. */
import { describe, expect, test } from 'vitest';
import { type ExchangesEvent, textReply } from '../../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import { seeds } from '../../support/tiered.ts';
import { ascii, message, R, responseOf, textOf } from './messages.ts';
import { answering, Pair, randomBytes, seededRandom } from './pair.ts';

describe('requests', () => {
  function getTheirOwnAnswers(seed: number): void {
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
      if (!pair.server.responder.respond(event.exchange, { status: 205, payload: reply }, 0)) throw new Error('no request waits');
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
    expect(pair.client.requester.open + pair.server.responder.open).toBe(0);
  }

  test.each(seeds(1, 10))('in parallel get their own answers in any order (seed %i)', getTheirOwnAnswers);

  test.each(seeds(11, 60))('in parallel get their own answers in any order (seed %i)', { tags: ['slow'] }, getTheirOwnAnswers);

  test('keep a payload in blocks, also when its owner reuses or transfers the bytes', () => {
    const pair = new Pair();
    const [payload, answer] = [new Uint8Array(3 * R).fill(1), new Uint8Array(3 * R).fill(2)];
    pair.client.request({ method: 'POST', path: '/', payload }, 0);
    structuredClone(payload.buffer, { transfer: [payload.buffer] });
    const received: number[][] = [];
    const events = pair.run((event) => {
      if (event.kind !== 'request') throw new Error(event.kind);
      received.push([event.request.payload.length, ...new Set(event.request.payload)]);
      pair.server.responder.respond(event.exchange, { status: 205, payload: answer }, 0);
      answer.fill(3);
    });
    const echoed = responseOf(events[0]!).response.payload;
    received.push([echoed.length, ...new Set(echoed)]);
    expect(received).toEqual([
      [3 * R, 1],
      [3 * R, 2],
    ]);
  });

  test('time out after two minutes, or after their own timeout', () => {
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
    expect([pair.client.requester.unmatched, pair.client.requester.open]).toEqual([2, 0]);
  });

  test('can be cancelled: the answer is dropped', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/' }, 0);
    pair.client.requester.cancel(id);
    pair.client.requester.cancel(id);
    expect(pair.run(answering(pair, () => ({ status: 205 })))).toEqual([]);
    expect([pair.client.requester.unmatched, pair.client.requester.open]).toEqual([1, 0]);
    expect(pair.log).toHaveLength(2);
  });

  test('above the limit are refused with 5.03 "Out of resources" until one is answered', () => {
    const pair = new Pair({ maxRequests: 2 });
    for (let i = 0; i < 3; i++) pair.client.request({ method: 'GET', path: '/' }, 0);
    const open: number[] = [];
    const [refused] = pair.run((event) => event.kind === 'request' && open.push(event.exchange));
    expect(responseOf(refused).response).toEqual({ status: 503, payload: ascii('Out of resources') });
    expect(open).toHaveLength(2);
    pair.server.responder.respond(open[0]!, { status: 205 }, 0);
    // A request is open until the channel has taken the answer.
    expect(pair.server.responder.open).toBe(2);
    pair.run();
    expect(pair.server.responder.open).toBe(1);
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run(answering(pair, () => ({ status: 204 })));
    expect(responseOf(events[0]).response.status).toBe(204);
  });

  test('dropped without an answer get 5.00 "Request unhandled"', () => {
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
      for (const status of [205, 204]) results.push(pair.server.responder.respond(event.exchange, { status }, 0));
      pair.server.release(event.exchange, 0);
      results.push(pair.server.responder.respond(event.exchange, { status: 205, observe: true }, 0));
    });
    expect(results).toEqual([true, false, false]);
    expect(pair.log).toHaveLength(2);
  });

  test('stay open when a reply cannot be encoded, which is a local error', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/' }, 0);
    const events = pair.run((event) => {
      if (event.kind !== 'request') return;
      for (const reply of [{ status: 99 }, { status: 300 }, { status: 205, contentFormat: 70_000 }, { status: 205, maxAge: -1 }]) {
        expect(() => pair.server.responder.respond(event.exchange, reply, 0)).toThrow(LocalError);
      }
      pair.server.responder.respond(event.exchange, textReply(205, 'well'), 0);
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
  ])('cannot be made with %j', (request) => {
    const pair = new Pair();
    expect(() => pair.client.request(request as never, 0)).toThrow(LocalError);
    expect(pair.client.requester.open).toBe(0);
    expect(pair.client.transmit()).toBeNull();
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
    expect(pair.server.responder.respond(1, { status: 205 }, 0)).toBe(false);
    expect(() => pair.client.request({ method: 'GET', path: '/' }, 0)).toThrow(error);
    pair.server.receive(message(1, [1], []), 0);
    expect([pair.server.nextEvent(), pair.server.transmit(), pair.client.nextTimeout()]).toEqual([null, null, Number.POSITIVE_INFINITY]);
  });
});
