/** Varints, packet numbers, replay window and ACK frames of the core, compared with RFC 9000 and naive models. */
import { chacha20 } from '@noble/ciphers/chacha.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { testCore } from './module.ts';

describe('varint', () => {
  // The five examples of RFC 9000 A.1; the last is longer than necessary: it is decoded, but never encoded.
  const vectors: [string, bigint][] = [
    ['c2197c5eff14e88c', 151_288_809_941_952_652n],
    ['9d7f3e7d', 494_878_333n],
    ['7bbd', 15_293n],
    ['25', 37n],
    ['4025', 37n],
  ];
  const core = testCore();
  const at = core.call.transferAt!();

  test.each(vectors)('%s decodes to %s', (hex, value) => {
    const bytes = Buffer.from(hex, 'hex');
    core.memory.set(bytes, at);
    core.call.startReading!(at, at + bytes.length);
    expect(core.wide.readVarint()).toBe(value);
    expect(core.value('cursor')).toBe(at + bytes.length);
    expect(core.value('failed')).toBe(0);
  });

  test.each(vectors.slice(0, 4))('%s encodes %s', (hex, value) => {
    const end = core.call.writeVarint!(at, value);
    expect(Buffer.from(core.memory.slice(at, end)).toString('hex')).toBe(hex);
    expect(core.call.varintSize!(value)).toBe(hex.length / 2);
  });

  test('a truncated one fails and decodes to zero', () => {
    for (const [hex] of vectors.slice(0, 3)) {
      const bytes = Buffer.from(hex, 'hex');
      core.memory.set(bytes, at);
      for (let length = 0; length < bytes.length; length++) {
        core.call.startReading!(at, at + length);
        expect(core.wide.readVarint()).toBe(0n);
        expect(core.value('failed')).toBe(1);
      }
    }
  });

  test('every value survives encoding and decoding', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 62n - 1n }), fc.nat(62), (value, shift) => {
        const small = value >> BigInt(shift);
        const end = core.call.writeVarint!(at, small);
        expect(end - at).toBe(core.call.varintSize!(small));
        core.call.startReading!(at, end);
        expect(core.wide.readVarint()).toBe(small);
      }),
      { numRuns: 2_000, seed: 1 },
    );
  });
});

describe('packet number', () => {
  const core = testCore();

  // The example has 16 bits on the wire where ours always have 32 (so A.2, which chooses a length, has no counterpart).
  test('RFC 9000 A.3, with 32 bits', () => {
    expect(core.wide.reconstruct(0xa82f30ean, 0xa82f9b32)).toBe(0xa82f9b32n);
    expect(core.wide.reconstruct(-1n, 0)).toBe(0n);
    expect(core.wide.reconstruct(-1n, 5)).toBe(5n);
    expect(core.wide.reconstruct(0xffff_ffffn, 0)).toBe(0x1_0000_0000n);
    expect(core.wide.reconstruct(0x1_0000_0002n, 0xffff_fffe | 0)).toBe(0xffff_fffen);
    expect(core.wide.reconstruct(0x5_8000_0004n, 3)).toBe(0x6_0000_0003n);
    // At half a window from the expected number, both candidates are equally near: the one with the same upper half is
    // taken.
    expect(core.wide.reconstruct(0x1_0000_0000n, 0x8000_0001 | 0)).toBe(0x1_8000_0001n);
  });

  test('every number within 2^31 of the largest is recovered', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 61n }), fc.integer({ min: -(2 ** 31) + 2, max: 2 ** 31 - 1 }), (largest, distance) => {
        const number = largest + BigInt(distance);
        fc.pre(number >= 0n);
        expect(core.wide.reconstruct(largest, Number(number & 0xffff_ffffn) | 0)).toBe(number);
      }),
      { numRuns: 2_000, seed: 2 },
    );
  });

  test('the mask is the start of ChaCha20 block 0 with the id as nonce', () => {
    const at = core.call.transferAt!();
    const key = Uint8Array.from({ length: 32 }, (_, index) => index * 5);
    const id = Uint8Array.of(9, 8, 7, 6, 5, 4, 3, 2);
    core.memory.set(key, at);
    const nonce = new Uint8Array(12);
    nonce.set(id, 4);
    const block = chacha20(key, nonce, new Uint8Array(64));
    const mask = core.call.maskOf!(at, new DataView(id.buffer).getBigUint64(0, true)) >>> 0;
    expect(mask).toBe(new DataView(block.buffer).getUint32(0));
  });
});

