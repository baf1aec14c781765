/** Which connections may make requests, by the addresses that they came in on and from. */
import { describe, expect, it } from 'vitest';
import { servesAt } from '../../../server/rest/listen.ts';

describe('REST', () => {
  it.each([
    [undefined, '127.0.0.1', '127.0.0.1', true],
    [undefined, '::ffff:127.0.0.1', '::ffff:127.0.0.1', true],
    [undefined, '::1', '::1', true],
    [undefined, '192.0.2.1', '192.0.2.1', false],
    [undefined, '192.0.2.1', '127.0.0.1', false],
    [undefined, '127.0.0.1', '192.0.2.7', false],
    [undefined, undefined, undefined, false],
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', true],
    ['127.0.0.2', '127.0.0.1', '127.0.0.1', false],
    ['127.0.0.1', '127.0.0.1', '192.0.2.7', false],
    ['192.0.2.1', '::ffff:192.0.2.1', '203.0.113.5', true],
    ['192.0.2.1', '192.0.2.2', '203.0.113.5', false],
    ['192.0.2.1', '127.0.0.1', '127.0.0.1', false],
    ['::', '192.0.2.1', '203.0.113.5', true],
    ['0.0.0.0', '192.0.2.1', '203.0.113.5', true],
  ])('at %s serves a connection that came in on %s from %s: %s', (rest, localAddress, remoteAddress, serves) => {
    expect(servesAt(rest)({ localAddress, remoteAddress } as never)).toBe(serves);
  });
});
