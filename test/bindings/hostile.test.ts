/**
 * A peer with valid keys that sends well-formed frames with random fields: it can close its connection, and do no other
 * harm.
 */
import { describe, expect, test } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { forge, varint } from './forge.ts';
import { Pair } from './pair.ts';

type Pick = (values: readonly number[]) => number;

/** One frame, mostly plausible. */
function frame(random: () => number, pick: Pick, sent: number): number[] {
  const below = (limit: number) => Math.floor(random() * limit);
  const wild = random() < 0.01;
  const id = wild ? pick([3, 5, 7, 400, 1_210]) : pick([0, 0, 1, 2, 2, 4, 6, 8, 10, 14]);
  const bytes = (length: number) => new Array<number>(length).fill(below(256));
  const length = pick([0, 1, 7, 300, 1_000]);
  const offset = (wild ? 262_143 : pick([0, 0, 1, 300, 1_000, 1_023, 5_000, 20_000])) + below(3);
  switch (below(17)) {
    case 0:
      return [0x02, ...varint(below(sent + (wild ? 3 : 0))), 0, 0, 0];
    case 1:
      return [0x04, ...varint(id), 9, ...varint(wild ? offset : 30_000)];
    case 2:
      return [0x05, ...varint(wild ? id : id & ~2), 9];
    case 3:
      return [0x10, ...varint(below(2 ** 40))];
    case 4:
      return [0x11, ...varint(wild ? id : id & ~2), ...varint(below(2 ** 50))];
    case 5:
      return [0x12 + below(2), ...varint(below(2 ** 34))];
    case 6:
      return [0x31, ...varint(length), ...bytes(length)];
    case 7:
      return [0x01];
    case 8:
      return [0x15, ...varint(wild ? id : id & ~1), ...varint(offset)].slice(0, wild ? 1 : 99);
    case 10:
      return [0x1a + below(2), ...bytes(8)];
    case 11:
      return [0x18, ...varint(below(wild ? 2 ** 40 : 4)), ...varint(below(wild ? 9 : 2)), wild ? below(256) : 8, ...bytes(8), ...bytes(16)];
    case 12:
      return [0x19, ...varint(wild ? below(5) : 1)];
    case 9:
      return [0x0f, ...varint(id), ...varint(29_000), ...varint(1_000), ...bytes(1_000)];
    default:
      return [0x0e, ...varint(id), ...varint(Math.min(offset, 29_000)), ...varint(length), ...bytes(length)];
  }
}

describe('random frames end at most the connection, and leave no memory behind', () => {
  const harmless = (rounds: number) => (seed: number) => {
    const random = generator(seed);
    const pick: Pick = (values) => values[Math.floor(random() * values.length)] as number;
    const core = Core.create({ memory: 6_000_000, streams: 64, connections: 4, ...(seed % 2 ? { streamSegments: 200 } : {}) });
    const clean = core.stats().freeChunks;
    let closed = 0;
    for (let round = 0; round < rounds; round++) {
      const pair = new Pair({ core, seed: round, parameters: { maxMessages: 300 } });
      const { responder } = pair;
      const target = new Uint8Array(5_000);
      responder.onEvent = ({ kind, stream }, { connection }) => {
        if (kind === EventKind.MESSAGE) connection.messages.read(stream);
        if (kind === EventKind.STREAM_READABLE && random() < 0.5) connection.streams.read(stream, target);
        if (kind === EventKind.STREAM_OPENED && random() < 0.5) connection.streams.write(stream, target);
        if (kind === EventKind.STREAM_OPENED && random() < 0.3) connection.streams.finish(stream);
        if (kind === EventKind.STREAM_OPENED && random() < 0.1) connection.streams.stop(stream, 1);
        if (kind === EventKind.STREAM_OPENED && random() < 0.1) connection.streams.reset(stream, 1);
        if (kind === EventKind.DATAGRAM && random() < 0.5) connection.messages.readDatagram();
      };
      for (let i = 0; i < 3; i++) responder.connection.messages.send(target.subarray(0, 1 + Math.floor(random() * 3_000)));
      const own = responder.connection.streams.open();
      responder.connection.streams.write(own, target);
      // The attacker speaks for the honest end: none of its packets arrive, and it receives none.
      pair.intercept = () => null;
      for (let number = 1; number < 150; number++) {
        const frames = Array.from({ length: 1 + Math.floor(random() * 3) }, () =>
          frame(random, pick, responder.connection.stats().packetsSent),
        ).flat();
        pair.inject(forge({ number, frames }), responder);
        pair.run(random() * 40);
        if (responder.kinds().includes(EventKind.CLOSED)) break;
      }
      if (responder.kinds().includes(EventKind.CLOSED)) closed++;
      pair.run(5_000);
      pair.free();
      expect(core.failed).toBe(false);
      expect(core.stats(), `round ${round}`).toMatchObject({
        freeChunks: clean,
        freeSlots: 128,
        connections: 0,
        byteStreams: 0,
        messagesIn: 0,
        messagesOut: 0,
      });
    }
    expect(closed).toBeGreaterThan(5);
  };

  test.each(seeds(1, 4))('in 40 connections (seed %i)', harmless(40));
  test.each(seeds(5, 12))('in 400 connections (seed %i)', { tags: ['slow'] }, harmless(400));
});
