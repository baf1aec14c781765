/** Early repetition of lone small packets: its gain and cost on a lossy path; a clean path has no extra packets. */
import { describe, expect, test } from 'vitest';
import { EventKind } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { Pair, type PairOptions } from './pair.ts';
import { Reader, Writer } from './traffic.ts';

const RTT = 50;
/** A quarter of a round trip, and a tick of the platform's timer. */
const COPY_AFTER = RTT / 4 + 1;

/** Round trips of `count` consecutive messages of 64 bytes, sorted, ms; and packets sent by both ends for each. */
function echoes(options: PairOptions, count: number, intercept?: Pair['intercept']): { times: number[]; packets: number } {
  const pair = new Pair({ granularity: 1, ...options, link: { delay: RTT / 2, ...options.link } });
  if (intercept) pair.intercept = intercept;
  const times: number[] = [];
  let start = 0;
  pair.responder.onEvent = ({ kind, stream }, { connection }) => {
    if (kind === EventKind.MESSAGE) connection.messages.send(connection.messages.read(stream));
  };
  pair.initiator.onEvent = ({ kind, stream }, { connection }) => {
    if (kind !== EventKind.MESSAGE) return;
    connection.messages.read(stream);
    times.push(pair.now - start);
  };
  for (let i = 1; i <= count; i++) {
    start = pair.now;
    pair.initiator.connection.messages.send(new Uint8Array(64));
    expect(pair.run(20_000, () => times.length === i)).toBe(true);
  }
  const sent = pair.ends.reduce((sum, { connection }) => sum + connection.stats().packetsSent, 0);
  pair.free();
  return { times: times.sort((a, b) => a - b), packets: sent / count };
}

describe('an echo of 64 bytes at 50 ms', () => {
  describe.each([0.01, 0.05])('loss %d: p99 is at most a round trip and the delay of two copies', (loss) => {
    const fast = (seed: number): void => {
      const { times, packets } = echoes({ seed, link: { loss } }, 1_000);
      expect(times[times.length / 2]).toBe(RTT);
      expect(times[0.99 * times.length]).toBeLessThanOrEqual(RTT + 2 * COPY_AFTER);
      // Each end repeats a packet at most twice where loss is high; the rest are probes and acknowledgements.
      expect(packets).toBeLessThan(6.3);
    };
    test.each(seeds(1, 2))('seed %i', fast);
    test.each(seeds(3, 20))('seed %i', { tags: ['slow'] }, fast);
  });

  describe('losses in bursts of three: p99 stays below the probe timeout', () => {
    const fast = (seed: number): void => {
      const random = generator(seed);
      let left = 0;
      const bursts = (datagram: Uint8Array): Uint8Array | null => {
        if (left === 0 && random() < 0.017) left = 3;
        return left > 0 && left-- > 0 ? null : datagram;
      };
      const { times } = echoes({ seed }, 1_000, bursts);
      expect(times[0.97 * times.length]).toBeLessThanOrEqual(RTT + 2 * COPY_AFTER);
    };
    test.each(seeds(1, 2))('seed %i', fast);
    test.each(seeds(3, 20))('seed %i', { tags: ['slow'] }, fast);
  });

  test('no loss: no extra packet', () => {
    const { times, packets } = echoes({}, 500);
    expect(times.at(-1)).toBe(RTT);
    expect(packets).toBeLessThan(2.05);
  });
});

test('after a loss, early copies end with some 150 packets that arrive', () => {
  const pair = new Pair({ link: { delay: RTT / 2 } });
  pair.responder.onEvent = ({ kind, stream }, { connection }) => {
    if (kind === EventKind.MESSAGE) connection.messages.read(stream);
  };
  let dropped = 0;
  pair.intercept = (datagram, from) => (from === pair.initiator && ++dropped === 5 ? null : datagram);
  const packetsFor = (messages: number): number => {
    const before = pair.initiator.connection.stats().packetsSent;
    for (let i = 0; i < messages; i++) {
      pair.initiator.connection.messages.send(new Uint8Array(64));
      pair.run(200);
    }
    return pair.initiator.connection.stats().packetsSent - before;
  };
  packetsFor(10);
  expect(packetsFor(20)).toBeGreaterThan(35);
  packetsFor(150);
  expect(packetsFor(20)).toBeLessThan(25);
});

test('the last segment of a transfer is repeated early, too', () => {
  const took = (lossy: boolean): number => {
    const pair = new Pair({ granularity: 1, link: { delay: RTT / 2 } });
    const reader = new Reader(pair.responder);
    pair.responder.onEvent = (event) => reader.on(event);
    const transfer = (bytes: number): number => {
      const start = pair.now;
      const id = pair.initiator.connection.streams.open();
      const writer = new Writer(pair.initiator, id, bytes);
      pair.initiator.onEvent = (event) => writer.on(event);
      expect(pair.run(5_000, () => reader.ended.has(id))).toBe(true);
      return pair.now - start;
    };
    let index = 0;
    if (lossy) pair.intercept = (datagram, from) => (from === pair.initiator && ++index === 4 ? null : datagram);
    transfer(11_000);
    pair.run(1_000);
    // Five packets; the last one is lost.
    index = 0;
    pair.intercept = (datagram, from) => (from === pair.initiator && ++index === 5 ? null : datagram);
    return transfer(5 * 1_150);
  };
  expect(took(true)).toBeLessThanOrEqual(RTT / 2 + COPY_AFTER + 3);
  expect(took(false)).toBeGreaterThan(RTT / 2 + RTT);
});
