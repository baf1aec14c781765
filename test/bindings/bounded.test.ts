/** Memory that a peer with keys can take: no more than the windows it was given, however it uses them. */
import { describe, expect, test } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { forge, varint } from './forge.ts';
import { type PARAMETERS, Pair } from './pair.ts';

const CHUNK = 1024;
const STREAM = { offset: 0x04, length: 0x02 } as const;

/** One STREAM frame. */
function stream(id: number, offset: number, length: number): number[] {
  return [0x08 | STREAM.offset | STREAM.length, ...varint(id), ...varint(offset), ...varint(length), ...new Array<number>(length).fill(7)];
}

/** A responder that hears only what is forged. */
function responder(parameters: Partial<typeof PARAMETERS>) {
  const core = Core.create({ memory: 16 << 20, connections: 2, streams: 512 });
  const pair = new Pair({ core, parameters });
  pair.intercept = () => null;
  const free = core.stats().freeChunks;
  let number = 0;
  return {
    core,
    pair,
    send: (frames: number[]) => {
      const taken = pair.inject(forge({ number: ++number, frames }), pair.responder);
      pair.run(1);
      return taken;
    },
    chunksTaken: () => free - core.stats().freeChunks,
    closed: () => pair.responder.kinds().includes(EventKind.CLOSED),
  };
}

describe('a peer', () => {
  test('that sends one byte at every second offset is held to its window', () => {
    const window = 64 * CHUNK;
    const { send, chunksTaken, closed, pair, core } = responder({ initialMaxStreamData: window });
    for (let offset = 1; offset < window; offset += 2 * 20) {
      send(Array.from({ length: 20 }, (_, i) => (offset + 2 * i < window ? stream(0, offset + 2 * i, 1) : [])).flat());
      // the bytes, the holes, and what remembers the packets
      expect(chunksTaken()).toBeLessThanOrEqual(window / CHUNK + 8);
    }
    expect(closed()).toBe(false);
    // what was refused comes again: with the holes filled everything is there
    for (let offset = 0; offset < window; offset += 1000) send(stream(0, offset, Math.min(1000, window - offset)));
    expect(pair.responder.connection.readStream(0, new Uint8Array(2 * window))).toBe(window);
    // its new window is announced, and goes on from there
    pair.run(100);
    send(stream(0, window, 1));
    expect([closed(), core.failed]).toEqual([false, false]);
  });

  test('that opens streams and fills them is held to the window of the connection, though nobody reads', () => {
    const initialMaxData = 256 * CHUNK;
    const { send, chunksTaken, closed } = responder({ initialMaxData, initialMaxStreamData: 32 * CHUNK, maxStreams: 100 });
    let sent = 0;
    for (let id = 0; id < 400 && sent + 1000 <= initialMaxData; id += 4) {
      for (let offset = 0; offset < 20_000 && sent + 1000 <= initialMaxData; offset += 1000) {
        send(stream(id, offset, 1000));
        sent += 1000;
      }
    }
    expect(closed()).toBe(false);
    expect(chunksTaken()).toBeLessThanOrEqual(1.2 * (initialMaxData / CHUNK) + 8);
    send(stream(400 - 4, 0, 1000));
    expect(closed()).toBe(true);
  });
});
