/** Packet protection, and what an authenticated peer may not do. */
import { describe, expect, test } from 'vitest';
import { Core, EventKind, TransportError } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { size } from '../support/size.ts';
import { forge, varint } from './forge.ts';
import { Pair } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const PING = [0x01];

describe('packet protection', () => {
  test('a packet made with another implementation of cipher, mask and header is accepted once', () => {
    const pair = new Pair();
    const packet = forge({ number: 5, frames: PING });
    expect(pair.inject(packet, pair.responder)).toBe(true);
    expect(pair.inject(packet, pair.responder)).toBe(false);
    expect(pair.responder.connection.stats()).toMatchObject({ packetsReceived: 1, packetsDropped: 1 });
    pair.free();
  });

  test('every changed bit makes a packet nobody’s', () => {
    const pair = new Pair();
    const packet = forge({ number: 1, frames: [...PING, 0, 0, 0] });
    for (let bit = 0; bit < packet.length * 8; bit++) {
      const changed = packet.slice();
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(pair.inject(changed, pair.responder), `bit ${bit}`).toBe(false);
    }
    expect(pair.inject(packet.subarray(0, packet.length - 1), pair.responder)).toBe(false);
    expect(pair.inject(packet, pair.responder)).toBe(true);
    pair.free();
  });

  test('replayed and tampered packets have no effect on a transfer', () => {
    const random = generator(4);
    const pair = new Pair({ seed: 4 });
    const seen: Uint8Array[] = [];
    let accepted = 0;
    pair.intercept = (datagram, from) => {
      seen.push(datagram);
      const old = (seen[Math.floor(random() * seen.length)] as Uint8Array).slice();
      const at = Math.floor(random() * old.length);
      old[at] = (old[at] as number) ^ 0x40;
      if (pair.inject(old, from.peer)) accepted++;
      return datagram;
    };
    const id = pair.initiator.connection.openStream();
    const writer = new Writer(pair.initiator, id, 200_000);
    const reader = new Reader(pair.responder);
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => reader.on(event);
    expect(pair.run(60_000, () => reader.ended.has(id))).toBe(true);
    expect(reader.wrong).toBe(0);
    expect(accepted).toBe(0);
    pair.intercept = (datagram) => datagram;
    pair.run(2_000);
    // Whole packets again: each of them is known already.
    const before = pair.responder.connection.stats().packetsReceived;
    for (const datagram of seen) {
      expect(pair.inject(datagram, pair.responder)).toBe(false);
      expect(pair.inject(datagram, pair.initiator)).toBe(false);
    }
    expect(pair.responder.connection.stats().packetsReceived).toBe(before);
    pair.free();
  });

  test('random and mutated datagrams are dropped and counted', () => {
    const total = size(4_000, 100_000);
    const random = generator(8);
    const pair = new Pair();
    const packet = forge({ number: 3, frames: content(1, 0, 300) });
    const before = pair.core.stats();
    for (let i = 0; i < total; i++) {
      const bytes = Uint8Array.from({ length: Math.floor(random() * 200) }, () => random() * 256);
      expect(pair.inject(bytes, pair.responder)).toBe(false);
      const mutated = packet.slice(0, Math.floor(random() * 4) === 0 ? Math.floor(random() * packet.length) : packet.length);
      if (mutated.length > 0) {
        const at = Math.floor(random() * mutated.length);
        mutated[at] = (mutated[at] as number) ^ (1 + Math.floor(random() * 255));
      }
      expect(pair.inject(mutated, pair.responder)).toBe(false);
    }
    expect(pair.responder.connection.stats().packetsDropped).toBe(total * 2);
    expect(pair.core.stats()).toEqual(before);
    pair.free();
  });

  test('authentic garbage closes the connection with a transport error, and does no more', () => {
    const random = generator(12);
    for (let i = 0; i < size(1_500, 50_000); i++) {
      const pair = new Pair({ core: SHARED });
      const frames = Uint8Array.from({ length: 1 + Math.floor(random() * 60) }, () => random() * 256);
      frames[0] = Math.floor(random() * 0x34);
      pair.inject(forge({ number: 1 + i, frames }), pair.responder);
      pair.responder.connection.transmit(pair.now);
      pair.run(3_000);
      expect(SHARED.failed).toBe(false);
      pair.free();
    }
    expect(SHARED.stats()).toMatchObject({ connections: 0, byteStreams: 0, messagesIn: 0, messagesOut: 0 });
  });
});

