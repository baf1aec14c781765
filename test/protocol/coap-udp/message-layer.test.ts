/**
 * What the message layer of a CoAP server keeps, and for how long. `test/client/gateway.test.ts` tests what it does.
 */
import { setImmediate as nextTask } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { CoapMessage } from '../../../protocol/coap/message.ts';
import { type DatagramRequest, MessageLayer } from '../../../protocol/coap-udp/index.ts';
import { encodeDatagram, encodeEmpty, MessageType } from '../../../protocol/coap-udp/message.ts';
import type { Path } from '../../../protocol/path.ts';
import { collectGarbage } from '../../support/garbage.ts';

const PEER: Path = { kind: 'udp', key: 'udp:1:127.0.0.1:40000', address: '127.0.0.1', port: 40_000, socket: 1, local: true };
const TOKEN = new Uint8Array([1]);
const EMPTY = new Uint8Array(0);
const request: CoapMessage = { code: 2, token: TOKEN, options: [], payload: new Uint8Array(60_000) };
const response: CoapMessage = { code: 69, token: TOKEN, options: [], payload: EMPTY };

test.each([
  ['confirmable', MessageType.CONFIRMABLE],
  ['non-confirmable', MessageType.NON_CONFIRMABLE],
])('an answered %s request is delivered only once, although its bytes are not kept', { tags: ['slow'] }, async (_, type) => {
  const kept: WeakRef<ArrayBufferLike>[] = [];
  const layer = new MessageLayer(() => 0);
  const take = ({ message }: DatagramRequest): void => void kept.push(new WeakRef(message.payload.buffer));
  let sent = 0;
  for (let id = 0; id < 20; id++) sent += answered(layer, encodeDatagram(type, id, request), 0, take);
  sent += answered(layer, encodeDatagram(type, 7, request), 1, take);
  expect(kept).toHaveLength(20);
  expect(sent).toBe(type === MessageType.CONFIRMABLE ? 21 : 20);
  // The target of a new WeakRef stays alive until the end of the task.
  await nextTask();
  collectGarbage();
  expect(kept.filter((each) => each.deref() !== undefined)).toEqual([]);
});

test('any number of non-confirmable requests does not affect a notification that waits for its acknowledgement', () => {
  const layer = new MessageLayer(() => 0);
  const notification = layer.send(PEER, response, { confirmable: true, reported: true }, 0);
  const small = { ...request, payload: EMPTY };
  let sent = 0;
  for (let each = 0; each < 3000; each++) sent += answered(layer, encodeDatagram(MessageType.NON_CONFIRMABLE, each, small), 1);
  expect([sent, layer.nextEvent()]).toEqual([3001, null]);
  layer.receive(encodeEmpty(MessageType.ACKNOWLEDGEMENT, notification.id), PEER, 2);
  expect(layer.nextEvent()).toEqual({ kind: 'delivery', sent: notification, delivery: 'acknowledged' });
  expect([layer.nextEvent(), layer.nextTimeout()]).toEqual([null, Number.POSITIVE_INFINITY]);
});

test('the oldest message is given up when too many wait, and a cancelled one is not reported', () => {
  const layer = new MessageLayer(() => 0);
  const [first, second] = Array.from({ length: 1024 }, () => layer.send(PEER, response, { confirmable: true, reported: true }, 0));
  expect(layer.nextEvent()).toBeNull();
  layer.send(PEER, response, { confirmable: true }, 0);
  expect(layer.nextEvent()).toEqual({ kind: 'delivery', sent: first, delivery: 'unanswered' });
  layer.cancel(second!);
  layer.receive(encodeEmpty(MessageType.ACKNOWLEDGEMENT, second!.id), PEER, 1);
  expect(layer.nextEvent()).toBeNull();
});

test('the oldest remembered request is forgotten when there are too many: other peers are answered, and its repeat is a new request', {
  tags: ['slow'],
}, () => {
  const layer = new MessageLayer(() => 0);
  const from = (name: string): Path => ({ ...PEER, key: name });
  const small = { ...request, payload: EMPTY };
  const ask = (peer: string, id: number): number => {
    layer.receive(encodeDatagram(MessageType.CONFIRMABLE, id, small), from(peer), 0);
    let requests = 0;
    for (let event = layer.nextEvent(); event !== null; event = layer.nextEvent()) if (event.kind === 'request') requests++;
    return requests;
  };
  expect([ask('first', 1), ask('first', 1)]).toEqual([1, 0]);
  for (let id = 0; id < 4096; id++) expect(ask('greedy', id)).toBe(1);
  expect([ask('honest', 1), ask('honest', 1)]).toEqual([1, 0]);
  expect(ask('first', 1)).toBe(1);
});

test('an unacknowledged message is repeated four times, after pauses that double, and then given up (RFC 7252 §4.2)', () => {
  const layer = new MessageLayer(() => 0);
  const sent = layer.send(PEER, response, { confirmable: true, reported: true }, 0);
  const times: number[] = [];
  for (let now = 0; layer.nextTimeout() < Number.POSITIVE_INFINITY; now = layer.nextTimeout()) {
    layer.handleTimeout(now);
    while (layer.transmit() !== null) times.push(now);
  }
  expect(times).toEqual([0, 2000, 6000, 14_000, 30_000]);
  expect(layer.nextEvent()).toEqual({ kind: 'delivery', sent, delivery: 'unanswered' });
});

test('a message id means the same request for EXCHANGE_LIFETIME, and then a new one (RFC 7252 §4.8.2)', () => {
  const layer = new MessageLayer(() => 0);
  let requests = 0;
  const ask = (now: number) => answered(layer, encodeDatagram(MessageType.CONFIRMABLE, 7, request), now, () => requests++);
  expect([ask(0), ask(246_999), requests]).toEqual([1, 1, 1]);
  expect([ask(247_000), requests]).toEqual([1, 2]);
});

/** Passes a datagram to the layer and answers the request in it. @returns number of datagrams sent */
function answered(layer: MessageLayer, datagram: Uint8Array, now: number, take: (request: DatagramRequest) => void = () => {}): number {
  layer.receive(datagram, PEER, now);
  for (let event = layer.nextEvent(); event !== null; event = layer.nextEvent()) {
    if (event.kind !== 'request') throw new Error('no delivery should have been reported');
    take(event.request);
    layer.respond(event.request, response, now);
  }
  let sent = 0;
  while (layer.transmit() !== null) sent++;
  return sent;
}
