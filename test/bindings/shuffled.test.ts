/** Hundreds of thousands of packets in any order, many of them repeated: each is delivered once. */
import { describe, expect, test } from 'vitest';
import { Core, EventKind } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';
import { seeds } from '../support/tiered.ts';
import { maskOf } from './forge.ts';
import { Pair } from './pair.ts';

const WINDOW = 8_192;
const ID = new Uint8Array(8).fill(2);
const KEY = new Uint8Array(32).fill(1);
const MASK = maskOf(new Uint8Array(32).fill(3), ID);
const DATAGRAM = 0x30;
const HEADER = 13;

/**
 * Packet `number` of the initiator, with its number in a DATAGRAM frame. Sealed by the core, since noble would take a
 * minute.
 */
function packet(core: Core, number: number): Uint8Array {
  const header = new Uint8Array(HEADER);
  header[0] = 0xc0;
  header.set(ID, 1);
  new DataView(header.buffer).setUint32(9, (number + MASK) >>> 0);
  const frame = new Uint8Array(5);
  frame[0] = DATAGRAM;
  new DataView(frame.buffer).setUint32(1, number);
  const bytes = new Uint8Array(HEADER + frame.length + 16);
  bytes.set(header);
  bytes.set(core.aead.seal(KEY, number, header, frame), HEADER);
  return bytes;
}

describe('shuffled and repeated packets: no duplicate is delivered, and each within the window is delivered once', () => {
  const deliversOnce = (total: number) => (seed: number) => {
    const core = Core.create();
    const pair = new Pair({ core, seed, parameters: { idleTimeout: 0 } });
    pair.intercept = () => null;
    const random = generator(seed);
    const below = (limit: number): number => Math.floor(random() * limit);
    const { connection } = pair.responder;

    const waiting: Uint8Array[] = [];
    const old: Uint8Array[] = [];
    const handedUp = new Uint8Array(total);
    let [next, largest, accepted, wrong] = [0, -1, 0, 0];

    const taken = (): number => {
      for (let kind = connection.nextEvent(); kind !== EventKind.NONE; kind = connection.nextEvent()) {
        if (kind === EventKind.DATAGRAM) return new DataView(connection.messages.readDatagram().buffer).getUint32(0);
      }
      return -1;
    };
    const deliver = (bytes: Uint8Array): void => {
      const number = (new DataView(bytes.buffer).getUint32(9) - MASK) >>> 0;
      const isNew = number > largest || (largest - number < WINDOW && handedUp[number] === 0);
      if (pair.inject(bytes, pair.responder) !== isNew || taken() !== (isNew ? number : -1)) wrong++;
      if (!isNew) return;
      handedUp[number] = 1;
      accepted++;
      largest = Math.max(largest, number);
    };

    for (let delivered = 0; delivered < total; delivered++) {
      // Most leave the shuffled heap within the window, some long after it.
      while (waiting.length < WINDOW / 4) {
        const bytes = packet(core, next++);
        for (let copies = 1 + below(3); copies > 0; copies--) waiting.push(bytes);
        if (below(100) === 0) old.push(bytes);
      }
      if (below(50) === 0 && old.length > 0) {
        deliver(old[below(old.length)] as Uint8Array);
        continue;
      }
      const at = below(waiting.length);
      deliver(waiting[at] as Uint8Array);
      waiting[at] = waiting.at(-1) as Uint8Array;
      waiting.pop();
      if (delivered % 1_000 === 0) pair.run(1);
    }
    expect(wrong).toBe(0);
    expect(accepted).toBeGreaterThan(0.3 * total);
    expect(accepted).toBeLessThan(0.6 * total);
    expect(core.failed).toBe(false);
    pair.free();
  };

  test.each(seeds(1, 1))('40,000 of them (seed %i)', { tags: ['slow'] }, deliversOnce(40_000));
  test.each(seeds(2, 3))('500,000 of them (seed %i)', { tags: ['slow'] }, deliversOnce(500_000));
});

test('each connection has its own replay window, and a new one begins empty', () => {
  const core = Core.create({ connections: 6 });
  for (let round = 0; round < 2; round++) {
    const pairs = [1, 2, 3].map((seed) => new Pair({ core, seed, parameters: { idleTimeout: 0 } }));
    // Around the ends of blocks, and a jump over all of them.
    for (const number of [0, 1, 511, 512, 4_095, 8_191, 8_192, 100_000]) {
      const bytes = packet(core, number);
      const taken = (): boolean[] => pairs.map(({ responder }) => responder.connection.receive(bytes, 0, 1_000));
      expect([number, taken()]).toEqual([number, [true, true, true]]);
      expect([number, taken()]).toEqual([number, [false, false, false]]);
    }
    for (const pair of pairs) pair.free();
  }
});
