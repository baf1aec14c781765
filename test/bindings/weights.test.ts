/**
 * Scheduling: byte streams share a connection by weight, messages are sent before them, and neither starves the other.
 */
import { describe, expect, it } from 'vitest';
import { EventKind } from '../../bindings/index.ts';
import { Line, Pair } from './pair.ts';
import { Reader } from './traffic.ts';

const MEGABYTE = 1_048_576;
const PIECE = new Uint8Array(65_536);
const parameters = { initialMaxData: 16 * MEGABYTE, initialMaxStreamData: 3 * MEGABYTE };

/** Bytes of each of `weights.length` endless streams that arrive in `time` ms over a line of 20 Mbit/s. */
function shares(weights: readonly (number | undefined)[], time = 3_000): number[] {
  const pair = new Pair({ parameters, memory: 32 * MEGABYTE, line: new Line(20e6, 60_000), link: { delay: 10 } });
  const { initiator, responder } = pair;
  const ids = weights.map((weight) => {
    const id = initiator.connection.streams.open();
    if (weight !== undefined) initiator.connection.streams.setWeight(id, weight);
    return id;
  });
  const fill = (id: number) => {
    while (initiator.connection.streams.write(id, PIECE) === PIECE.length);
  };
  initiator.onEvent = ({ kind, stream }) => {
    if (kind === EventKind.STREAM_WRITABLE) fill(stream);
  };
  const received = new Map<number, number>();
  const target = new Uint8Array(65_536);
  responder.onEvent = ({ kind, stream }, { connection }) => {
    if (kind !== EventKind.STREAM_READABLE) return;
    for (let count = connection.streams.read(stream, target); count > 0; count = connection.streams.read(stream, target))
      received.set(stream, (received.get(stream) ?? 0) + count);
  };
  for (const id of ids) fill(id);
  pair.run(time);
  pair.free();
  return ids.map((id) => received.get(id) ?? 0);
}

describe('byte streams with data all the time', () => {
  it('share equally by default', { tags: ['slow'] }, () => {
    const bytes = shares(new Array(10).fill(undefined));
    expect(Math.min(...bytes)).toBeGreaterThan(0.97 * Math.max(...bytes));
  });

  it.each([[[16, 32, 64]], [[1, 4]], [[256, 64, 64]], [[8, 8, 1]]])(
    'share in proportion to the weights %j',
    { tags: ['slow'] },
    (weights) => {
      const bytes = shares(weights);
      const whole = bytes.reduce((sum, count) => sum + count);
      const total = weights.reduce((sum, weight) => sum + weight);
      for (const [index, weight] of weights.entries()) {
        expect((bytes[index] as number) / whole / (weight / total), `weight ${weight}`).toBeCloseTo(1, 1);
      }
    },
  );

  it('use the whole line when alone, even with a small weight', { tags: ['slow'] }, () => {
    const [alone] = shares([1], 2_000);
    const [usual] = shares([16], 2_000);
    expect(alone).toBe(usual);
  });

  it('use what a stream of higher weight leaves', () => {
    const pair = new Pair({ parameters, line: new Line(20e6, 60_000) });
    const { initiator, responder } = pair;
    const [small, large] = [initiator.connection.streams.open(), initiator.connection.streams.open()];
    initiator.connection.streams.setWeight(small, 1);
    initiator.connection.streams.setWeight(large, 256);
    const reader = new Reader(responder);
    responder.onEvent = (event) => reader.on(event);
    initiator.connection.streams.write(large, new Uint8Array(10_000));
    initiator.connection.streams.write(small, new Uint8Array(60_000));
    pair.run(400);
    expect([reader.lengths.get(large), reader.lengths.get(small)]).toEqual([10_000, 60_000]);
  });
});

describe('messages', () => {
  it('are sent before byte streams, which keep one packet in four', { tags: ['slow'] }, () => {
    const pair = new Pair({ parameters: { ...parameters, maxMessages: 4_000 }, line: new Line(10e6, 60_000) });
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    const message = new Uint8Array(10_000);
    const fill = () => {
      while (initiator.connection.streams.write(id, PIECE) === PIECE.length);
      while (initiator.connection.messages.send(message) >= 0);
    };
    const received = { messages: 0, bytes: 0 };
    const target = new Uint8Array(65_536);
    initiator.onEvent = fill;
    responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) received.messages += connection.messages.read(stream).length;
      if (kind === EventKind.STREAM_READABLE) received.bytes += Math.max(0, connection.streams.read(stream, target));
    };
    fill();
    pair.run(3_000);
    const share = received.bytes / (received.bytes + received.messages);
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.3);
  });
});

it('a weight outside 1 to 256 is refused', () => {
  const pair = new Pair();
  const id = pair.initiator.connection.streams.open();
  for (const weight of [0, 257, 1.5, -1, Number.NaN])
    expect(() => pair.initiator.connection.streams.setWeight(id, weight)).toThrowError(/weight is 1 to 256/);
  // a weight for a stream that no longer exists has no effect
  pair.initiator.connection.streams.setWeight(400, 5);
});
