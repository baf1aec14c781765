/** The writer of small maps produces the same bytes as `encode`. */
import { expect, test } from 'vitest';
import { encode, MapWriter } from '../../../protocol/cbor/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';

const EDGES = [
  0,
  23,
  24,
  0xff,
  0x100,
  0xffff,
  0x1_0000,
  0x7fff_ffff,
  0x8000_0000,
  0xffff_ffff,
  2 ** 32,
  2 ** 40 + 5,
  Number.MAX_SAFE_INTEGER,
];

test.each(EDGES)('writes the integer %d as encode does', (value) => {
  expect(new MapWriter().uint('MaxData', value).finish()).toEqual(encode({ MaxData: value }));
});

test.each([0, 1, 23, 24, 255, 256, 70_000])('writes %d bytes as encode does', (length) => {
  const value = Uint8Array.from({ length }, (_, index) => index);
  expect(new MapWriter().bytes('Id', value).finish()).toEqual(encode({ Id: value }));
});

test('writes entries in order, also items that are already encoded', () => {
  const info = { ProductId: 'pr-1', DeviceId: 'größe', list: [1, 2] };
  const map = { A: 1, Info: info, B: Uint8Array.of(7) };
  expect(new MapWriter().uint('A', 1).item('Info', encode(info)).bytes('B', map.B).finish()).toEqual(encode(map));
  expect(new MapWriter().finish()).toEqual(encode({}));
});

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('refuses %d as an unsigned integer', (value) => {
  expect(() => new MapWriter().uint('A', value)).toThrow(LocalError);
});