describe('replay window', () => {
  const W = 8_192n;

  // [number, accepted], in order, from a fresh window
  const cases: [string, [bigint, number][]][] = [
    ['first', [[0n, 1]]],
    [
      'a duplicate',
      [
        [0n, 1],
        [0n, 0],
      ],
    ],
    [
      'in order',
      [
        [0n, 1],
        [1n, 1],
        [2n, 1],
      ],
    ],
    [
      'a hole filled later',
      [
        [0n, 1],
        [2n, 1],
        [1n, 1],
        [1n, 0],
      ],
    ],
    [
      'first one not zero',
      [
        [77n, 1],
        [76n, 1],
        [0n, 1],
        [77n, 0],
      ],
    ],
    [
      'the last place of the window',
      [
        [W, 1],
        [1n, 1],
        [1n, 0],
      ],
    ],
    [
      'one too old',
      [
        [W, 1],
        [0n, 0],
      ],
    ],
    [
      'a jump by a whole window',
      [
        [5n, 1],
        [5n + W, 1],
        [5n, 0],
        [6n, 1],
      ],
    ],
    [
      'a jump by less than a word',
      [
        [63n, 1],
        [64n, 1],
        [63n, 0],
        [65n, 1],
      ],
    ],
    [
      'a jump across the wrap of the bitmap',
      [
        [W - 1n, 1],
        [W, 1],
        [W + 1n, 1],
        [W - 1n, 0],
      ],
    ],
    [
      'a jump far ahead',
      [
        [1n, 1],
        [2n ** 40n, 1],
        [1n, 0],
        [2n ** 40n - 5n, 1],
        [2n ** 40n, 0],
      ],
    ],
    [
      'the window advances over old marks',
      [
        [10n, 1],
        [10n + W - 1n, 1],
        [10n, 0],
        [10n + W, 1],
        [10n + W + 1n, 1],
      ],
    ],
  ];
  test.each(cases)('%s', (_name, steps) => {
    const core = testCore();
    const connection = core.call.blankConnection!();
    for (const [number, accepted] of steps) {
      expect(core.call.isNew!(connection, number)).toBe(accepted);
      expect(core.call.mark!(connection, number)).toBe(accepted);
    }
  });

  test('agrees with a plain set', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(300), fc.nat(20_000)), { maxLength: 200 }), (steps) => {
        const core = testCore(1);
        const connection = core.call.blankConnection!();
        const seen = new Set<number>();
        let largest = -1;
        let at = 0;
        for (const step of steps) {
          at = Math.max(0, at + step - 140);
          const accepted = at > largest || (largest - at < 8_192 && !seen.has(at));
          expect(core.call.mark!(connection, BigInt(at))).toBe(accepted ? 1 : 0);
          if (accepted) seen.add(at);
          largest = Math.max(largest, at);
        }
        // The ranges read from it are those of the set.
        const floor = Math.max(0, largest + 1 - 8_192);
        for (let n = largest, guard = 0; n >= floor && guard < 50; guard++) {
          const high = Number(core.wide.scanDown(connection, BigInt(n), BigInt(floor), 1));
          let expected = n;
          while (expected >= floor && !seen.has(expected)) expected--;
          expect(high).toBe(expected);
          if (high < floor) break;
          n = Number(core.wide.scanDown(connection, BigInt(high), BigInt(floor), 0));
          let low = high;
          while (low >= floor && seen.has(low)) low--;
          expect(n).toBe(low);
        }
      }),
      { numRuns: 80, seed: 3 },
    );
  });
});

describe('ACK frame', () => {
  test('reports the newest 32 ranges down to the floor', () => {
    const core = testCore();
    const connection = core.call.blankConnection!();
    for (let n = 0; n < 200; n += 4) {
      core.call.mark!(connection, BigInt(n));
      core.call.mark!(connection, BigInt(n + 1));
    }
    const at = core.call.transferAt!();
    const read = () => {
      const end = core.call.writeAck!(connection, at, at + 1_000, 0);
      const bytes = [...core.memory.slice(at, end)];
      return bytes;
    };
    const full = read();
    expect(full.slice(0, 3)).toEqual([0x02, 0x40 | (197 >> 8), 197 & 255]);
    expect(full[4]).toBe(31);
    core.call.setAckFloor!(connection, 190n);
    // Largest 197, delay 0, one more range, 196…197, then 192…193.
    expect(read()).toEqual([0x02, 0x40, 197, 0, 1, 1, 1, 1]);
    core.call.setAckFloor!(connection, 198n);
    expect(read()).toEqual([]);
  });
});

