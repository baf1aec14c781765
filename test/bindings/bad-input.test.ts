/**
 * Protocol violations by a peer with valid keys, each with its close code (RFC 9000 §20.1), and input that has no
 * effect.
 */
import { describe, expect, test } from 'vitest';
import { EventKind, TransportError } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { forge, varint } from './forge.ts';
import { Pair, type PairOptions } from './pair.ts';
import { content, Writer } from './traffic.ts';

const { FLOW_CONTROL_ERROR, STREAM_LIMIT_ERROR, STREAM_STATE_ERROR, FINAL_SIZE_ERROR, FRAME_ENCODING_ERROR, PROTOCOL_VIOLATION } =
  TransportError;

type Case = readonly [string, readonly number[], TransportError];

// Stream ids: 0, 4, … the peer's byte streams; 1, 5, … our byte streams; 2, 6, … the peer's messages; 3, 7, … our
// messages.
const MAX_ID = 2 ** 62 - 1024;
const bytes = (length: number) => new Array<number>(length).fill(65);
/** STREAM with offset and length. */
const data = (id: number, offset: number, length: number, fin = false) => [
  fin ? 0x0f : 0x0e,
  ...varint(id),
  ...varint(offset),
  ...varint(length),
  ...bytes(length),
];
const reset = (id: number, size: number) => [0x04, ...varint(id), 0, ...varint(size)];
const stop = (id: number) => [0x05, ...varint(id), 0];
const maxStreamData = (id: number, limit = 1_000) => [0x11, ...varint(id), ...varint(limit)];
const streamBlocked = (id: number) => [0x15, ...varint(id), 0];

