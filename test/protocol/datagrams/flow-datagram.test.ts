/** Datagrams of flows begin with a number in the form of RFC 9000 §16; invalid ones are refused. */
import { expect, test } from 'vitest';
import { decodeFlowDatagram, encodeFlowDatagram, flowOf } from '../../../protocol/datagrams/index.ts';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

test.each([
  ['9d7f3e7d', 494_878_333],
  ['7bbd', 15_293],
  ['25', 37],
])('decodes the number of RFC 9000 A.1: %s', (bytes, flow) => {
  const payload = Uint8Array.of(1, 2, 3);
  const datagram = Uint8Array.of(...hex(bytes), ...payload);
  expect(encodeFlowDatagram(flow, payload)).toEqual(datagram);
  expect(decodeFlowDatagram(datagram)).toEqual({ flow, payload });
});

test('decodes a number that is longer than necessary (RFC 9000 A.1)', () => {
  expect(decodeFlowDatagram(hex('4025'))).toEqual({ flow: 37, payload: new Uint8Array(0) });
});

test.each([0, 63, 64, 16_383, 16_384, 2 ** 30 - 1, 2 ** 30, 2 ** 32, Number.MAX_SAFE_INTEGER])(
  'the number %d survives a round trip',
  (flow) => {
    const payload = new Uint8Array(1_000).fill(7);
    expect(decodeFlowDatagram(encodeFlowDatagram(flow, payload))).toEqual({ flow, payload });
  },
);

test.each([
  ['', 'nothing'],
  ['40', 'one byte of a two-byte number'],
  ['800000', 'three bytes of a four-byte number'],
  ['c0000000000000', 'seven bytes of an eight-byte number'],
  ['c020000000000000', 'a number that no stream can have'],
  ['ffffffffffffffff', 'the largest number'],
])('refuses %s: %s', (bytes) => {
  expect(decodeFlowDatagram(hex(bytes))).toBeNull();
});

test('the flow number of a stream is its id divided by four (RFC 9297 §2.1)', () => {
  expect([0, 4, 400].map(flowOf)).toEqual([0, 1, 100]);
});
