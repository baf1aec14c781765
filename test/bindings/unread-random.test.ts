/**
 * Two ends open, fill, read, finish, reset and stop streams in any order, over links that lose packets: afterwards
 * memory and credit are as before, and both directions carry as at first.
 */
import { describe, expect, test } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { seeds } from '../support/tiered.ts';
import { type End, Pair } from './pair.ts';

const KB = 1 << 10;
const MB = 1 << 20;
const PIECE = new Uint8Array(64 * KB);
/** Bytes that a stream carries at the end. */
const PROOF = 400_000;

function randomOf(seed: number): (below: number) => number {
  let state = seed * 7_919;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** One thing that an application may do with a stream. */
function act({ connection }: End, id: number, random: (below: number) => number): void {
  const size = 1 + random(PIECE.length);
  const acts = [
    () => connection.streams.write(id, PIECE, 0, size),
    () => connection.streams.write(id, PIECE, 0, size),
    () => connection.streams.read(id, PIECE.subarray(0, size)),
    () => connection.streams.read(id, PIECE.subarray(0, size)),
    () => connection.streams.finish(id),
    () => connection.streams.reset(id, 7),
    () => connection.streams.stop(id, 9),
    () => connection.streams.raiseWindow(id, 8 * size),
  ];
  acts[random(acts.length)]!();
}

/** Whether a new stream of that end carries {@link PROOF} to the other end within 5 s. */
function carries(pair: Pair, from: End): boolean {
  const id = from.connection.streams.open();
  let [left, received] = [PROOF, 0];
  const write = () => {
    for (let taken = 1; taken > 0 && left > 0; left -= taken)
      taken = from.connection.streams.write(id, PIECE, 0, Math.min(left, PIECE.length));
  };
  from.onEvent = ({ kind, stream }) => {
    if (kind === EventKind.STREAM_WRITABLE && stream === id) write();
  };
  from.peer.onEvent = ({ kind, stream }) => {
    if (stream !== id || kind !== EventKind.STREAM_READABLE) return;
    for (let count = 1; count > 0; received += Math.max(0, count)) count = from.peer.connection.streams.read(id, PIECE);
  };
  write();
  return pair.run(5_000, () => received === PROOF);
}

function returns(seed: number): void {
  const random = randomOf(seed);
  const core = Core.create({ connections: 3, memory: [2, 4, 8, 32][random(4)]! * MB, streams: 600 });
  const unused = core.stats().freeChunks;
  const parameters = { initialMaxData: [128 * KB, MB][random(2)]!, initialMaxStreamData: 16 * KB, maxStreams: 300 };
  const link = { delay: [0, 10, 50][random(3)]!, jitter: 20 * random(2), loss: 0.03 * random(3), duplicate: 0.01 };
  const pair = new Pair({ core, seed, parameters, link });
  pair.run(100);
  const before = core.stats().freeChunks;
  const open = new Map(pair.ends.map((end) => [end, new Set<number>()]));
  const cramped = new Map<End, number>();
  for (const end of pair.ends)
    end.onEvent = ({ kind, stream, value }) => {
      if (kind === EventKind.STREAM_OPENED) open.get(end)!.add(stream);
      if (kind === EventKind.CRAMPED) cramped.set(end, value);
    };
  for (let step = 0; step < 600; step++) {
    const end = pair.ends[random(4) === 0 ? 1 : 0]!;
    const ids = open.get(end)!;
    const id = random(4) === 0 ? end.connection.streams.open() : [...ids][random(Math.max(1, ids.size))];
    if (id === undefined || id < 0) continue;
    ids.add(id);
    act(end, id, random);
    pair.settle();
    if (random(3) === 0) pair.run(random(60));
  }
  pair.link.loss = 0;
  for (let round = 0; round < 40; round++) {
    for (const [{ connection }, ids] of open)
      for (const id of ids) {
        if (connection.streams.stats(id) === null) ids.delete(id);
        else {
          while (connection.streams.read(id, PIECE) > 0);
          if (id % 3 === 0) connection.streams.reset(id, 3);
          else connection.streams.finish(id);
          if (round > 20) connection.streams.stop(id, 3);
        }
      }
    pair.run(200);
  }
  pair.run(40_000);
  for (const { connection } of pair.ends)
    expect(connection.stats()).toMatchObject({ streams: 0, streamBytesUnread: 0, streamBytesBuffered: 0 });
  expect([...cramped.values()].every((isCramped) => isCramped === 0)).toBe(true);
  expect(core.stats().freeChunks).toBeGreaterThanOrEqual(before);
  for (const end of pair.ends) expect(carries(pair, end)).toBe(true);
  pair.free();
  expect([core.stats().freeChunks, core.failed]).toEqual([unused, false]);
}

describe('memory and credit of streams return', () => {
  test.each(seeds(1, 3))('whatever the two ends did with them (seed %i)', returns);

  test.each(seeds(4, 40))('whatever the two ends did with them (seed %i)', { tags: ['slow'] }, returns);
});