const cases: Record<string, readonly Case[]> = {
  'frames that do not decode': [
    ['an unknown frame', varint(0x3f), FRAME_ENCODING_ERROR],
    ['CRYPTO, a QUIC frame that is not used here', [0x06, 0, 0], FRAME_ENCODING_ERROR],
    ['NEW_TOKEN', [0x07, 1, 1], FRAME_ENCODING_ERROR],
    ['HANDSHAKE_DONE', [0x1e], FRAME_ENCODING_ERROR],
    ['a packet without frames', [], PROTOCOL_VIOLATION],
    ['a truncated frame', [0x10], FRAME_ENCODING_ERROR],
    ['a truncated integer', [0x10, 0x80, 0], FRAME_ENCODING_ERROR],
    ['STREAM longer than the packet', [0x0a, 0, 40, 65], FRAME_ENCODING_ERROR],
    ['CONNECTION_CLOSE with a reason longer than the packet', [0x1d, 0, 40, 65], FRAME_ENCODING_ERROR],
    ['MAX_STREAMS beyond 2^60', [0x12, ...varint(2 ** 61)], FRAME_ENCODING_ERROR],
    ['MAX_STREAMS for messages beyond 2^60', [0x13, ...varint(2 ** 61)], FRAME_ENCODING_ERROR],
    ['STREAMS_BLOCKED beyond 2^60', [0x16, ...varint(2 ** 61)], FRAME_ENCODING_ERROR],
    ['STREAMS_BLOCKED for messages beyond 2^60', [0x17, ...varint(2 ** 61)], FRAME_ENCODING_ERROR],
  ],
  acknowledgements: [
    ['an ACK of a number that was never sent', [0x02, ...varint(90), 0, 0, 0], PROTOCOL_VIOLATION],
    ['an ACK of the next number', [0x02, 0, 0, 0, 0], PROTOCOL_VIOLATION],
    ['an ACK of the largest possible number', [0x02, ...varint(2 ** 62 - 1024), 0, 0, 0], PROTOCOL_VIOLATION],
    ['an ACK whose first range reaches below zero', [0x02, ...varint(3), 0, 0, 5], FRAME_ENCODING_ERROR],
    ['an ACK whose gap reaches below zero', [0x02, ...varint(3), 0, 1, 0, 3, 0], FRAME_ENCODING_ERROR],
    ['an ACK with fewer ranges than it says', [0x02, 3, 0, 9, 0], FRAME_ENCODING_ERROR],
  ],
  'frames above a stream limit': [
    ['a stream above the limit', [0x08, ...varint(4 * 100)], STREAM_LIMIT_ERROR],
    ['the largest stream id', [0x08, ...varint(MAX_ID)], STREAM_LIMIT_ERROR],
    ['a message above the limit', [0x08, ...varint(4 * 256 + 2)], STREAM_LIMIT_ERROR],
    ['RESET_STREAM above the limit', reset(4 * 100, 0), STREAM_LIMIT_ERROR],
    ['STOP_SENDING above the limit', stop(4 * 100), STREAM_LIMIT_ERROR],
    ['MAX_STREAM_DATA above the limit', maxStreamData(4 * 100), STREAM_LIMIT_ERROR],
    ['STREAM_DATA_BLOCKED above the limit', streamBlocked(4 * 100), STREAM_LIMIT_ERROR],
  ],
  'frames for a stream of the wrong initiator or direction': [
    ['data on a stream we never opened', [0x08, 1, 65], STREAM_STATE_ERROR],
    ['data on one of our messages', [0x08, 3, 65], STREAM_STATE_ERROR],
    ['RESET_STREAM for a stream we never opened', reset(5, 0), STREAM_STATE_ERROR],
    ['RESET_STREAM for one of our messages', reset(3, 0), STREAM_STATE_ERROR],
    ['STOP_SENDING for a stream we never opened', stop(1), STREAM_STATE_ERROR],
    ['STOP_SENDING for a message we never sent', stop(3), STREAM_STATE_ERROR],
    ['STOP_SENDING for its own message', stop(2), STREAM_STATE_ERROR],
    ['MAX_STREAM_DATA for a stream we never opened', maxStreamData(1), STREAM_STATE_ERROR],
    ['MAX_STREAM_DATA for its own message', maxStreamData(6), STREAM_STATE_ERROR],
    ['STREAM_DATA_BLOCKED for one of our messages', streamBlocked(7), STREAM_STATE_ERROR],
  ],
  'flow control': [
    ['one byte more than the stream window', data(0, 262_144, 1), FLOW_CONTROL_ERROR],
    ['a message longer than R', data(2, 66_560, 1), FLOW_CONTROL_ERROR],
    ['an offset beyond 2^62', data(0, 2 ** 62 - 1024, 1_100), FLOW_CONTROL_ERROR],
    ['a reset beyond the window', reset(0, 300_000), FLOW_CONTROL_ERROR],
    ['a final size beyond the window', data(0, 262_144, 1, true), FLOW_CONTROL_ERROR],
  ],
  'final sizes': [
    ['a larger one', [...data(0, 0, 1, true), ...data(0, 0, 2, true)], FINAL_SIZE_ERROR],
    ['a smaller one', [...data(0, 0, 3, true), ...data(0, 0, 2, true)], FINAL_SIZE_ERROR],
    ['data beyond it', [...data(0, 0, 1, true), ...data(0, 0, 2)], FINAL_SIZE_ERROR],
    ['a final size below the data received', [...data(0, 0, 5), ...data(0, 0, 3, true)], FINAL_SIZE_ERROR],
    ['a final size below data received behind a gap', [...data(0, 500, 5), ...data(0, 0, 3, true)], FINAL_SIZE_ERROR],
    ['a reset below the data received', [...data(0, 0, 2), ...reset(0, 1)], FINAL_SIZE_ERROR],
    ['a reset with another final size', [...data(0, 0, 2, true), ...reset(0, 3)], FINAL_SIZE_ERROR],
    ['a second reset with another size', [...reset(0, 5), ...reset(0, 6)], FINAL_SIZE_ERROR],
    ['an end that differs from the reset', [...reset(0, 5), ...data(0, 0, 4, true)], FINAL_SIZE_ERROR],
    ['data beyond a reset', [...reset(0, 5), ...data(0, 5, 1)], FINAL_SIZE_ERROR],
    ['a changed one of a message', [...data(2, 0, 1), ...data(2, 10, 3, true), ...data(2, 0, 2, true)], FINAL_SIZE_ERROR],
  ],
  datagrams: [['larger than announced', [0x30, ...bytes(1_210)], PROTOCOL_VIOLATION]],
};

