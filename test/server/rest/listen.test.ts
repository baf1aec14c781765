/** Where the server listens, and which connections may make requests, by their local and remote addresses. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { listenAt, servesAt } from '../../../server/rest/listen.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

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
    ['0.0.0.0', '::ffff:192.0.2.1', '::ffff:203.0.113.5', true],
    ['0.0.0.0', '2001:db8::1', '2001:db8::5', false],
    ['0.0.0.0', undefined, undefined, false],
  ])('at %s serves a connection to %s from %s: %s', (rest, localAddress, remoteAddress, serves) => {
    expect(servesAt(rest)({ localAddress, remoteAddress } as never)).toBe(serves);
  });
});

describe('a server', () => {
  async function listens(rest: string | undefined, webSockets: string | undefined, ...hosts: string[]): Promise<void> {
    const app = fastify({ forceCloseConnections: true });
    const { port, close } = await listenAt(app, { rest, webSockets }, 0);
    try {
      for (const host of hosts) {
        const socket = connect({ host, port });
        await once(socket, 'connect');
        socket.destroy();
      }
    } finally {
      close();
      await app.close();
    }
  }
  const name = 'with REST at %s and WebSockets at %s listens at %s and %s';
  it.skipIf(!hasIpv6).each([
    ['0.0.0.0', undefined, '::1', '127.0.0.1'],
    ['::1', '0.0.0.0', '::1', '127.0.0.1'],
    ['127.0.0.1', '::1', '::1', '127.0.0.1'],
    ['::', '0.0.0.0', '::1', '127.0.0.1'],
    [undefined, undefined, '::1', '127.0.0.1'],
  ] as const)(name, listens);
  it.each([
    ['127.0.0.1', '0.0.0.0', '127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', '127.0.0.1', '127.0.0.1', '127.0.0.2'],
  ] as const)(name, listens);
});
