/**
 * Messages that are not CoAP: the waiting request fails at once, and the peer receives BAD_MESSAGE (PROTOCOL.md §7,
 * §10).
 */
import { describe, expect, it } from 'vitest';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { acceptedSession, type ConnectedPair, pair, testRouter } from './support.ts';

const CONTENT = 0x45;
const TOKEN_LENGTH = 8;

/** A device that answers a request with bytes: `answer` gets the request's token. Earlier requests stay unanswered. */
async function answering(answer: (token: Uint8Array) => (number | Uint8Array)[]): Promise<ConnectedPair & { peer: Session }> {
  const both = await pair();
  const peer = await acceptedSession(both);
  const { connection } = peer;
  const next = connection.nextEvent.bind(connection);
  connection.nextEvent = () => {
    const event = next();
    if (event?.kind !== 'message') return event;
    send(peer, ...answer(event.data.slice(2, 2 + TOKEN_LENGTH)));
    return connection.nextEvent();
  };
  return { ...both, peer };
}

function send(session: Session, ...parts: (number | Uint8Array)[]): void {
  session.connection.messages.send(Uint8Array.from(parts.flatMap((part) => (typeof part === 'number' ? [part] : [...part]))));
  session.ping();
}

const errorOf = (promise: Promise<CoapResponse>): Promise<unknown> => promise.then(({ status }) => status).catch((error: unknown) => error);

/** How both ends of the session end. */
async function ends({ simulation, session, peer }: ConnectedPair & { peer: Session }): Promise<unknown[]> {
  return simulation.settle(Promise.all([session.closed, peer.closed]));
}

const REPORTED = {
  code: 'CLOSED',
  message: expect.stringMatching(/^the peer received a malformed message: CoAP: a message is malformed in /),
};

describe('an answer that is not CoAP', () => {
  it.each<[string, (token: Uint8Array) => (number | Uint8Array)[], string]>([
    ['an option nibble of 15', (token) => [8, CONTENT, token, 0xf0], 'an option nibble of 15'],
    ['an option that ends after the message', (token) => [8, CONTENT, token, 0xc2, 60], 'an option'],
    ['a payload marker without payload', (token) => [8, CONTENT, token, 0xff], 'a payload marker without payload'],
    ['161 options', (token) => [8, CONTENT, token, new Uint8Array(161)], 'its number of options'],
    ['a class that is reserved', (token) => [8, 0x65, token], 'its code'],
    ['the class between request and response', (token) => [8, 0x25, token], 'its code'],
    ['code 0.00 with a token', (token) => [8, 0, token], 'its code'],
  ])('%s: the request fails with BAD_RESPONSE, the connection with BAD_MESSAGE', async (_, answer, where) => {
    const both = await answering(answer);
    const before = both.clientEnvironment.clock.now();
    const error = await both.simulation.settle(errorOf(both.session.request({ method: 'GET', path: '/hello' })));
    expect(error).toMatchObject({ code: 'BAD_RESPONSE', message: `CoAP: a message is malformed in ${where}` });
    expect(both.clientEnvironment.clock.now() - before).toBeLessThan(1000);
    const message = `the peer sent a malformed message: CoAP: a message is malformed in ${where}`;
    expect(await ends(both)).toEqual([expect.objectContaining({ code: 'CLOSED', message }), expect.objectContaining(REPORTED)]);
    expect(both.errors).toEqual([]);
  });

  it.each<[string, number[]]>([
    ['a token of 9 bytes', [9, CONTENT, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
    ['fewer bytes than its token has', [8, CONTENT, 1]],
    ['one byte', [8]],
  ])('%s: the answer cannot be assigned, and every request fails with the connection', async (_, answer) => {
    const both = await answering(() => answer);
    const before = both.clientEnvironment.clock.now();
    const error = await both.simulation.settle(errorOf(both.session.request({ method: 'GET', path: '/hello' })));
    expect(error).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('sent a malformed message') });
    expect(both.clientEnvironment.clock.now() - before).toBeLessThan(1000);
    expect(await ends(both)).toMatchObject([{ code: 'CLOSED' }, REPORTED]);
  });

  it('other requests in progress end with the connection', async () => {
    let tokens = 0;
    const both = await answering((token) => (++tokens === 1 ? [0, 0] : [8, CONTENT, token, 0xff]));
    const requests = ['/one', '/two'].map((path) => errorOf(both.session.request({ method: 'GET', path })));
    expect(await both.simulation.settle(Promise.all(requests))).toMatchObject([{ code: 'CLOSED' }, { code: 'BAD_RESPONSE' }]);
  });

  it('a notification ends its observation with BAD_RESPONSE', async () => {
    const both = await answering((token) => [8, CONTENT, token, 0x60]);
    const seen: unknown[] = [];
    let first: Uint8Array | null = null;
    const { connection } = both.peer;
    const sendMessage = connection.messages.send.bind(connection.messages);
    connection.messages.send = (message) => {
      first ??= message;
      return sendMessage(message);
    };
    both.session.observe(
      { method: 'GET', path: '/state' },
      ({ status }) => seen.push(status),
      (error) => seen.push(error?.code),
    );
    await both.simulation.run(1000);
    expect(seen).toEqual([205]);
    send(both.peer, first!, 0xff);
    await both.simulation.run(1000);
    expect(seen).toEqual([205, 'BAD_RESPONSE']);
    expect(await ends(both)).toMatchObject([{ code: 'CLOSED' }, REPORTED]);
  });
});

describe('at the serving end', () => {
  it.each<[string, number[]]>([
    ['a malformed request', [1, 1, 7, 0xff]],
    ['a message of a reserved class', [1, 0xc0, 7]],
    ['bytes', [0xff, 0xff, 0xff]],
  ])('%s: the connection ends with BAD_MESSAGE', async (_, bytes) => {
    const both = await pair();
    const peer = await acceptedSession(both);
    peer.router = testRouter(both.deviceEnvironment);
    send(both.session, ...bytes);
    const reasons = await both.simulation.settle(Promise.all([peer.closed, both.session.closed]));
    expect(reasons).toMatchObject([{ code: 'CLOSED', message: expect.stringContaining('sent a malformed message') }, REPORTED]);
  });

  it('empty messages and signals are ignored (RFC 8323 §3.4, §5)', async () => {
    const both = await pair();
    const peer = await acceptedSession(both);
    peer.router = testRouter(both.deviceEnvironment);
    for (const bytes of [
      [0, 0],
      [0, 0xe1],
      [2, 0xe2, 1, 1],
    ])
      send(both.session, ...bytes);
    const { status } = await both.simulation.settle(both.session.request({ method: 'GET', path: '/hello' }));
    expect([status, both.session.isOpen, peer.isOpen]).toEqual([205, true, true]);
  });
});
