/** One core serves many peers: memory held by some of them must not lock out the others. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { forge, varint } from './forge.ts';
import { Pair } from './pair.ts';

const MESSAGE = new Uint8Array(300).fill(7);

let core: Core;
beforeEach(() => {
  core = Core.create({ connections: 72, memory: 8 << 20 });
});

/** A hostile peer: its packets are made by hand. @returns a function that sends one to our end */
function hostile(): { pair: Pair; send: (frames: Uint8Array) => boolean } {
  const pair = new Pair({ core, parameters: { initialMaxData: 4 << 20, maxStreams: 1024 } });
  let number = 0;
  return { pair, send: (frames) => pair.responder.connection.receive(forge({ number: number++, frames }), 0, pair.now) };
}

/** STREAM with offset and length. */
function stream(id: number, offset: number, length: number): Uint8Array {
  const head = [0x0e, ...varint(id), ...varint(offset), ...varint(length)];
  const frame = new Uint8Array(head.length + length);
  frame.set(head);
  return frame;
}

/** A request and its answer between two honest ends. */
function exchange(): EventKind[] {
  const pair = new Pair({ core });
  pair.initiator.connection.messages.send(MESSAGE);
  pair.responder.onEvent = ({ kind, stream: id }, end) => {
    if (kind !== EventKind.MESSAGE) return;
    end.connection.messages.read(id);
    end.connection.messages.send(MESSAGE);
  };
  pair.run(5000);
  return pair.initiator.kinds().filter((kind) => kind === EventKind.MESSAGE);
}

describe('a message gets through', () => {
  it('beside messages that are never finished', { tags: ['slow'] }, () => {
    core = Core.create({ connections: 72, memory: 3 << 20 });
    const free = core.stats().freeChunks;
    for (let peer = 0; peer < 6; peer++) {
      const { send } = hostile();
      for (let message = 0; message < 5; message++) for (let kib = 0; kib < 64; kib++) send(stream(4 * message + 2, 1024 * kib, 1000));
    }
    // Received messages have a quarter of the memory; half of that is reserved for connections that hold little.
    expect(free - core.stats().freeChunks).toBeGreaterThan(free / 8);
    expect(exchange()).toEqual([EventKind.MESSAGE]);
  });

  it('beside peers that open all permitted messages and streams with one frame each', () => {
    for (let peer = 0; peer < 12; peer++) {
      const { send } = hostile();
      send(stream(4 * 255 + 2, 0, 1));
      send(stream(4 * 1000, 0, 1));
    }
    expect(exchange()).toEqual([EventKind.MESSAGE]);
  });

  it.each([100, 60_000])('beside peers that read no answers of %i bytes', { tags: ['slow'] }, (length) => {
    for (let peer = 0; peer < 12; peer++) {
      const { connection } = hostile().pair.responder;
      for (let i = 0; i < 64; i++) connection.messages.send(new Uint8Array(length));
    }
    expect(exchange()).toEqual([EventKind.MESSAGE]);
  });
});

it('a byte stream gets through beside peers that fill the memory with streams that nothing reads', { tags: ['slow'] }, () => {
  const free = core.stats().freeChunks;
  for (let peer = 0; peer < 6; peer++) {
    const { send } = hostile();
    for (let each = 0; each < 24; each++) for (let kib = 0; kib < 16; kib++) send(stream(4 * each, 1_000 * kib, 1_000));
  }
  // Received bytes have a quarter of the memory; the last quarter of that is reserved for connections that hold little.
  expect(free - core.stats().freeChunks).toBeGreaterThan((free / 4) * 0.7);
  const pair = new Pair({ core });
  const id = pair.initiator.connection.streams.open();
  pair.initiator.connection.streams.write(id, new Uint8Array(8_000));
  expect(pair.run(5000, () => pair.responder.connection.streams.stats(id)?.unread === 8_000)).toBe(true);
});

it('a byte stream opens beside a peer that has opened all it may', () => {
  hostile().send(stream(4 * 1000, 0, 1));
  const pair = new Pair({ core });
  pair.initiator.connection.streams.write(pair.initiator.connection.streams.open(), MESSAGE);
  pair.run(5000);
  expect(pair.responder.kinds()).toContain(EventKind.STREAM_OPENED);
});
