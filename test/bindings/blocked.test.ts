/**
 * DATA_BLOCKED and STREAM_DATA_BLOCKED (RFC 9000 §4.1, §19.12, §19.13): a sender without credit sends one for each
 * limit.
 */
import { expect, it } from 'vitest';
import { Core, MESSAGE_LIMIT } from '../../bindings/index.ts';
import { reveal } from './forge.ts';
import { Pair } from './pair.ts';

const STREAM_LIMIT = 5_000;
const DATA_LIMIT = 150_000;

/** The DATA_BLOCKED and STREAM_DATA_BLOCKED frames in a packet of the initiator, as lists of their integers. */
function blockedFrames(packet: Uint8Array): number[][] {
  const frames = reveal(packet, 'initiator') as Uint8Array;
  const found: number[][] = [];
  let at = 0;
  const integer = (): number => {
    const length = 1 << ((frames[at] as number) >> 6);
    let value = (frames[at++] as number) & 63;
    for (let i = 1; i < length; i++) value = value * 256 + (frames[at++] as number);
    return value;
  };
  const integers = (count: number) => Array.from({ length: count }, integer);
  while (at < frames.length) {
    const type = integer();
    if (type === 0x02) integers(2 * (integers(3)[2] as number) + 1);
    else if (type >= 0x08 && type <= 0x0f) at += integers(type & 0x04 ? 3 : 2).at(-1) as number;
    else if (type === 0x14 || type === 0x15) found.push(integers(type - 0x13));
    else if (type > 0x01) integers(type === 0x04 ? 3 : 2);
  }
  return found;
}

/** A pair in which no application reads, the initiator's blocked frames, and the number of such packets to drop. */
function watched() {
  // Its windows stay as announced, whatever no application reads.
  const core = Core.create({ memory: 8 << 20, connectionWindow: 0 });
  const pair = new Pair({ core, parameters: { initialMaxStreamData: STREAM_LIMIT, initialMaxData: DATA_LIMIT } });
  const reported: number[][] = [];
  const state = { drop: 0 };
  pair.intercept = (datagram, from) => {
    const frames = from.isInitiator ? blockedFrames(datagram) : [];
    reported.push(...frames);
    return frames.length > 0 && state.drop-- > 0 ? null : datagram;
  };
  return { pair, reported, state, stream: pair.initiator.connection.streams.open() };
}

it('a stream without credit sends STREAM_DATA_BLOCKED once, and once more at the next limit', () => {
  const { pair, reported, stream } = watched();
  const { connection } = pair.initiator;
  connection.streams.write(stream, new Uint8Array(STREAM_LIMIT));
  pair.run(1_000);
  expect(reported).toEqual([]);
  connection.streams.write(stream, new Uint8Array(10_000));
  pair.run(20_000);
  connection.streams.write(stream, new Uint8Array(10));
  pair.run(20_000);
  expect(reported).toEqual([[stream, STREAM_LIMIT]]);
  pair.responder.connection.streams.raiseWindow(stream, 8_000);
  pair.run(20_000);
  expect(reported.slice(1)).toEqual([[stream, 8_000]]);
  pair.responder.connection.streams.raiseWindow(stream, 40_000);
  pair.run(20_000);
  expect(reported.length).toBe(2);
});

it('STREAM_DATA_BLOCKED is in the packet with the last bytes of the window', () => {
  const { pair, reported, stream } = watched();
  pair.initiator.connection.streams.write(stream, new Uint8Array(STREAM_LIMIT + 1));
  pair.settle();
  expect(pair.initiator.connection.stats().packetsSent).toBe(Math.ceil(STREAM_LIMIT / 1_150));
  expect(reported).toEqual([[stream, STREAM_LIMIT]]);
});

it('a lost STREAM_DATA_BLOCKED is repeated while it holds', () => {
  const { pair, reported, state, stream } = watched();
  state.drop = 1;
  pair.initiator.connection.streams.write(stream, new Uint8Array(10_000));
  pair.run(5_000);
  const copies = reported.length;
  expect(copies).toBeGreaterThan(1);
  expect(new Set(reported.map(String))).toEqual(new Set([`${stream},${STREAM_LIMIT}`]));
  pair.run(20_000);
  expect(reported.length).toBe(copies);
});

it.each(['credit', 'a reset'])('a lost STREAM_DATA_BLOCKED is not repeated after %s', (what) => {
  const { pair, reported, state, stream } = watched();
  state.drop = 1;
  pair.initiator.connection.streams.write(stream, new Uint8Array(10_000));
  pair.run(11);
  if (what === 'credit') pair.responder.connection.streams.raiseWindow(stream, 40_000);
  else pair.initiator.connection.streams.reset(stream, 1);
  pair.run(20_000);
  expect(pair.initiator.connection.stats().packetsLost).toBeGreaterThan(0);
  expect(reported).toEqual([[stream, STREAM_LIMIT]]);
});

it.each([
  [0, 1],
  // A PTO sends two packets (RFC 9002 §6.2.4).
  [1, 3],
])('a connection without credit sends DATA_BLOCKED until a packet with it arrives, %d lost', (lost, sent) => {
  const { pair, reported, state } = watched();
  const { connection } = pair.initiator;
  state.drop = lost;
  const send = () => connection.messages.send(new Uint8Array(MESSAGE_LIMIT));
  send();
  send();
  pair.run(5_000);
  expect(reported).toEqual([]);
  const third = send();
  pair.run(5_000);
  const copies = reported.length;
  expect(copies).toBe(sent);
  expect(new Set(reported.map(String))).toEqual(new Set([`${DATA_LIMIT}`]));
  pair.run(20_000);
  pair.responder.connection.messages.read(2);
  pair.run(20_000);
  expect(reported.length).toBe(copies);
  expect(pair.responder.connection.messages.read(third).length).toBe(MESSAGE_LIMIT);
});