/** Both ends emit CLOSED with `code`: the one that detects the violation and its peer. */
function closes(frames: readonly number[], code: TransportError, options: PairOptions = {}): void {
  const pair = new Pair({ initiator: { packetSize: 1_400 }, ...options });
  expect(pair.inject(forge({ number: 7, frames: [...frames] }), pair.responder)).toBe(true);
  pair.run(5_000);
  for (const end of pair.ends) {
    expect(end.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: code });
    expect(end.kinds().at(-1)).toBe(EventKind.DRAINED);
  }
  pair.free();
  expect(pair.core.stats()).toMatchObject({ connections: 0, byteStreams: 0, messagesIn: 0, messagesOut: 0 });
}

describe.each(Object.entries(cases))('%s close the connection:', (_group, rows) => {
  test.each(rows)('%s', (_name, frames, code) => closes(frames, code));
});

describe('these close the connection, too:', () => {
  test('a byte stream to an end that accepts none', () => closes(data(0, 0, 1), STREAM_LIMIT_ERROR, { parameters: { maxStreams: 0 } }));

  test('a datagram to an end that accepts none', () => closes([0x31, 1, 65], PROTOCOL_VIOLATION, { parameters: { maxDatagram: 0 } }));

  test('resets beyond the connection window', () =>
    closes([...reset(0, 60_000), ...reset(4, 60_000), ...reset(8, 60_000)], FLOW_CONTROL_ERROR, {
      parameters: { initialMaxData: 133_120 },
    }));

  test('a changed final size of a stream that we have stopped', () => {
    const pair = new Pair();
    pair.intercept = () => null;
    pair.inject(forge({ number: 1, frames: data(0, 0, 5) }), pair.responder);
    pair.responder.connection.streams.stop(0, 1);
    pair.inject(forge({ number: 2, frames: [...data(0, 0, 9, true), ...data(0, 0, 10)] }), pair.responder);
    pair.run(3_000);
    expect(pair.responder.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: FINAL_SIZE_ERROR });
  });

  test('more than the connection window over many streams', () => {
    const pair = new Pair({ parameters: { initialMaxData: 133_120 } });
    const big = (id: number) => [0x0c, ...varint(id), ...varint(60_000), 65];
    pair.inject(forge({ number: 1, frames: big(0) }), pair.responder);
    pair.inject(forge({ number: 2, frames: big(4) }), pair.responder);
    expect(pair.responder.connection.nextEvent()).toBe(EventKind.STREAM_OPENED);
    pair.inject(forge({ number: 3, frames: big(8) }), pair.responder);
    pair.run(3_000);
    expect(pair.responder.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: TransportError.FLOW_CONTROL_ERROR });
  });

  test('an acknowledgement of a skipped packet number', () => {
    const pair = new Pair({ seed: 2, parameters: { initialMaxData: 8_000_000, initialMaxStreamData: 3_500_000 } });
    const { initiator } = pair;
    initiator.record = true;
    const id = initiator.connection.streams.open();
    const writer = new Writer(initiator, id, 3_000_000);
    initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = () => {};
    // Acknowledge everything blindly, like an attacker that wants a higher rate (optimistic ACK).
    pair.intercept = (datagram, from) => (from === initiator ? datagram : null);
    let closed = false;
    for (let number = 100; number < 2_000 && !closed; number++) {
      pair.run(12);
      const largest = initiator.sent.length - 1;
      pair.inject(forge({ number, frames: [0x02, ...varint(largest), 0, 0, ...varint(largest)], from: 'responder' }), initiator);
      closed = initiator.kinds().includes(EventKind.CLOSED);
    }
    pair.run(3_000);
    expect(initiator.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: TransportError.PROTOCOL_VIOLATION });
  });
});

