/** The core's memory: chunks, packet slots, chunk map and range set, compared with naive models. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { type TestCore, testCore } from './module.ts';

const BYTES_OUT = 0;
const BYTES_IN = 1;
const RANGES = 127;

let core: ReturnType<typeof testCore>;
beforeEach(() => {
  core = testCore();
});

test('records fit their slabs', () => {
  expect(testCore().call.recordsFit?.()).toBe(1);
});

test('a change of path keeps every byte of the recovery state', () => {
  expect(testCore().call.recoveryStateMoves?.()).toBe(1);
});

describe('chunks', () => {
  test('are allocated until the budget is exhausted, and again after release', () => {
    const core = testCore(8, 200);
    const taken: number[] = [];
    for (let chunk = core.call.takeChunk!(BYTES_OUT); chunk; chunk = core.call.takeChunk!(BYTES_OUT)) taken.push(chunk);
    expect(taken.length).toBe(25);
    expect(core.call.takeChunk!(BYTES_IN)).not.toBe(0);
    core.call.releaseChunk!(taken[3]!, BYTES_OUT);
    expect(core.call.takeChunk!(BYTES_OUT)).toBe(taken[3]);
    expect(core.call.takeChunk!(BYTES_OUT)).toBe(0);
  });

  test('trap on release of anything that is not a chunk, with its address', () => {
    expect(() => core.call.releaseChunk!(16, BYTES_OUT)).toThrowError(WebAssembly.RuntimeError);
    expect(core.value('abortLine')).toBeGreaterThan(0);
    expect(core.value('abortColumn')).toBeGreaterThan(0);
  });
});

describe('packet slots', () => {
  test('are each handed out once; only their own addresses are released', () => {
    const slots = new Set<number>();
    for (let slot = core.call.takeSlot!(); slot; slot = core.call.takeSlot!()) slots.add(slot);
    expect(slots.size).toBe(128);
    expect(core.call.releaseSlot!(1)).toBe(0);
    const [first] = slots;
    expect(core.call.releaseSlot!((first as number) - 9)).toBe(1);
    expect(core.call.takeSlot!()).toBe(first);
  });
});

describe('chunk map', () => {
  test('holds bytes at every position of the window, and frees those below', () => {
    const before = core.value('freeChunks');
    const map = core.call.scratch!();
    const area = core.call.transferAt!();
    for (const base of [0, 1_000, 262_143, 4_194_303, 2 ** 32 - 5, 2 ** 40 + 77]) {
      const bytes = Uint8Array.from({ length: 9_000 }, (_, index) => (index * 7 + base) & 255);
      core.memory.set(bytes, area);
      expect(core.call.copyIn!(map, BigInt(base), area, bytes.length, BYTES_OUT)).toBe(bytes.length);
      core.memory.fill(0, area, area + bytes.length);
      core.call.copyOut!(map, BigInt(base + 100), area, 8_000);
      expect(core.memory.slice(area, area + 8_000)).toEqual(bytes.slice(100, 8_100));
      core.call.releaseBelow!(map, BigInt(base), BigInt(base + 5_000), BYTES_OUT);
      expect(core.call.addressOf!(map, BigInt(base))).toBe(0);
      expect(core.call.addressOf!(map, BigInt(base + 5_000))).not.toBe(0);
      core.call.releaseBelow!(map, BigInt(base + 5_000), BigInt(base + 9_000), BYTES_OUT);
      core.call.releaseRest!(map, BigInt(base + 9_000), BYTES_OUT);
      expect(core.value('freeChunks')).toBe(before - 1);
    }
  });

  test('agrees with a plain array under a moving window', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(60_000), fc.nat(3_000), fc.nat(20_000)), { maxLength: 30 }), fc.nat(2 ** 31), (steps, start) => {
        const core = testCore();
        const map = core.call.scratch!();
        const area = core.call.transferAt!();
        const model = new Map<number, number>();
        let base = start;
        for (const [ahead, length, move] of steps) {
          for (let i = 0; i < length; i++) {
            core.memory[area + i] = (ahead + i * 3) & 255;
            model.set(base + ahead + i, (ahead + i * 3) & 255);
          }
          core.call.copyIn!(map, BigInt(base + ahead), area, length, BYTES_IN);
          core.call.releaseBelow!(map, BigInt(base), BigInt(base + move), BYTES_IN);
          base += move;
          for (const [offset, value] of model) {
            if (offset < base) {
              model.delete(offset);
              continue;
            }
            const held = core.memory[core.call.addressOf!(map, BigInt(offset))];
            // An assertion for each of millions of bytes is too slow: only a wrong byte is asserted.
            if (held !== value) expect(held, `byte ${offset}`).toBe(value);
          }
        }
        core.call.releaseAll!(map, BYTES_IN);
        expect(core.call.chunksUsed!(BYTES_IN)).toBe(0);
      }),
      { numRuns: 15, seed: 5 },
    );
  });
});

/** A set of offsets, one by one: obviously correct. */
class Naive {
  readonly offsets = new Set<number>();
  add(from: number, to: number): void {
    for (let i = from; i < to; i++) this.offsets.add(i);
  }
  remove(from: number, to: number): void {
    for (let i = from; i < to; i++) this.offsets.delete(i);
  }
  ranges(): [number, number][] {
    const ranges: [number, number][] = [];
    for (const offset of [...this.offsets].sort((a, b) => a - b)) {
      const last = ranges.at(-1);
      if (last && last[1] === offset) last[1]++;
      else ranges.push([offset, offset + 1]);
    }
    return ranges;
  }
}

