/** What the message layer of a CoAP server keeps, and for how long. What it does is tried with the gateway (`test/client/gateway.test.ts`). */
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
])('of a %s request that was answered its bytes are not kept, and it still reaches nobody twice', async (_, type) => {
  const kept: WeakRef<ArrayBufferLike>[] = [];
  const sent: Uint8Array[] = [];
  const layer: MessageLayer = new MessageLayer({
    random: () => 0,
    send: (bytes) => void sent.push(bytes),
    onRequest: (datagram: DatagramRequest, now) => {
      kept.push(new WeakRef(datagram.message.payload.buffer));
      layer.respond(datagram, response, now);
    },
  });
  for (let id = 0; id < 20; id++) layer.receive(encodeDatagram(type, id, request), PEER, 0);
  layer.receive(encodeDatagram(type, 7, request), PEER, 1);
  expect(kept).toHaveLength(20);
  expect(sent).toHaveLength(type === MessageType.CONFIRMABLE ? 21 : 20);
  // What a WeakRef was made of is held until the end of the task.
  await nextTask();
  collectGarbage();
  expect(kept.filter((each) => each.deref() !== undefined)).toEqual([]);
});

test('any number of non-confirmable requests leaves a notification that waits for its acknowledgement alone', () => {
  const deliveries: string[] = [];
  const sent: Uint8Array[] = [];
  const layer: MessageLayer = new MessageLayer({
    random: () => 0,
    send: (bytes) => void sent.push(bytes),
    onRequest: (datagram: DatagramRequest, now) => layer.respond(datagram, response, now),
  });
  layer.send(PEER, response, { confirmable: true, onEnd: (delivery) => deliveries.push(delivery) }, 0);
  const id = (sent[0]![2]! << 8) | sent[0]![3]!;
  const small = { ...request, payload: EMPTY };
  for (let each = 0; each < 3000; each++) layer.receive(encodeDatagram(MessageType.NON_CONFIRMABLE, each, small), PEER, 1);
  expect([sent.length, deliveries.length]).toEqual([3001, 0]);
  layer.receive(encodeEmpty(MessageType.ACKNOWLEDGEMENT, id), PEER, 2);
  expect([deliveries, layer.nextTimeout()]).toEqual([['acknowledged'], Number.POSITIVE_INFINITY]);
});