describe('these have no effect:', () => {
  /** What the responder reads from stream 0 after these packets; the stream is still open. */
  const read = (...packets: number[][]): string => {
    const pair = new Pair();
    pair.intercept = () => null;
    for (const [index, frames] of packets.entries()) pair.inject(forge({ number: index + 1, frames }), pair.responder);
    pair.run(100);
    const target = new Uint8Array(100);
    const count = pair.responder.connection.streams.read(0, target);
    expect(pair.responder.kinds()).not.toContain(EventKind.CLOSED);
    pair.free();
    return new TextDecoder().decode(target.subarray(0, count));
  };
  const text = (offset: number, string: string) => [0x0e, 0, ...varint(offset), string.length, ...new TextEncoder().encode(string)];

  test('other bytes at an offset received before: the first ones stay (RFC 9000 §2.2)', () => {
    expect(read(text(0, 'abcd'), text(0, 'WXYZ'))).toBe('abcd');
    expect(read(text(0, 'abcd'), text(2, 'YZef'))).toBe('abcdef');
  });

  test('overlaps of any kind, also beyond a gap: each offset is delivered once', () => {
    expect(read(text(4, 'efgh'), text(2, 'cdef'), text(6, 'ghij'), text(0, 'ab'), text(1, 'bcdefghij'))).toBe('abcdefghij');
  });

  test('frames about a message that was read', () => {
    const pair = new Pair();
    const { responder } = pair;
    pair.intercept = () => null;
    pair.inject(forge({ number: 1, frames: data(2, 0, 1, true) }), responder);
    expect(responder.connection.messages.read(2)).toHaveLength(1);
    pair.run(100);
    expect(pair.core.stats().messagesIn).toBe(0);
    pair.inject(forge({ number: 2, frames: [...data(2, 0, 9, true), ...reset(2, 99), ...streamBlocked(2)] }), responder);
    pair.run(100);
    expect([responder.kinds().includes(EventKind.CLOSED), pair.core.stats().messagesIn]).toEqual([false, 0]);
  });

  test('lower credit than before', () => {
    const pair = new Pair();
    const { responder } = pair;
    pair.intercept = () => null;
    pair.inject(forge({ number: 1, frames: [...data(0, 0, 1), ...maxStreamData(0, 300_000), 0x10, ...varint(2_000_000)] }), responder);
    pair.inject(forge({ number: 2, frames: [...maxStreamData(0, 5), 0x10, 5, 0x12, 5, 0x13, 5] }), responder);
    expect(responder.connection.streams.stats(0)).toMatchObject({ sendCredit: 300_000 });
    expect(responder.connection.stats()).toMatchObject({ sendCredit: 2_000_000 });
  });
});

test('packets without the keys get no answer and change nothing', { tags: ['slow'] }, () => {
  const pair = new Pair();
  const { responder } = pair;
  const random = generator(8);
  pair.run(100);
  const before = responder.connection.stats();
  responder.record = true;
  for (let i = 0; i < 2_000; i++) {
    const packet = forge({ number: i, frames: data(0, 0, 20), key: new Uint8Array(32).fill(99), phase: random() < 0.5 });
    if (random() < 0.3) packet.set(content(i, 0, 8), 1);
    pair.inject(random() < 0.2 ? packet.subarray(0, Math.floor(random() * packet.length)) : packet, responder);
    if (i % 100 === 0) pair.run(50);
  }
  pair.run(5_000);
  expect(responder.sent).toEqual([]);
  const after = responder.connection.stats();
  expect(after).toEqual({ ...before, packetsDropped: 2_000, authenticationFailures: after.authenticationFailures });
});