function rangesOf(core: TestCore, set: number, base: bigint): [number, number][] {
  const found: [number, number][] = [];
  for (let offset = base; core.call.rangeSeek!(set, base, offset); offset = base + BigInt(found.at(-1)![1])) {
    const [start, end] = [core.value('outStart'), core.value('outEnd')];
    found.push([start - Number(base), end - Number(base)]);
  }
  expect(core.call.rangeCount!(set)).toBe(found.length);
  expect(Number(core.wide.rangesCovered(set))).toBe(found.reduce((sum, [from, to]) => sum + to - from, 0));
  return found;
}

describe('range set', () => {
  const step = fc.record({ insert: fc.boolean(), from: fc.nat(600), length: fc.integer({ min: 1, max: 40 }) });

  test.each([0n, 1_000n, 2n ** 32n - 200n, 2n ** 40n - 1n])('agrees with a naive set above base %s', (base) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const set = core.call.scratch!();
        const naive = new Naive();
        for (const { insert, from, length } of steps) {
          const [start, end] = [base + BigInt(from), base + BigInt(from + length)];
          if (insert) {
            expect(core.call.rangeInsert!(set, base, start, end)).toBe(1);
            naive.add(from, from + length);
          } else {
            core.call.rangeRemove!(set, base, start, end);
            naive.remove(from, from + length);
          }
          expect(rangesOf(core, set, base)).toEqual(naive.ranges());
        }
        core.call.rangeClear!(set);
        core.call.releaseChunk!(set, 4);
        expect(core.view.getUint32(set, true)).not.toBeUndefined();
      }),
      { numRuns: 150, seed: 7 },
    );
    expect(core.call.chunksUsed!(4)).toBe(0);
  });

  test('owns no chunk while it is empty', () => {
    const set = core.call.scratch!();
    const before = core.value('freeChunks');
    core.call.rangeInsert!(set, 0n, 5n, 9n);
    expect(core.value('freeChunks')).toBe(before - 1);
    core.call.rangeRemove!(set, 0n, 0n, 20n);
    expect(core.value('freeChunks')).toBe(before);
  });

  test('full: refuses, or swallows a gap, and never loses an offset', () => {
    const set = core.call.scratch!();
    const naive = new Naive();
    for (let i = 0; i < RANGES; i++) {
      expect(core.call.rangeInsert!(set, 0n, BigInt(i * 10), BigInt(i * 10 + 2))).toBe(1);
      naive.add(i * 10, i * 10 + 2);
    }
    const full = rangesOf(core, set, 0n);
    expect(core.call.rangeInsert!(set, 0n, 5n, 7n)).toBe(0);
    expect(rangesOf(core, set, 0n)).toEqual(full);
    expect(core.call.rangeInsert!(set, 0n, 2n, 3n)).toBe(1);
    for (const from of [5, 633, 5_000]) {
      expect(core.call.rangeInsertMerging!(set, 0n, BigInt(from), BigInt(from + 1))).toBe(1);
      naive.add(from, from + 1);
    }
    const ranges = rangesOf(core, set, 0n);
    expect(ranges.length).toBe(RANGES);
    for (const offset of naive.offsets) expect(ranges.some(([from, to]) => from <= offset && offset < to)).toBe(true);
    for (let i = 1; i < ranges.length; i++) expect(ranges[i]![0]).toBeGreaterThan(ranges[i - 1]![1]);
  });
});

