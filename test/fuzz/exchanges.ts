/**
 * CoAP exchanges: two ends that ask, observe, answer and cancel at random, while messages are damaged, repeated and
 * made up.
 */
import { Exchanges, type ExchangesEvent } from '../../protocol/coap/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import type { Random } from '../../testing/random.ts';
import { below, chance, hostile, mutated, pick } from './mutate.ts';
import type { Target } from './target.ts';

const STEPS = 300;
const DAY = 86_400_000;

export const exchangesTarget: Target = {
  name: 'coap.exchanges',
  weight: 5,
  iterate(random) {
    const [one, other] = [end(random), end(random)];
    const seen: Uint8Array[] = [];
    let now = 0;
    for (let step = 0; step < STEPS; step++) {
      const [from, to] = chance(random, 0.5) ? [one, other] : [other, one];
      act(random, from, now);
      for (let message = from.transmit(); message !== null; message = from.transmit()) {
        if (seen.length < 200) seen.push(message.slice());
        if (chance(random, 0.05)) continue;
        to.receive(chance(random, 0.2) ? mutated(random, message) : message, now);
      }
      if (chance(random, 0.2)) to.receive(hostile(random, seen), now);
      for (const each of [one, other]) {
        for (let event = each.nextEvent(); event !== null; event = each.nextEvent()) answer(random, each, event, now);
      }
      now += below(random, chance(random, 0.05) ? 60_000 : 100);
      if (one.nextTimeout() <= now) one.handleTimeout(now);
      if (other.nextTimeout() <= now) other.handleTimeout(now);
    }
    // whatever is left ends by timeout, and then no timer remains
    now += DAY;
    for (const each of [one, other]) {
      each.handleTimeout(now);
      each.close(new SvcError('CLOSED', 'over'));
      while (each.transmit() !== null);
      while (each.nextEvent() !== null);
      if (each.nextTimeout() !== Number.POSITIVE_INFINITY) throw new Error(`a closed end still waits for ${each.nextTimeout()}`);
    }
  },
};

function end(random: Random): Exchanges {
  return new Exchanges({ randomToken: (length) => random.bytes(length), maxBody: 1 << 18, maxRequests: 8, maxTransfers: 2 });
}

function act(random: Random, end: Exchanges, now: number): void {
  const kind = below(random, 10);
  if (kind < 5) {
    const payload = random.bytes(below(random, pick(random, [1, 100, 5000, 150_000])));
    const observe = chance(random, 0.2) ? { observe: 0 as const } : {};
    end.request({ method: pick(random, ['GET', 'POST', 'PUT', 'DELETE'] as const), path: '/a/b', payload, ...observe }, now);
  } else if (kind === 5) end.requester.cancel(below(random, 100));
  else if (kind === 6) end.release(below(random, 100), now);
  else if (kind === 7) end.responder.respond(below(random, 100), { status: 205, payload: random.bytes(below(random, 2000)) }, now);
}

function answer(random: Random, end: Exchanges, event: ExchangesEvent, now: number): void {
  if (event.kind !== 'request' || chance(random, 0.2)) return;
  const payload = random.bytes(below(random, pick(random, [1, 100, 150_000])));
  end.responder.respond(
    event.exchange,
    { status: pick(random, [201, 204, 205, 404, 500]), payload, ...(chance(random, 0.3) ? { observe: true } : {}) },
    now,
  );
}
