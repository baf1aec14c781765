/** Packet protection: no part of a packet has an effect before its tag is verified. */
import { describe, expect, test } from 'vitest';
import { Core } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { forge } from './forge.ts';
import { Pair } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const PING = [0x01];

describe('packet protection', () => {
  test('accepts once a packet made with another implementation of cipher, mask and header', () => {
    const pair = new Pair();
    const packet = forge({ number: 5, frames: PING });
    expect(pair.inject(packet, pair.responder)).toBe(true);
    expect(pair.inject(packet, pair.responder)).toBe(false);
    expect(pair.responder.connection.stats()).toMatchObject({ packetsReceived: 1, packetsDropped: 1 });
  });

  test('drops a packet with any bit changed', () => {
    const pair = new Pair();
    const packet = forge({ number: 1, frames: [...PING, 0, 0, 0] });
    for (let bit = 0; bit < packet.length * 8; bit++) {
      const changed = packet.slice();
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(pair.inject(changed, pair.responder), `bit ${bit}`).toBe(false);
    }
    expect(pair.inject(packet.subarray(0, packet.length - 1), pair.responder)).toBe(false);
    expect(pair.inject(packet, pair.responder)).toBe(true);
  });

  test('replayed and tampered packets have no effect on a transfer', { tags: ['slow'] }, () => {
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
    const id = pair.initiator.connection.streams.open();
    const writer = new Writer(pair.initiator, id, 200_000);
    const reader = new Reader(pair.responder);
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => reader.on(event);
    expect(pair.run(60_000, () => reader.ended.has(id))).toBe(true);
    expect(reader.wrong).toBe(0);
    expect(accepted).toBe(0);
    pair.intercept = (datagram) => datagram;
    pair.run(2_000);
    // Whole packets again: each is a duplicate.
    const before = pair.responder.connection.stats().packetsReceived;
    for (const datagram of seen) {
      expect(pair.inject(datagram, pair.responder)).toBe(false);
      expect(pair.inject(datagram, pair.initiator)).toBe(false);
    }
    expect(pair.responder.connection.stats().packetsReceived).toBe(before);
  });

  test('random and mutated datagrams are dropped and counted', { tags: ['slow'] }, () => {
    const total = 4_000;
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
  });

  test('authenticated garbage closes the connection with a transport error, and has no other effect', { tags: ['slow'] }, () => {
    const random = generator(12);
    for (let i = 0; i < 3_000; i++) {
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
