import { expect, test } from 'vitest';
import { Pair, randomBytes, seededRandom } from './pair.ts';

const R = 66_560;

test.each([0, 1, 1023, 1024, 1025, 65_536, R - 200, R - 1, R, R + 1, 3 * R + 5, (1 << 20) - 1, 1 << 20])('a body of %i bytes arrives both ways', (length) => {
  const pair = new Pair();
  const body = randomBytes(seededRandom(length + 1), length);
  const id = pair.client.request({ method: 'POST', path: '/echo', contentFormat: 42, payload: body }, 0);
  let seen: Uint8Array | undefined;
  const events = pair.run((event) => {
    if (event.kind !== 'request') throw new Error(event.kind);
    expect(event.request.path).toBe('/echo');
    expect(event.request.contentFormat).toBe(42);
    seen = event.request.payload;
    pair.server.respond(event.exchange, { status: 205, contentFormat: 42, payload: event.request.payload }, 0);
  });
  expect(Buffer.compare(seen!, body)).toBe(0);
  expect(events).toHaveLength(1);
  const event = events[0]!;
  if (event.kind !== 'response') throw new Error(event.kind);
  expect(event.id).toBe(id);
  expect(event.final).toBe(true);
  expect(event.response.status).toBe(205);
  expect(Buffer.compare(event.response.payload, body)).toBe(0);
  expect(pair.client.stats().requests + pair.server.stats().incoming).toBe(0);
  expect(pair.server.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
});
