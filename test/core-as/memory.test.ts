/** The core's memory: chunks, packet slots, chunk map and range set, against naive models. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { size } from '../support/size.ts';
import { type TestCore, testCore } from './module.ts';

const BYTES_OUT = 0;
const BYTES_IN = 1;
const RANGES = 127;

test('records fit their slabs', () => {
  expect(testCore().call.recordsFit?.()).toBe(1);
});

describe('chunks', () => {
  test('are handed out until the budget ends, and again after release', () => {
    const core = testCore(8, 64);
    const taken: number[] = [];
    for (let chunk = core.call.takeChunk!(BYTES_OUT); chunk; chunk = core.call.takeChunk!(BYTES_OUT)) taken.push(chunk);
    expect(taken.length).toBe(8);
    expect(core.call.takeChunk!(BYTES_IN)).not.toBe(0);
    core.call.releaseChunk!(taken[3]!, BYTES_OUT);
    expect(core.call.takeChunk!(BYTES_OUT)).toBe(taken[3]);
    expect(core.call.takeChunk!(BYTES_OUT)).toBe(0);
  });

  test('releasing what is no chunk traps with its place', () => {
    const core = testCore();
    expect(() => core.call.releaseChunk!(16, BYTES_OUT)).toThrowError(WebAssembly.RuntimeError);
    expect(core.value('abortLine')).toBeGreaterThan(0);
    expect(core.value('abortColumn')).toBeGreaterThan(0);
  });
});

describe('packet slots', () => {
  test('each is out once; only their own addresses come back', () => {
    const core = testCore();
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
  test('holds bytes wherever the window stands, and frees what is below', () => {
    const core = testCore();
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

  test('agrees with a plain array under a moving window', () => {
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
            if (offset < base) model.delete(offset);
            else expect(core.memory[core.call.addressOf!(map, BigInt(offset))]).toBe(value);
          }
        }
        core.call.releaseAll!(map, BYTES_IN);
        expect(core.call.chunksUsed!(BYTES_IN)).toBe(0);
      }),
      { numRuns: size(10, 100), seed: 5 },
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
  return Array.from({ length: core.call.rangeCount!(set) }, (_, index) => [
    Number(core.wide.rangeStart(set, index, base) - base),
    Number(core.wide.rangeEnd(set, index, base) - base),
  ]);
}

describe('range set', () => {
  const step = fc.record({ insert: fc.boolean(), from: fc.nat(600), length: fc.integer({ min: 1, max: 40 }) });

  test.each([0n, 1_000n, 2n ** 32n - 200n, 2n ** 40n - 1n])('agrees with a naive set above base %s', (base) => {
    const core = testCore();
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
      { numRuns: size(100, 2_000), seed: 7 },
    );
    expect(core.call.chunksUsed!(4)).toBe(0);
  });

  test('owns no chunk while it is empty', () => {
    const core = testCore();
    const set = core.call.scratch!();
    const before = core.value('freeChunks');
    core.call.rangeInsert!(set, 0n, 5n, 9n);
    expect(core.value('freeChunks')).toBe(before - 1);
    core.call.rangeRemove!(set, 0n, 0n, 20n);
    expect(core.value('freeChunks')).toBe(before);
  });

  test('full: refuses, or swallows a gap, and never loses an offset', () => {
    const core = testCore();
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

test('lists keep their order through every kind of removal', () => {
  const core = testCore();
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
    { numRuns: size(50, 1_000), seed: 9 },
  );
});