describe('pacing', () => {
  test('rate is 1.25 windows per round trip, the burst at least ten packets', () => {
    const core = testCore();
    const connection = core.call.blankConnection!();
    core.call.setPace!(connection, 120_000, 100);
    expect(core.call.pacingRate!(connection)).toBeCloseTo(1_500);
    let now = 0;
    let sent = 0;
    core.call.refill!(connection, now);
    while (core.call.mayPace!(connection, now)) {
      core.call.onPaced!(connection, 1_200);
      sent++;
    }
    expect(sent).toBe(10);
    expect(core.call.pacingTime!(connection)).toBeCloseTo(0.81, 1);
    // Over a second exactly the rate is sent, whatever the steps of the clock.
    while (now < 1_000) {
      now += 1;
      core.call.refill!(connection, now);
      while (core.call.mayPace!(connection, now)) {
        core.call.onPaced!(connection, 1_200);
        sent++;
      }
    }
    expect((sent - 10) * 1_200).toBeGreaterThan(1_495_000);
    expect((sent - 10) * 1_200).toBeLessThanOrEqual(1_501_200);
  });

  describe('of a sender that runs late', () => {
    const WINDOW = 1_200_000;
    /** ms of the rate that are sent at once, `late` ms after packets waited for the bucket, or after none waited. */
    const caughtUp = (rtt: number, late: number, waiting = true, queueStands: boolean | null = null): number => {
      const core = testCore();
      const connection = core.call.blankConnection!();
      core.call.setPace!(connection, WINDOW, rtt);
      core.call.onRttSample!(connection, rtt, 0);
      if (queueStands !== null) core.call.setBbrPace!(connection, WINDOW / rtt, queueStands ? 1 : 0);
      const rate = core.call.pacingRate!(connection);
      const burst = (now: number): number => {
        let bytes = 0;
        for (core.call.refill!(connection, now); core.call.mayPace!(connection, now); bytes += 1_200) core.call.onPaced!(connection, 1_200);
        return bytes;
      };
      burst(0);
      const due = core.call.pacingTime!(connection);
      if (!waiting) core.call.pacingIdle!(connection);
      return burst(due + late) / rate;
    };

    test.each([3, 6, 9])('by %i ms catches up on all of it', (late) => {
      expect(caughtUp(100, late)).toBeGreaterThan(late - 0.1);
      expect(caughtUp(100, late)).toBeLessThan(late + 0.1);
    });

    test('by more than 16 ms catches up on 16 ms', () => {
      expect(caughtUp(200, 100)).toBeGreaterThan(15.9);
      expect(caughtUp(200, 100)).toBeLessThan(16.1);
    });

    test('on a short path catches up on a tenth of its round trip, and never less than a burst', () => {
      expect(caughtUp(50, 100)).toBeCloseTo(5, 1);
      expect(caughtUp(2, 100)).toBeCloseTo(2, 1);
    });

    test('while nothing waited sends a burst', () => {
      expect(caughtUp(50, 9, false)).toBeCloseTo(2, 1);
    });

    test('while a queue stands at the bottleneck sends a burst', () => {
      expect(caughtUp(50, 4, true, false)).toBeCloseTo(4, 1);
      expect(caughtUp(50, 4, true, true)).toBeCloseTo(2, 1);
    });
  });

  test('at loopback rates a burst covers two milliseconds', () => {
    const core = testCore();
    const connection = core.call.blankConnection!();
    core.call.setPace!(connection, 200_000, 1);
    core.call.refill!(connection, 0);
    let sent = 0;
    while (core.call.mayPace!(connection, 0)) {
      core.call.onPaced!(connection, 1_200);
      sent++;
    }
    expect(sent * 1_200).toBeGreaterThan(2 * 250_000 - 1_200);
  });
});

describe('round-trip time', () => {
  test('RFC 9002 §5.3', () => {
    const core = testCore();
    const connection = core.call.blankConnection!();
    core.call.rttInit!(connection, 0);
    expect(core.call.probeTimeout!(connection)).toBeCloseTo(333 + 4 * 166.5 + 25);
    core.call.onRttSample!(connection, 100, 0);
    expect(core.call.smoothedRtt!(connection)).toBeCloseTo(100);
    expect(core.call.probeTimeout!(connection)).toBeCloseTo(100 + 4 * 50 + 25);
    // The delay reported by the peer is subtracted, but never below the minimum sample, and never more than its
    // announced maximum.
    core.call.onRttSample!(connection, 150, 20);
    expect(core.call.smoothedRtt!(connection)).toBeCloseTo(100 * 0.875 + 130 * 0.125);
    core.call.onRttSample!(connection, 100, 20);
    expect(core.call.smoothedRtt!(connection)).toBeCloseTo(103.75 * 0.875 + 100 * 0.125, 3);
  });
});