describe('range set of many chunks', () => {
  const KIB = 1_024;
  const most = 3_840;
  const FAR = most + 1;
  const far: [number, number] = [FAR * KIB, FAR * KIB + 8];

  /** A set with a range of `length` bytes at each KiB named by `order`. */
  function filled(core: TestCore, order: readonly number[], length = 8): number {
    const set = core.call.scratch!();
    // A distant one first: a set that spans so far has the capacity for all of them.
    for (const i of [FAR, ...order]) expect(core.call.rangeInsert!(set, 0n, BigInt(i * KIB), BigInt(i * KIB + length))).toBe(1);
    return set;
  }

  const shuffled = (n: number) => Array.from({ length: n }, (_, i) => (i * 1_777) % n);

  test.each([
    ['rising', Array.from({ length: most }, (_, i) => i)],
    ['falling', Array.from({ length: most }, (_, i) => most - 1 - i)],
    ['any', shuffled(most)],
  ])('holds one range for each KiB, added in %s order, and then refuses', (_name, order) => {
    const before = core.value('freeChunks');
    const set = filled(core, order);
    expect(rangesOf(core, set, 0n)).toEqual([...Array.from({ length: most }, (_, i) => [i * KIB, i * KIB + 8]), far]);
    expect(before - core.value('freeChunks')).toBeLessThanOrEqual(most / 48 + 3);
    expect(core.call.rangeInsert!(set, 0n, 100n, 101n)).toBe(0);
    expect(core.call.rangeInsertMerging!(set, 0n, 100n, 101n)).toBe(1);
    expect(core.call.rangeCount!(set)).toBe(most + 1);
    core.call.rangeClear!(set);
    core.call.releaseChunk!(set, 4);
    expect(core.call.chunksUsed!(4)).toBe(0);
  });

  test('frees chunks as ranges are joined or removed, in any order', { tags: ['slow'] }, () => {
    for (const fill of [true, false]) {
      const core = testCore();
      const set = filled(core, shuffled(most));
      for (const [n, i] of shuffled(most).entries()) {
        if (fill) core.call.rangeInsert!(set, 0n, BigInt(i * KIB), BigInt((i + 1) * KIB));
        else core.call.rangeRemove!(set, 0n, BigInt(i * KIB), BigInt(i * KIB + 8));
        const left = core.call.rangeCount!(set);
        if (n % 64 === 0) expect(core.call.chunksUsed!(4), `after ${n}`).toBeLessThanOrEqual(left / 48 + 4);
      }
      expect(rangesOf(core, set, 0n)).toEqual(fill ? [[0, most * KIB], far] : [far]);
      expect(core.call.chunksUsed!(4)).toBe(2);
    }
  });

  test('handles one removal, one range over all of them, and a gap at the base, across chunks', () => {
    const set = filled(core, shuffled(most));
    core.call.rangeRemove!(set, 0n, BigInt(10 * KIB + 4), BigInt(3_000 * KIB + 4));
    expect(rangesOf(core, set, 0n).slice(9, 13)).toEqual([
      [9 * KIB, 9 * KIB + 8],
      [10 * KIB, 10 * KIB + 4],
      [3_000 * KIB + 4, 3_000 * KIB + 8],
      [3_001 * KIB, 3_001 * KIB + 8],
    ]);
    expect(core.wide.rangeEndFrom(set, 0n, BigInt(3_001 * KIB))).toBe(BigInt(3_001 * KIB + 8));
    expect(core.wide.rangeEndFrom(set, 0n, BigInt(3_001 * KIB - 1))).toBe(BigInt(3_001 * KIB - 1));
    core.call.rangeInsert!(set, 0n, BigInt(2 * KIB + 8), BigInt(3_500 * KIB));
    expect(rangesOf(core, set, 0n).slice(0, 4)).toEqual([
      [0, 8],
      [KIB, KIB + 8],
      [2 * KIB, 3_500 * KIB + 8],
      [3_501 * KIB, 3_501 * KIB + 8],
    ]);
    expect(core.call.chunksUsed!(4)).toBeLessThanOrEqual(343 / 48 + 3);
  });

  test('agrees with a plain array of marks through any steps', { tags: ['slow'] }, () => {
    const step = fc.record({
      insert: fc.boolean(),
      from: fc.nat(4_000),
      length: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 900 })),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const core = testCore(1);
        const base = 2n ** 32n - 900_000n;
        const set = core.call.scratch!();
        const marks = new Uint8Array(5_000);
        const at = (place: number) => base + BigInt(place * KIB);
        core.call.rangeInsert!(set, base, at(4_999), at(5_000));
        marks[4_999] = 1;
        for (let i = 0; i < 2_400; i += 2) {
          core.call.rangeInsert!(set, base, at(i), at(i + 1));
          marks[i] = 1;
        }
        for (const { insert, from, length } of steps) {
          const call = insert ? core.call.rangeInsert! : core.call.rangeRemove!;
          call(set, base, at(from), at(from + length));
          marks.fill(insert ? 1 : 0, from, from + length);
        }
        const wanted: [number, number][] = [];
        for (let i = 0; i < marks.length; i++) {
          if (!marks[i]) continue;
          const from = i;
          while (marks[i]) i++;
          wanted.push([from * KIB, i * KIB]);
        }
        // `toEqual` of a thousand pairs is slow.
        expect(String(rangesOf(core, set, base))).toBe(String(wanted));
        expect(core.call.chunksUsed!(4)).toBeLessThanOrEqual(wanted.length / 48 + 4);
      }),
      { numRuns: 30, seed: 13 },
    );
  });
});

test('lists keep their order through every kind of removal', { tags: ['slow'] }, () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('push', 'remove', 'rotate'), fc.nat(9)), { maxLength: 80 }), (steps) => {
      const list = core.call.scratch!();
      const items = Array.from({ length: 10 }, (_, index) => list + 64 + index * 16);
      let model: number[] = [];
      for (const [action, index] of steps) {
        const item = items[index]!;
        if (action === 'push') {
          core.call.listPush!(list, item, 4);
          if (!model.includes(item)) model.push(item);
        } else if (action === 'remove') {
          core.call.listRemove!(list, item, 4);
          model = model.filter((other) => other !== item);
        } else if (model.length > 0) {
          core.call.listRotate!(list, 4);
          model.push(model.shift()!);
        }
        const seen: number[] = [];
        for (let at = core.call.listHead!(list); at; at = core.call.listNext!(at, 4)) seen.push(at);
        expect(seen).toEqual(model);
        for (const other of items) expect(core.call.listContains!(list, other, 4)).toBe(model.includes(other) ? 1 : 0);
      }
      core.call.releaseChunk!(list, 4);
    }),
    { numRuns: 100, seed: 9 },
  );
});