const SHARED = Core.create();

describe('violations by an authenticated peer', () => {
  const cases: [string, number[], number][] = [
    ['an unknown frame', varint(0x3f), TransportError.FRAME_ENCODING_ERROR],
    ['no frame at all', [], TransportError.PROTOCOL_VIOLATION],
    ['a truncated frame', [0x10], TransportError.FRAME_ENCODING_ERROR],
    ['an ACK of a number never sent', [0x02, ...varint(90), 0, 0, 0], TransportError.PROTOCOL_VIOLATION],
    ['an ACK with an impossible range', [0x02, ...varint(3), 0, 0, 5], TransportError.FRAME_ENCODING_ERROR],
    ['a stream above the limit', [0x08, ...varint(4 * 100)], TransportError.STREAM_LIMIT_ERROR],
    ['a message above the limit', [0x08, ...varint(4 * 256 + 2)], TransportError.STREAM_LIMIT_ERROR],
    ['data on a stream we never opened', [0x08, 1, 65], TransportError.STREAM_STATE_ERROR],
    ['data on a message of ours', [0x08, 3, 65], TransportError.STREAM_STATE_ERROR],
    ['STOP_SENDING for its own message', [0x05, 2, 0], TransportError.STREAM_STATE_ERROR],
    ['more than the stream window', [0x0c, 0, ...varint(262_144), 65], TransportError.FLOW_CONTROL_ERROR],
    ['a message longer than R', [0x0c, 2, ...varint(66_560), 65], TransportError.FLOW_CONTROL_ERROR],
    ['a changed final size', [0x0b, 0, 1, 65, 0x0b, 0, 2, 65, 66], TransportError.FINAL_SIZE_ERROR],
    ['data beyond the final size', [0x0b, 0, 1, 65, 0x0a, 0, 2, 65, 66], TransportError.FINAL_SIZE_ERROR],
    ['a reset below what was sent', [0x0a, 0, 2, 65, 66, 0x04, 0, 0, 1], TransportError.FINAL_SIZE_ERROR],
    ['a reset beyond the window', [0x04, 0, 0, ...varint(300_000)], TransportError.FLOW_CONTROL_ERROR],
    ['MAX_STREAMS beyond 2^60', [0x12, ...varint(2 ** 61)], TransportError.FRAME_ENCODING_ERROR],
    ['a datagram larger than announced', [0x30, ...new Array(1_210).fill(1)], TransportError.PROTOCOL_VIOLATION],
  ];
  test.each(cases)('%s', (_name, frames, code) => {
    const pair = new Pair({ initiator: { packetSize: 1_400 } });
    expect(pair.inject(forge({ number: 7, frames }), pair.responder)).toBe(true);
    pair.run(5_000);
    expect(pair.responder.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: code });
    expect(pair.responder.kinds().at(-1)).toBe(EventKind.DRAINED);
    // The peer is told.
    expect(pair.initiator.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: code });
    expect(pair.initiator.kinds().at(-1)).toBe(EventKind.DRAINED);
    pair.free();
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
    pair.free();
  });

  test('an acknowledgement of a number that was left out', () => {
    const pair = new Pair({ seed: 2, parameters: { initialMaxData: 8_000_000, initialMaxStreamData: 3_500_000 } });
    const { initiator } = pair;
    initiator.record = true;
    const id = initiator.connection.openStream();
    const writer = new Writer(initiator, id, 3_000_000);
    initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = () => {};
    // Acknowledge everything blindly, as an attacker would who wants to be sent more.
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
    pair.free();
  });
});
