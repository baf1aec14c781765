/** Datagrams in parts (PROTOCOL.md §12): cut and put together, in any order; bounded in number, bytes and time. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { cutFlowDatagram, decodeFlowPart, encodeFlowPart, type FlowPart, MAX_PARTS, PartSets } from '../../../protocol/datagrams/index.ts';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
const decode = (content: Uint8Array): FlowPart => decodeFlowPart(content, MAX_PARTS)!;
const FLOW = 3;

let lost: number[];
let sets: PartSets;

beforeEach(() => {
  lost = [];
  sets = new PartSets((flow) => lost.push(flow));
});

function cut(length: number, number = 1, size = 1_159): FlowPart[] {
  const payload = Uint8Array.from({ length }, (_, at) => (at * 7) ^ (at >> 8));
  return cutFlowDatagram({ flow: FLOW, payload }, { number, size, most: MAX_PARTS })!.map(decode);
}

describe('the content of a frame', () => {
  test.each([
    ['a whole datagram', '2500616263', { flow: 37, number: 0, index: 0, count: 1, payload: hex('616263') }],
    ['an empty one', '2500', { flow: 37, number: 0, index: 0, count: 1, payload: hex('') }],
    ['the last of 64 parts', '7bbd40643f4061', { flow: 15_293, number: 100, index: 63, count: 64, payload: hex('61') }],
  ])('%s', (_, content, part) => {
    expect(decodeFlowPart(hex(content), MAX_PARTS)).toEqual(part);
    expect(encodeFlowPart(part)).toEqual(hex(content));
  });

  test.each([
    ['nothing', ''],
    ['no number', '25'],
    ['half a number', '2540'],
    ['no index', '2501'],
    ['no count', '250100'],
    ['one part', '25010001aa'],
    ['more parts than can be put together', '25010041aa'],
    ['an index behind the last part', '25010202aa'],
    ['an empty part', '25010002'],
  ])('refuses %s', (_, content) => {
    expect(decodeFlowPart(hex(content), MAX_PARTS)).toBeNull();
  });
});

describe('cutting', () => {
  test('any datagram into parts of at most the given size, which make it again in any order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_150, max: 65_527 }), fc.integer({ min: 1, max: 2 ** 40 }), fc.integer(), (length, number, seed) => {
        const parts = cut(length, number);
        expect(parts.every((part) => encodeFlowPart(part).length <= 1_159)).toBe(true);
        const order = [...parts].sort((a, b) => ((a.index * seed) % 31) - ((b.index * seed) % 31));
        const got = order.map((part) => sets.receive(part, 0)).filter((whole) => whole !== null);
        const payload = Uint8Array.from(Buffer.concat(parts.map((part) => part.payload)));
        expect(payload).toHaveLength(length);
        expect(got).toEqual([{ flow: FLOW, payload }]);
        expect(sets.size).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  test('into no more parts than the peer takes, and nothing larger than UDP carries', () => {
    const cutTo = (length: number, most: number) =>
      cutFlowDatagram({ flow: 0, payload: new Uint8Array(length) }, { number: 1, size: 1_159, most });
    expect([cutTo(2_300, 2)?.length, cutTo(2_400, 2), cutTo(65_527, MAX_PARTS)?.length, cutTo(65_528, MAX_PARTS)]).toEqual([
      2,
      null,
      57,
      null,
    ]);
  });
});

describe('incomplete datagrams', () => {
  test('a part that is missing for a second loses the datagram, and a later one does not complete it', () => {
    const [first, second] = cut(2_000) as [FlowPart, FlowPart];
    expect(sets.receive(first, 0)).toBeNull();
    sets.expire(999);
    expect(lost).toEqual([]);
    expect(sets.receive(second, 1_000)).toBeNull();
    expect([lost, sets.size]).toEqual([[FLOW], 1]);
  });

  test('repeated and contradicting parts are ignored', () => {
    const [first, second] = cut(2_000) as [FlowPart, FlowPart];
    sets.receive(first, 0);
    for (const part of [first, { ...second, flow: 9 }, { ...second, count: 3 }]) expect(sets.receive(part, 0)).toBeNull();
    expect(sets.receive(second, 0)?.payload).toHaveLength(2_000);
  });

  test('the oldest is given up for a 65th', () => {
    for (let number = 1; number <= 65; number++) sets.receive({ ...cut(2_000, number)[0]!, flow: number }, number);
    expect([lost, sets.size]).toEqual([[1], 64]);
  });

  test('at most 256 KiB wait', () => {
    for (let number = 1; number <= 10; number++) for (const part of cut(60_000, number).slice(1)) sets.receive(part, 0);
    expect([lost.length, sets.size]).toEqual([6, 4]);
  });

  test('a part counts for the memory that it takes, however small it is', () => {
    const payload = new Uint8Array(20);
    for (let number = 1; number <= 64; number++)
      for (let index = 0; index < 63; index++) sets.receive({ flow: 1, number, index, count: 64, payload }, 0);
    expect(sets.size).toBe(Math.floor((256 * 1024) / (63 * (20 + 64))));
  });

  test('parts that together are larger than UDP carries do not become one', () => {
    const large = (index: number): FlowPart => ({ flow: 0, number: 1, index, count: 2, payload: new Uint8Array(40_000) });
    expect([sets.receive(large(0), 0), sets.receive(large(1), 0)]).toEqual([null, null]);
  });
});
