/** Memory that a peer with valid keys can take: never more than the windows it was given, however it uses them. */
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

/** A responder that receives only forged packets. */
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
  test('that sends one byte at every second offset is held to its window', { tags: ['slow'] }, () => {
    const window = 64 * CHUNK;
    const { send, chunksTaken, closed, pair, core } = responder({ initialMaxStreamData: window });
    for (let offset = 1; offset < window; offset += 2 * 20) {
      send(Array.from({ length: 20 }, (_, i) => (offset + 2 * i < window ? stream(0, offset + 2 * i, 1) : [])).flat());
      // the bytes, the holes, and the records of packets
      expect(chunksTaken()).toBeLessThanOrEqual(window / CHUNK + 8);
    }
    expect(closed()).toBe(false);
    // refused data arrives again: once the holes are filled, all of it is there
    for (let offset = 0; offset < window; offset += 1000) send(stream(0, offset, Math.min(1000, window - offset)));
    expect(pair.responder.connection.streams.read(0, new Uint8Array(2 * window))).toBe(window);
    // its new window is announced and continues from there
    pair.run(100);
    send(stream(0, window, 1));
    expect([closed(), core.failed]).toEqual([false, false]);
  });

  test('that leaves thousands of gaps in a large window is held to it', () => {
    const window = 2_048 * CHUNK;
    const { send, chunksTaken, closed } = responder({ initialMaxStreamData: window, initialMaxData: 2 * window });
    for (let offset = window - 1; offset > 0; offset -= 20 * 512) {
      send(Array.from({ length: 20 }, (_, i) => (offset > i * 512 ? stream(0, offset - i * 512, 1) : [])).flat());
    }
    expect(closed()).toBe(false);
    // the bytes, their index, and the gaps, one for each KiB
    expect(chunksTaken()).toBeGreaterThan(window / CHUNK / 2);
    expect(chunksTaken()).toBeLessThanOrEqual((1 + 1 / 48) * (window / CHUNK) + 16);
  });

  test('that opens streams and fills them is held to the memory for unread bytes while the application reads nothing', {
    tags: ['slow'],
  }, () => {
    const { send, chunksTaken, closed } = responder({ initialMaxData: 256 * CHUNK, initialMaxStreamData: 32 * CHUNK, maxStreams: 1_000 });
    let taken = 0;
    for (let id = 0; id < 4 * 300 && !closed(); id += 4) {
      for (let offset = 0; offset < 16_000; offset += 1_000) taken += send(stream(id, offset, 1_000)) ? 1_000 : 0;
    }
    // more than the window that was announced first; a quarter of the memory is for received bytes
    expect(taken).toBeGreaterThan(2 * 1024 * CHUNK);
    expect(chunksTaken()).toBeLessThanOrEqual(4 * 1024);
  });

  test('that sends one byte at every second offset of many streams takes bounded memory, and other peers continue', {
    tags: ['slow'],
  }, () => {
    const core = Core.create({ memory: 32 << 20, connections: 16 });
    const free = core.stats().freeChunks;
    const peers = Array.from({ length: 4 }, () => new Pair({ core, parameters: { initialMaxData: 1 << 20, maxStreams: 2_000 } }));
    for (const pair of peers) {
      pair.intercept = () => null;
      let number = 0;
      for (let id = 0; id < 4 * 1_000; id += 4) {
        const frames = Array.from({ length: 100 }, (_, i) => stream(id, 1 + 2 * i, 1)).flat();
        pair.inject(forge({ number: ++number, frames }), pair.responder);
      }
      pair.run(50);
      expect(pair.responder.kinds()).not.toContain(EventKind.CLOSED);
    }
    // a chunk each of bytes, index and gaps, for as many streams as three quarters of a quarter of the memory allow
    const taken = free - core.stats().freeChunks;
    expect(taken).toBeLessThan(0.6 * free);
    expect(taken).toBeGreaterThan(0.3 * free);
    const honest = new Pair({ core });
    const id = honest.initiator.connection.streams.open();
    honest.initiator.connection.streams.write(id, new Uint8Array(50_000));
    expect(honest.run(5_000, () => honest.responder.connection.streams.stats(id)?.unread === 50_000)).toBe(true);
    honest.initiator.connection.messages.send(new Uint8Array(5_000));
    expect(honest.run(5_000, () => honest.responder.kinds().includes(EventKind.MESSAGE))).toBe(true);
    honest.free();
    for (const pair of peers) pair.free();
    expect(core.stats().freeChunks).toBe(free);
  });

  const floods: Record<string, (i: number) => number[]> = {
    MAX_DATA: (i) => [0x10, ...varint(2 ** 30 + i)],
    MAX_STREAM_DATA: (i) => [0x11, ...varint(4 * (i % 90)), ...varint(2 ** 30 + i)],
    MAX_STREAMS: (i) => [0x12 + (i % 2), ...varint(100 + i)],
    DATA_BLOCKED: (i) => [0x14, ...varint(i)],
    STREAM_DATA_BLOCKED: (i) => [0x15, ...varint(4 * (i % 90)), ...varint(i)],
    STREAMS_BLOCKED: (i) => [0x16 + (i % 2), ...varint(i)],
    RESET_STREAM: (i) => [0x04, ...varint(4 * (i % 90)), 0, 0],
    STOP_SENDING: (i) => [0x05, ...varint(4 * (i % 90)), 0],
    PING: () => [0x01],
    'empty STREAM frames': (i) => stream(4 * (i % 90), 0, 0),
    'one byte again and again': (i) => stream(4 * (i % 90), 0, 1),
    'bytes one by one': (i) => stream(4 * (i % 90), Math.floor(i / 90), 1),
  };
  const cases = Object.entries(floods).flatMap(([name, frame]) => [1, 40].map((each) => ({ name, frame, each })));
  test.each(cases)(
    'that floods us with $name, $each in a packet, takes little memory and receives fewer bytes than it sends',
    ({ frame, each }) => {
      const { core, pair, send, chunksTaken, closed } = responder({});
      const { connection } = pair.responder;
      pair.responder.onEvent = ({ kind, stream: id }) => {
        // as an endpoint does with streams that it refuses
        if (kind !== EventKind.STREAM_OPENED) return;
        connection.streams.reset(id, 1);
        connection.streams.stop(id, 1);
      };
      for (let i = 0; i < 400; i++) send(Array.from({ length: each }, (_, j) => frame(i * each + j)).flat());
      pair.run(100);
      expect([closed(), core.failed]).toEqual([false, false]);
      expect(chunksTaken()).toBeLessThan(100);
      const { bytesSent, bytesReceived, packetsSent, packetsReceived } = connection.stats();
      expect(packetsSent).toBeLessThanOrEqual(packetsReceived);
      expect(bytesSent).toBeLessThanOrEqual(1.5 * bytesReceived);
    },
  );
});
