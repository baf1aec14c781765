/**
 * Observations end to end (RFC 7641), also with reordered messages. `rfc-exchanges.test.ts` has the flows of the
 * standards.
 */
import { describe, expect, test } from 'vitest';
import type { ExchangesEvent } from '../../../protocol/coap/index.ts';
import { readUint } from '../../../protocol/coap/options.ts';
import { seeds } from '../../support/tiered.ts';
import { ascii, message, next, option, responseOf, textOf } from './messages.ts';
import { answering, lone, Pair, randomBytes, seededRandom } from './pair.ts';

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

  /** Starts an observation with GET. */
  const observed = () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    pair.server.responder.respond(observer.exchange(), { status: 205, observe: true }, 0);
    observer.run();
    return { pair, id, observer, exchange: observer.exchange() };
  };

  test('continues until a reply without Observe', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    for (const value of ['1', '2', '3']) {
      expect(pair.server.responder.respond(observer.exchange(), { status: 205, payload: ascii(value), observe: true }, 0)).toBe(true);
      observer.run();
      pair.advance(600_000);
    }
    expect(pair.server.responder.respond(observer.exchange(), { status: 404 }, 0)).toBe(true);
    observer.run();
    expect(pair.server.responder.respond(observer.exchange(), { status: 205, observe: true }, 0)).toBe(false);
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
    expect(pair.client.requester.open + pair.server.responder.open).toBe(0);
  });

  test('is ended by cancel, at both ends', () => {
    const { pair, id, observer, exchange } = observed();
    pair.client.requester.cancel(id);
    observer.run();
    expect(observer.cancelled).toEqual([exchange]);
    expect(pair.server.responder.respond(exchange, { status: 205, observe: true }, 0)).toBe(false);
    // The message that ends the observation is a request itself and is answered.
    expect(observer.exchange()).not.toBe(exchange);
    pair.server.responder.respond(observer.exchange(), { status: 205 }, 0);
    observer.run();
    expect(observer.events).toHaveLength(1);
    expect(pair.client.requester.open + pair.server.responder.open).toBe(0);
  });

  test('of a POST is ended without a second POST', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'POST', path: '/client/connect', payload: ascii('wait'), observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    const first = observer.exchange();
    pair.server.responder.respond(first, { status: 205, observe: true }, 0);
    observer.run();
    expect(responseOf(observer.events[0]).final).toBe(false);
    pair.client.requester.cancel(id);
    observer.run();
    expect([observer.cancelled, observer.exchange()]).toEqual([[first], first]);
    expect(pair.client.requester.open + pair.server.responder.open).toBe(0);
  });

  test('does not begin when the request or the reply has no Observe', () => {
    for (const [observe, reply] of [
      [undefined, true],
      [0, false],
    ] as const) {
      const pair = new Pair();
      pair.client.request(observe === undefined ? { method: 'GET', path: '/' } : { method: 'GET', path: '/', observe }, 0);
      const events = pair.run(answering(pair, () => ({ status: 205, observe: reply })));
      expect(responseOf(events[0]).final).toBe(true);
      expect(pair.client.requester.open + pair.server.responder.open).toBe(0);
    }
  });

  test('ends even when its end overtakes its beginning: the next notification is answered with the end again', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    pair.client.requester.cancel(id);
    const [begin, end] = [pair.client.transmit()!, pair.client.transmit()!];
    const exchanges: number[] = [];
    const deliver = (bytes: Uint8Array): void => {
      pair.server.receive(bytes, 0);
      for (let event = pair.server.nextEvent(); event !== null; event = pair.server.nextEvent()) {
        if (event.kind !== 'request') continue;
        exchanges.push(event.exchange);
        pair.server.responder.respond(event.exchange, { status: 205, observe: event.request.observe }, 0);
      }
    };
    deliver(end);
    deliver(begin);
    pair.run((event) => event.kind === 'request' && pair.server.responder.respond(event.exchange, { status: 205 }, 0));
    expect(pair.server.responder.respond(exchanges[1]!, { status: 205, observe: true }, 0)).toBe(false);
    expect(pair.server.responder.open).toBe(0);
  });

  test('leaves nothing behind once ended; one that may not have begun is remembered', () => {
    const { pair, id, observer, exchange } = observed();
    pair.client.requester.cancel(id);
    observer.run();
    expect([observer.cancelled, pair.client.isIdle]).toEqual([[exchange], true]);
    pair.client.requester.cancel(pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0));
    while (pair.client.transmit() !== null);
    expect(pair.client.isIdle).toBe(false);
  });

  test('sends only the newest of the waiting notifications', () => {
    const pair = new Pair();
    pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    for (let i = 0; i < 100; i++)
      pair.server.responder.respond(observer.exchange(), { status: 205, payload: ascii(`${i}`), observe: true }, 0);
    observer.run();
    expect(observer.events.map((event) => textOf(responseOf(event).response.payload))).toEqual(['99']);
  });

  test.each([
    ['larger than a body may be', { maxBody: 100_000 }, 100_001, 500],
    ['without room for its blocks', { maxTransfers: 0 }, 100_000, 503],
  ])('ends at both ends with a notification %s', (_, options, length, status) => {
    const pair = new Pair(options);
    pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    pair.server.responder.respond(observer.exchange(), { status: 205, payload: new Uint8Array(length), observe: true }, 0);
    observer.run();
    expect(observer.events.at(-1)).toMatchObject({ kind: 'response', response: { status }, final: true });
    expect(pair.server.responder.respond(observer.exchange(), { status: 205, observe: true }, 0)).toBe(false);
    expect([pair.client.requester.open, pair.server.responder.open]).toEqual([0, 0]);
  });

  test('drops notifications that were overtaken', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/', observe: 0 }, 0);
    const { token } = next(client)!;
    const notify = (sequence: number): void => client.receive(message(0x45, [...token], [option(6, sequence)], ascii(`${sequence}`)), 0);
    for (const sequence of [5, 7, 6, 7, 0xffffff, 0x7ffff0, 0xffffe0, 1, 0xffffff, 2]) notify(sequence);
    const seen: string[] = [];
    for (let event = client.nextEvent(); event !== null; event = client.nextEvent()) seen.push(textOf(responseOf(event).response.payload));
    expect(seen).toEqual(['5', '7', '7', `${0x7ffff0}`, `${0xffffe0}`, '1', '2']);
  });

  test('has a timeout for its first answer and none for later ones', () => {
    const pair = new Pair();
    const id = pair.client.request({ method: 'GET', path: '/', observe: 0 }, 0, { timeout: 1000 });
    pair.advance(1000);
    expect(pair.client.nextEvent()).toEqual({ kind: 'timeout', id });
    // The end follows the beginning, so the other end forgets the observation, too.
    const codes = [next(pair.client)!, next(pair.client)!].map(({ options }) =>
      readUint(options.find(({ number }) => number === 6)!.value),
    );
    expect(codes).toEqual([0, 1]);
  });

  function arrivesAtNewest(seed: number): void {
    const pair = new Pair({}, seed);
    const random = seededRandom(seed);
    pair.client.request({ method: 'GET', path: '/t', observe: 0 }, 0);
    const observer = observing(pair);
    observer.run();
    let newest = new Uint8Array(0);
    for (let i = 0; i < 8; i++) {
      newest = randomBytes(random, random(3) * 70_000 + random(100)) as Uint8Array<ArrayBuffer>;
      pair.server.responder.respond(observer.exchange(), { status: 205, payload: newest, observe: true }, 0);
      // Deliver a few messages, then change the state again.
      for (let steps = random(6); steps > 0; steps--) pair.step();
    }
    observer.run();
    for (let event = pair.client.nextEvent(); event !== null; event = pair.client.nextEvent()) observer.events.push(event);
    const last = responseOf(observer.events.at(-1)).response;
    expect(Buffer.compare(last.payload, newest)).toBe(0);
    expect(pair.client.requester.open).toBe(1);
  }

  test.each(seeds(1, 10))('with bodies in blocks arrives at the newest state (seed %i)', arrivesAtNewest);

  test.each(seeds(11, 60))('with bodies in blocks arrives at the newest state (seed %i)', { tags: ['slow'] }, arrivesAtNewest);
});
